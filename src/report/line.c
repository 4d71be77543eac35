/* A run or a job as one line, for comments, prompts and logs. */
#include "report/report.h"

#include "base/util.h"
#include "report/phrases.h"

static void add_energy(struct buf *out, const struct findings *findings)
{
	if (isnan(findings->total_j)) {
		buf_str(out, "energy n/a");
		return;
	}
	human_energy(out, findings->total_j);
	if (!isnan(findings->error_j)) {
		buf_char(out, ' ');
		phrase_energy_error(out, findings->total_j, findings->error_j, findings->calibration_error_j);
	}
	buf_printf(out, " %s", provenance_name(findings->provenance));
}

void report_line(const struct findings *findings, struct buf *out)
{
	add_energy(out, findings);
	buf_str(out, ", ");
	human_time(out, findings->duration_s);
	buf_char(out, '\n');
}

static void add_count(struct buf *out, size_t n, const char *what)
{
	buf_u64(out, n);
	buf_printf(out, " %s%s", what, n == 1 ? "" : "s");
}

// Counts ranks only, not batch scripts or other recordings in the folder.
static void add_ranks(struct buf *out, const struct job_findings *job)
{
	size_t n = 0;
	for (size_t i = 0; i < job->n_ranks; i++)
		n += value_ok(job->ranks[i].rank);
	add_count(out, n > 0 ? n : job->n_ranks, n > 0 ? "rank" : "recording");
}

void job_report_line(const struct job_findings *job, struct buf *out)
{
	add_energy(out, &job->total);
	buf_str(out, ", ");
	human_time(out, job->total.duration_s);
	buf_str(out, ", ");
	add_ranks(out, job);
	buf_str(out, " on ");
	add_count(out, job->n_nodes, "node");
	if (job->n_nodes_unknown > 0 && !isnan(job->total.total_j))
		buf_printf(out, ", without %zu of unknown energy", job->n_nodes_unknown);
	if (value_ok(job->missing_ranks) && job->missing_ranks > 0)
		buf_printf(out, ", %lld of %lld ranks missing", (long long)job->missing_ranks,
			(long long)job->world_size);
	buf_char(out, '\n');
}
