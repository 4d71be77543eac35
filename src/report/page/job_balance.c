/* How evenly the ranks worked, and what it cost that they did not: sentences first, then each quantity over the ranks. */
#include "report/page/job.h"

#include "base/util.h"
#include "report/html.h"
#include "report/report.h"

#include <errno.h>

static const double END_WAIT_TOLD = 0.01; // of the job's time

/* ---- in words ---- */

static void slowest(const struct job_page *page)
{
	struct buf *out = page->part.out;
	const struct slowest *s = &page->job->slowest;
	if (s->rank < 0)
		return;
	const struct job_rank *rank = &page->job->ranks[s->rank];
	buf_str(out, "<li><strong>");
	if (value_ok(rank->rank))
		buf_printf(out, "Rank %lld", (long long)rank->rank);
	else
		job_rank_name(out, page, (size_t)s->rank);
	buf_str(out, "</strong> on ");
	job_node_name(out, page, rank->node);
	buf_str(out, " worked longest: ");
	human_time(out, rank->work_s);
	buf_str(out, ", ");
	human_time(out, s->over_mean_s);
	buf_str(out, " (");
	human_percent(out, s->over_percent);
	buf_str(out, ") more than the mean.");
	if (s->waited_s > 0) {
		buf_str(out, " Had it been as fast as they were, the others would have had ");
		human_time(out, s->waited_s);
		buf_str(out, " less to wait");
		if (isfinite(s->waited_j)) {
			buf_str(out, ", about ");
			human_energy(out, s->waited_j);
			buf_str(out, " at the power that they have while they wait ");
			part_tag(out, PROVENANCE_ESTIMATED);
		}
		buf_char(out, '.');
	}
	buf_str(out, "</li>\n");
}

static void early(const struct job_page *page)
{
	size_t n = page->job->n_ended_early;
	if (n > 0)
		buf_printf(page->part.out, "<li>%zu rank%s that ended early %s not compared.</li>\n", n,
			n == 1 ? "" : "s", n == 1 ? "is" : "are");
}

static void waiting(const struct job_page *page)
{
	struct buf *out = page->part.out;
	const struct job_findings *job = page->job;
	const struct job_sums sums = job_sums(job);
	if (isnan(sums.waiting_s)) {
		buf_str(out,
			"<li class=\"faint\">No code block with a name for waiting (MPI_Barrier, allreduce …) was recorded; "
			"<code>--waiting PATTERN</code> says how yours are called.</li>\n");
		return;
	}
	buf_str(out, "<li>In blocks that wait for other ranks all of them together spent ");
	human_time(out, sums.waiting_s);
	if (sums.duration_s > 0) {
		buf_str(out, ", ");
		human_percent(out, sums.waiting_s / sums.duration_s * 100);
		buf_str(out, " of their time");
	}
	if (isfinite(job->waiting_j)) {
		buf_str(out, ", and took ");
		human_energy(out, job->waiting_j);
	}
	buf_str(out, ".</li>\n");
}

static void end_wait(const struct job_page *page)
{
	struct buf *out = page->part.out;
	const struct spread *s = &page->job->end_wait_s;
	// What starting and ending takes anyhow is not worth a sentence.
	if (!(s->max > END_WAIT_TOLD * page->time->charts.axis.length_s) || s->max_at < 0)
		return;
	buf_str(out, "<li>On average ranks ended ");
	human_time(out, s->mean);
	buf_str(out, " before the last one, ");
	job_rank_name(out, page, (size_t)s->max_at);
	buf_char(out, ' ');
	human_time(out, s->max);
	buf_str(out, ".</li>\n");
}

/* ---- each quantity ---- */

