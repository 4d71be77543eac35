#include "report/phrases.h"

#include "base/nan_sum.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "report/report.h"

void job_phrase_title(struct buf *out, const struct job_findings *job)
{
	if (job->id != NULL)
		buf_printf(out, "Job %s", job->id);
	else
		buf_str(out, "A job without an id");
	if (job->step != NULL)
		buf_printf(out, ", step %s", job->step);
	if (job->name != NULL)
		buf_printf(out, ", %s", job->name);
}

void job_phrase_node(struct buf *out, const struct job_findings *job)
{
	const char *separator = "";
	if (job->user != NULL) {
		buf_printf(out, "of %s", job->user);
		separator = ", ";
	}
	if (job->cluster != NULL) {
		buf_printf(out, " on %s", job->cluster);
		separator = ", ";
	}
	if (job->launcher != NULL) {
		buf_printf(out, "%sranks by %s", separator, job->launcher);
		separator = ", ";
	}
	if (!value_ok(job->start_wall_ns))
		return;
	buf_printf(out, "%sfrom ", separator);
	start_time_text(out, job->start_wall_ns);
}

struct job_sums job_sums(const struct job_findings *job)
{
	struct job_sums sums = {.waiting_s = (double)NAN};
	for (size_t i = 0; i < job->n_ranks; i++) {
		if (job->ranks[i].nested)
			continue;
		sums.n += value_ok(job->ranks[i].rank);
		sums.n_scripts += !value_ok(job->ranks[i].rank);
		sums.duration_s = nan_sum(sums.duration_s, job->ranks[i].duration_s);
		sums.waiting_s = nan_sum(sums.waiting_s, job->ranks[i].waiting_s);
	}
	return sums;
}

// Number of ranks per step if equal in all steps; else 0.
static size_t each_step(const struct job_findings *job, size_t n)
{
	size_t each = n / job->n_steps;
	for (size_t i = 0; i < job->n_ranks; i++) {
		size_t own = 0;
		for (size_t k = 0; k < job->n_ranks; k++)
			own += !job->ranks[k].nested && value_ok(job->ranks[k].rank) &&
				text_is_same(job->ranks[k].step, job->ranks[i].step);
		if (!job->ranks[i].nested && value_ok(job->ranks[i].rank) && own != each)
			return 0;
	}
	return each;
}

static void add_number(struct buf *out, size_t n, const char *what)
{
	buf_printf(out, "%zu %s%s", n, what, n == 1 ? "" : "s");
}

void job_phrase_ranks(struct buf *out, const struct job_findings *job)
{
	const struct job_sums sums = job_sums(job);
	size_t each = job->n_steps > 1 ? each_step(job, sums.n) : 0;
	if (value_ok(job->missing_ranks) && job->missing_ranks > 0 && job->n_steps < 2)
		buf_printf(out, "%zu of %lld ranks", sums.n, (long long)job->world_size);
	else if (sums.n > 0 || sums.n_scripts == 0)
		add_number(out, each > 0 ? each : sums.n, "rank");
	if (job->n_steps > 1)
		buf_printf(out, each > 0 ? " in each of %zu steps" : " in %zu steps together", job->n_steps);
	if (sums.n_scripts > 0) {
		buf_str(out, sums.n > 0 ? " and " : "");
		add_number(out, sums.n_scripts, "recording");
		buf_str(out, " without a rank");
	}
	buf_str(out, " on ");
	add_number(out, job->n_nodes, "node");
}

void job_phrase_pauses(struct buf *out, const struct job_findings *job)
{
	static const double shown_s = 1; // usual gaps between the srun calls of a script are shorter
	double longest_s = 0;
	for (size_t i = 0; i < job->n_nodes; i++)
		longest_s = fmax(longest_s, job->nodes[i].paused_s);
	if (!(longest_s >= shown_s))
		return;
	buf_str(out, "; ");
	human_time(out, longest_s);
	buf_str(out, " between launches, when no rank ran, are not included in any sum");
}

void job_phrase_clocks(struct buf *out, const struct job_findings *job)
{
	if (!(job->clocks_apart_s > 0))
		return;
	buf_str(out, "; up to ");
	human_time(out, job->clocks_apart_s);
	buf_str(out, " of it may come from clock differences between nodes");
}

void job_phrase_waiting_blocks(struct buf *out, const struct job_findings *job)
{
	const char *first = NULL;
	size_t more = 0;
	for (size_t i = 0; i < job->n_blocks; i++) {
		if (!job->blocks[i].waits)
			continue;
		more += first != NULL;
		first = first != NULL ? first : job->blocks[i].name;
	}
	buf_printf(out, "%.60s", first != NULL ? first : "no block");
	if (more > 0)
		buf_printf(out, " and %zu more", more);
}

void job_phrase_slowest(struct buf *out, const struct job_findings *job)
{
	const struct slowest *s = &job->slowest;
	static const double even_percent = 1;
	if (job->n_ended_early > 0 && job->work_s.count > 0)
		buf_printf(out, "%zu rank%s that ended early %s not compared. ", job->n_ended_early,
			job->n_ended_early == 1 ? "" : "s", job->n_ended_early == 1 ? "is" : "are");
	if (s->rank < 0)
		return;
	const struct job_rank *rank = &job->ranks[s->rank];
	if (!(s->over_percent >= even_percent)) {
		buf_str(out, "No rank worked noticeably longer than the mean.");
	} else {
		buf_str(out, "Slowest: ");
		if (value_ok(rank->rank))
			buf_printf(out, "rank %lld on ", (long long)rank->rank);
		buf_printf(out, "%.60s worked ", job->nodes[rank->node].name);
		human_time(out, s->over_mean_s);
		buf_str(out, " (");
		human_percent(out, s->over_percent);
		buf_printf(out, ") longer than the mean of %s%lld. The others waited ",
			job->n_ended_early > 0 ? "the " : "all ", (long long)job->work_s.count);
		human_time(out, s->waited_s);
		buf_str(out, " for it, together");
		if (!isnan(s->waited_j)) {
			buf_str(out, ", and used about ");
			human_energy(out, s->waited_j);
			buf_str(out, " meanwhile (estimated)");
		}
		buf_char(out, '.');
	}
	if (job->waiting_s.count == 0)
		buf_str(out,
			" No block names look like waits, so all time of a rank counts as work; name them "
			"with --waiting PATTERN.");
}
