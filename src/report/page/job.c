/* The page of a job: the order of its parts, and the small things that they share. */
#include "report/page/job.h"

#include "base/known.h"
#include "base/util.h"
#include "report/page/page.h"
#include "report/report.h"

#include <errno.h>

enum { TITLE_CEILING = 1 << 16 };

void job_rank_name(struct buf *out, const struct job_page *page, size_t rank)
{
	const struct job_rank *r = &page->job->ranks[rank];
	if (value_ok(r->rank))
		buf_printf(out, "rank %lld", (long long)r->rank);
	else
		part_name(out, r->run != NULL && r->run->where != NULL ? r->run->where : "a run");
}

void job_node_name(struct buf *out, const struct job_page *page, size_t node)
{
	part_name(out, page->job->nodes[node].name != NULL ? page->job->nodes[node].name : "a node");
}

// report.css has a rule for each.
static const size_t printed_rows[] = {4, 6, 8, 10, 12, 14, 17, 20, 25, 30};

void job_paper(const struct job_page *page, size_t n_rows, size_t most)
{
	size_t printed = printed_rows[0];
	if (n_rows <= most)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(printed_rows) && printed_rows[i] <= most; i++)
		printed = printed_rows[i];
	buf_printf(page->part.out,
		"<p class=\"faint small on-paper paper-%zu\">… and %zu more, which the page itself has.</p>\n", printed,
		n_rows - printed);
}

/* ---- the small picture ---- */

enum { STRIP_WIDTH = 150, STRIP_HEIGHT = 16 };

static void strip_line(struct buf *out, const char *class, double x, double top, double bottom)
{
	buf_printf(out, "<path class=\"%s\" d=\"M", class);
	buf_fixed(out, x, 1);
	buf_char(out, ' ');
	buf_fixed(out, top, 1);
	buf_char(out, 'V');
	buf_fixed(out, bottom, 1);
	buf_str(out, "\"/>");
}

void job_strip(struct buf *out, const struct job_strip *strip)
{
	const double scale = (STRIP_WIDTH - 4) / strip->highest;
	if (!(strip->highest > 0))
		return;
	buf_printf(out, "<svg class=\"strip\" aria-hidden=\"true\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">",
		STRIP_WIDTH, STRIP_HEIGHT, STRIP_WIDTH, STRIP_HEIGHT);
	buf_printf(out, "<path class=\"s-line\" d=\"M0 %dH%d\"/>", STRIP_HEIGHT - 2, STRIP_WIDTH);
	for (size_t i = 0; i < strip->n; i++)
		if (isfinite(strip->values[i]) && (int64_t)i != strip->chosen)
			strip_line(out, "s-target each", 2 + strip->values[i] * scale, 4, STRIP_HEIGHT - 2);
	if (isfinite(strip->mean))
		strip_line(out, "s-faint", 2 + strip->mean * scale, 0, STRIP_HEIGHT);
	if (strip->chosen >= 0 && isfinite(strip->values[strip->chosen]))
		strip_line(out, "s-warn", 2 + strip->values[strip->chosen] * scale, 1, STRIP_HEIGHT - 2);
	buf_str(out, "</svg>");
}

/* ---- the page ---- */

static void title(struct buf *out, const struct job_findings *job)
{
	if (job->id != NULL)
		buf_printf(out, "job %.100s", job->id);
	else
		buf_str(out, "a job");
	if (job->name != NULL && job->name[0] != '\0')
		buf_printf(out, ", %.100s", job->name);
	buf_str(out, " · wattle");
}

static void write_page(const struct job_page *page)
{
	static void (*const parts[])(const struct job_page *) = {job_head, job_balance, job_time, job_heat, job_nodes,
		job_ranks, job_blocks, job_domains, job_about};
	struct buf text;
	buf_init(&text, TITLE_CEILING);
	title(&text, page->job);
	page_begin(page->part.out, text.data, PAGE_SCRIPT_JOB, false);
	buf_finish(&text);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		parts[i](page);
	page_end(page->part.out, PAGE_SCRIPT_JOB);
}

void page_job(const struct job_findings *job, struct buf *out)
{
	struct job_charts time;
	if (charts_of_job(job, &time) < 0) {
		out->failed = -ENOMEM;
		return;
	}
	write_page(&(struct job_page){
		.part = {.out = out, .charts = &time.charts, .f = &job->total, .run = job->total.run},
		.job = job,
		.time = &time,
	});
	charts_of_job_finish(&time);
}