static const struct row {
	const char *title, *meaning;
	size_t spread, value; // offsets in job_findings, and in job_rank
	void (*print)(struct buf *, double);
} rows[] = {
	{"working", "time less waiting", offsetof(struct job_findings, work_s), offsetof(struct job_rank, work_s),
		human_time},
	{"waiting", "in blocks that wait", offsetof(struct job_findings, waiting_s),
		offsetof(struct job_rank, waiting_s), human_time},
	{"ended earlier", "than the last rank", offsetof(struct job_findings, end_wait_s),
		offsetof(struct job_rank, end_wait_s), human_time},
	{"time", "from its start to its end", offsetof(struct job_findings, duration_s),
		offsetof(struct job_rank, duration_s), human_time},
	{"CPU time", "", offsetof(struct job_findings, cpu_s), offsetof(struct job_rank, cpu_s), human_time},
	{"energy", "its share of its node's", offsetof(struct job_findings, energy_j),
		offsetof(struct job_rank, energy_j), human_energy},
};

static double value_of(const struct job_rank *rank, size_t offset)
{
	double value;
	memcpy(&value, (const char *)rank + offset, sizeof(value));
	return value;
}

static bool is_compared(const struct job_findings *job, const struct job_rank *rank)
{
	if (rank->nested || rank->ended_early)
		return false;
	return job->compared_step == NULL || (rank->step != NULL && strcmp(rank->step, job->compared_step) == 0);
}

static void spread_row(const struct job_page *page, const struct row *row, double *values)
{
	struct buf *out = page->part.out;
	struct spread s;
	memcpy(&s, (const char *)page->job + row->spread, sizeof(s));
	if (s.count == 0)
		return;
	for (size_t i = 0; i < page->job->n_ranks; i++)
		values[i] = is_compared(page->job, &page->job->ranks[i]) ? value_of(&page->job->ranks[i], row->value)
									 : (double)NAN;
	buf_printf(out, "<tr><th scope=\"row\" class=\"name\">%s <span class=\"faint small\">%s</span></th>",
		row->title, row->meaning);
	part_cell(out, s.min, row->print);
	part_cell(out, s.mean, row->print);
	part_cell(out, s.max, row->print);
	part_cell(out, s.std, row->print);
	part_cell(out, s.imbalance_percent, part_percent);
	buf_str(out, "<td class=\"text\">");
	if (s.max_at >= 0 && s.max > s.min)
		job_rank_name(out, page, (size_t)s.max_at);
	buf_str(out, "</td><td class=\"text\">");
	job_strip(out, &(struct job_strip){values, page->job->n_ranks, s.mean, s.max, s.max > s.min ? s.max_at : -1});
	buf_str(out, "</td></tr>\n");
}

void job_balance(const struct job_page *page)
{
	static const struct part_column columns[] = {{"over the ranks", "name"}, {"least"}, {"mean"}, {"most"},
		{"± (std)"}, {"imbalance"}, {"most of all", "text"}, {"each rank, from 0", "text"}};
	struct buf *out = page->part.out;
	if (page->job->duration_s.count < 2)
		return;
	double *values = calloc_array(page->job->n_ranks, sizeof(*values));
	if (values == NULL) {
		out->failed = -ENOMEM;
		return;
	}
	buf_str(out, "<section>\n");
	part_title(&page->part, "balance", "How evenly the ranks worked");
	buf_str(out, "<ul class=\"balance\">\n");
	slowest(page);
	early(page);
	waiting(page);
	end_wait(page);
	buf_str(out, "</ul>\n");
	if (page->job->compared_step != NULL) {
		buf_str(out, "<p class=\"faint small\">Ranks of step ");
		part_name(out, page->job->compared_step);
		buf_str(out, ", the one in which they worked longest.</p>\n");
	}
	part_table_begin(&page->part, "balance-table", NULL, columns, ARRAY_SIZE(columns), false);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		spread_row(page, &rows[i], values);
	part_table_end(&page->part);
	buf_str(out,
		"<p class=\"faint small\">Imbalance is (most − mean) / most: the part of the longest rank's time that would be "
		"saved if all were as the mean. The grey line is the mean, the orange one the rank that has most.</p>\n"
		"</section>\n");
	free(values);
}
