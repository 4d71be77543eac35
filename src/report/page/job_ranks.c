/* The ranks, a row each, with a bar of when it ran and what of that it waited. */
#include "report/page/job.h"

#include "base/util.h"
#include "report/html.h"
#include "report/palette.h"
#include "report/report.h"

enum { ROWS_MAX = 2000 };

/* ---- the bar: the job's time from left to right ---- */

static void piece(struct buf *out, double from_s, double length_s, double all_s, enum colour colour)
{
	if (!(length_s > 0) || !(all_s > 0) || isnan(from_s))
		return;
	buf_str(out, "<rect height=\"100%\" x=\"");
	buf_fixed(out, 100 * from_s / all_s, 2);
	buf_str(out, "%\" width=\"");
	buf_fixed(out, 100 * length_s / all_s, 2);
	buf_printf(out, "%%\" class=\"c-%s\"/>", palette[colour].css);
}

static void bar(struct buf *out, const struct job_rank *rank, double all_s)
{
	double waiting_s = isnan(rank->waiting_s) ? 0 : rank->waiting_s;
	double work_s = rank->duration_s - waiting_s;
	buf_str(out, "<svg class=\"rank-bar\" aria-hidden=\"true\" width=\"100%\">");
	piece(out, rank->start_s, work_s, all_s, COLOUR_TARGET);
	piece(out, rank->start_s + work_s, waiting_s, all_s, COLOUR_OTHERS);
	piece(out, rank->end_s, rank->end_wait_s, all_s, COLOUR_UNATTRIBUTED);
	buf_str(out, "</svg>");
}

static void keys(const struct job_page *page)
{
	static const struct {
		enum colour colour;
		const char *words;
	} all[] = {{COLOUR_TARGET, "working"}, {COLOUR_OTHERS, "waiting in blocks, all of it put at the end"},
		{COLOUR_UNATTRIBUTED, "ended before the last rank"}};
	buf_str(page->part.out, "<ul class=\"keys small\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		buf_printf(page->part.out, "<li><span class=\"swatch c-%s\"></span>%s</li>\n",
			palette[all[i].colour].css, all[i].words);
	buf_str(page->part.out, "</ul>\n");
}

/* ---- rows ---- */

static void ending(struct buf *out, const struct job_rank *rank)
{
	buf_str(out, "<td class=\"text\">");
	if (!rank->complete)
		buf_str(out, "<span class=\"warn\">not complete</span>");
	else if (value_ok(rank->exit_code))
		buf_printf(out, "<span class=\"%s\">exit %lld</span>", rank->exit_code != 0 ? "warn" : "faint",
			(long long)rank->exit_code);
	if (rank->runs > 1)
		buf_printf(out, " <span class=\"faint\">started %lld times</span>", (long long)rank->runs);
	if (rank->cut_off > 0)
		buf_printf(out, " <span class=\"warn\">%lld of them cut off before</span>", (long long)rank->cut_off);
	if (rank->nested)
		buf_str(out, " <span class=\"faint\">around other recorders: not added</span>");
	buf_str(out, "</td>");
}

static void row(const struct job_page *page, size_t number, double all_s, bool has_waiting)
{
	struct buf *out = page->part.out;
	const struct job_rank *rank = &page->job->ranks[number];
	buf_printf(out, "<tr%s><th scope=\"row\" class=\"name\" data-value=\"",
		rank->nested ? " class=\"beside\"" : "");
	if (value_ok(rank->rank))
		buf_i64(out, rank->rank);
	buf_str(out, "\">");
	job_rank_name(out, page, number);
	if (rank->step != NULL && page->job->n_steps > 1) {
		buf_str(out, " <span class=\"faint small\">step ");
		part_name(out, rank->step);
		buf_str(out, "</span>");
	}
	buf_str(out, "</th><td class=\"text\">");
	job_node_name(out, page, rank->node);
	buf_str(out, "</td>");
	part_cell_energy(out, rank->energy_j, rank->error_j);
	part_cell(out, rank->cpu_s, human_short_time);
	part_cell(out, rank->duration_s, human_short_time);
	if (has_waiting) {
		part_cell(out, rank->work_s, human_short_time);
		part_cell(out, rank->waiting_s, human_short_time);
	}
	buf_str(out, "<td class=\"bar-cell\">");
	bar(out, rank, all_s);
	buf_str(out, "</td>");
	ending(out, rank);
	buf_str(out, "</tr>\n");
}

void job_ranks(const struct job_page *page)
{
	const struct job_findings *job = page->job;
	struct part_column columns[9] = {{"rank", "name", "ascending"}, {"node", "text"}, {"energy"}, {"CPU"},
		{"time"}};
	size_t n = 5, shown = job->n_ranks < ROWS_MAX ? job->n_ranks : ROWS_MAX;
	bool has_waiting = !isnan(job_sums(job).waiting_s);
	double all_s = page->time->charts.axis.length_s;
	if (has_waiting) {
		columns[n++] = (struct part_column){.title = "working"};
		columns[n++] = (struct part_column){.title = "waiting"};
	}
	columns[n++] = (struct part_column){.title = "when", .class = "text"};
	columns[n++] = (struct part_column){.title = "ended", .class = "text"};
	buf_str(page->part.out, "<section>\n");
	part_title(&page->part, "ranks", "Ranks");
	keys(page);
	part_table_begin(&page->part, "ranks-table", NULL, columns, n, job->n_ranks > 1);
	for (size_t i = 0; i < shown; i++)
		row(page, i, all_s, has_waiting);
	part_table_end(&page->part);
	job_paper(page, shown, 20);
	if (job->n_ranks > shown)
		buf_printf(page->part.out,
			"<p class=\"faint small\">… and %zu more ranks, which the JSON report has.</p>\n",
			job->n_ranks - shown);
	buf_str(page->part.out, "</section>\n");
}
