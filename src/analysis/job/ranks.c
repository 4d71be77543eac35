/* Rows by rank. Successive recordings of one rank and step are restarts in one row; simultaneous recordings have rows
 * of their own. */
#include "analysis/job/internal.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"

#include <errno.h>

static const char *command_of(const struct run *run)
{
	return run->n_segments > 0 ? run->segments[0].command_json : NULL;
}

static int64_t restart_of(const struct run *run)
{
	int64_t restart = run_metadata_i64(run, META_KEY_RESTART);
	return value_ok(restart) ? restart : 0; // the first start has no restart count
}

// A recording without a rank, such as a batch script, is a restart if the job was requeued and the command is the same.
static bool is_requeued(const struct job_rank *row, const struct run *run)
{
	const char *before = command_of(&row->run->run), *now = command_of(run);
	return restart_of(run) != restart_of(&row->run->run) && before != NULL && now != NULL &&
		strcmp(before, now) == 0;
}

static struct job_rank *rank_of(struct job_work *work, const struct member *member)
{
	struct job_findings *job = work->job;
	const struct run *run = &member->from->run;
	int64_t rank = run_metadata_i64(run, META_KEY_RANK);
	const char *step = run_metadata(run, META_KEY_JOB_STEP);
	double start_s = (double)job_clock_ns(work, member, member->start_ns) / 1e9;
	double end_s = (double)job_clock_ns(work, member, member->end_ns) / 1e9;
	for (size_t i = 0; !member->nested && i < job->n_ranks; i++) {
		struct job_rank *row = &job->ranks[i];
		if (row->rank != rank || !text_is_same(row->step, step) || row->nested)
			continue;
		if (!value_ok(rank)) {
			if (is_requeued(row, run))
				return row;
			continue;
		}
		// The clocks of two machines can differ by seconds, but not by most of a run.
		bool again = restart_of(run) != restart_of(&row->run->run) ||
			start_s >= row->end_s - (row->end_s - row->start_s) / 2 ||
			end_s <= row->start_s + (row->end_s - row->start_s) / 2;
		if (again)
			return row;
	}
	struct job_rank *row = &job->ranks[job->n_ranks++];
	*row = (struct job_rank){.step = step,
		.rank = rank,
		.start_s = start_s,
		.end_s = end_s,
		.complete = true,
		.waiting_s = (double)NAN,
		.waiting_j = (double)NAN,
		.end_wait_s = (double)NAN,
		.nested = member->nested};
	return row;
}

static double nan_sum(double sum, double value)
{
	return isnan(value) ? sum : isnan(sum) ? value : sum + value;
}

static void take_latest(struct job_rank *row, const struct member *member)
{
	const struct run *run = &member->from->run;
	const struct run_segment *last = run->n_segments > 0 ? &run->segments[run->n_segments - 1] : NULL;
	row->findings = &member->findings;
	row->run = member->from;
	row->node = member->node;
	row->local_rank = run_metadata_i64(run, META_KEY_LOCAL_RANK);
	row->restart = run_metadata_i64(run, META_KEY_RESTART);
	row->complete = member->findings.complete;
	row->exit_code = last != NULL ? last->exit_code : VALUE_MISSING;
}

// Recordings of one rank can be of different nodes and GPUs.
static int add_domains(struct job_work *work, struct job_rank *row, const struct findings *f, double known)
{
	struct rank_domain *all = arena_alloc(work->arena, row->n_domains + f->n_domains, sizeof(*all));
	if (all == NULL)
		return -ENOMEM;
	if (row->n_domains > 0)
		memcpy(all, row->domains, row->n_domains * sizeof(*all));
	row->domains = all;
	for (size_t d = 0; d < f->n_domains; d++) {
		const char *name = f->domains[d].device->name;
		size_t k = 0;
		while (k < row->n_domains && strcmp(all[k].name, name) != 0)
			k++;
		if (k == row->n_domains)
			all[row->n_domains++] = (struct rank_domain){name, f->domains[d].ledger.target_j + known};
		else // the sum is unknown if one term is
			all[k].target_j += f->domains[d].ledger.target_j + known;
	}
	return 0;
}

static int add_member(struct job_work *work, struct job_rank *row, struct member *member)
{
	const struct findings *f = &member->findings;
	// The recorder was killed before it stored two samples: the usage is unknown, not 0.
	const double known = member->from->run.n < 2 && !f->complete ? (double)NAN : 0;
	double start_s = (double)job_clock_ns(work, member, member->start_ns) / 1e9;
	double end_s = (double)job_clock_ns(work, member, member->end_ns) / 1e9;
	row->runs++;
	row->duration_s += f->duration_s + known;
	row->cpu_s += f->target_cpu_s + known;
	row->energy_j += f->ledger.target_j + known; // the sum is unknown if one term is
	row->error_j += f->target_error_j + known;   // linear: errors of a method are systematic
	if (!isnan(member->waiting_s)) {     // waiting time is known: so is the energy, or the sum is unknown
		row->waiting_j = isnan(row->waiting_s) ? member->waiting_j : row->waiting_j + member->waiting_j;
		row->waiting_s = nan_sum(row->waiting_s, member->waiting_s);
	}
	row->waiting_w = row->waiting_s > 0 ? row->waiting_j / row->waiting_s : (double)NAN;
	if (!member->nested && !isnan(member->waiting_s))
		work->job->waiting_j += member->waiting_j;
	bool later = row->runs == 1 || end_s >= row->end_s;
	row->start_s = fmin(row->start_s, start_s);
	row->end_s = fmax(row->end_s, end_s);
	member->rank = (size_t)(row - work->job->ranks);
	if (later) {
		row->cut_off += !row->complete;
		take_latest(row, member);
	} else {
		row->cut_off += !f->complete;
	}
	return add_domains(work, row, f, known);
}

/* ---- order ---- */

struct ranked {
	size_t from;
	double step_start_s;
	const struct job_rank *row;
};

// Sort order: by step, in order of the steps' starts; nested recordings and those without a rank come last.
static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->row->nested != y->row->nested)
		return x->row->nested ? 1 : -1;
	if (x->step_start_s != y->step_start_s)
		return x->step_start_s < y->step_start_s ? -1 : 1;
	if (!text_is_same(x->row->step, y->row->step))
		return x->row->step == NULL || (y->row->step != NULL && strcmp(x->row->step, y->row->step) < 0) ? -1
														: 1;
	if (x->row->rank != y->row->rank)
		return (uint64_t)x->row->rank < (uint64_t)y->row->rank ? -1 : 1; // VALUE_MISSING sorts last
	return (x->row->start_s > y->row->start_s) - (x->row->start_s < y->row->start_s);
}

static double step_start_s(const struct job_findings *job, const char *step)
{
	double start_s = (double)NAN;
	for (size_t i = 0; i < job->n_ranks; i++)
		if (text_is_same(job->ranks[i].step, step))
			start_s = fmin(start_s, job->ranks[i].start_s);
	return start_s;
}

static int put_in_order(struct job_work *work)
{
	struct job_findings *job = work->job;
	struct ranked *order = arena_alloc(work->arena, job->n_ranks, sizeof(*order));
	struct job_rank *sorted = arena_alloc(work->arena, job->n_ranks, sizeof(*sorted));
	size_t *now_at = arena_alloc(work->arena, job->n_ranks, sizeof(*now_at));
	if (order == NULL || sorted == NULL || now_at == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < job->n_ranks; i++)
		order[i] = (struct ranked){i, step_start_s(job, job->ranks[i].step), &job->ranks[i]};
	qsort(order, job->n_ranks, sizeof(*order), by_rank);
	for (size_t i = 0; i < job->n_ranks; i++) {
		sorted[i] = job->ranks[order[i].from];
		now_at[order[i].from] = i;
		bool known = sorted[i].nested || !value_ok(sorted[i].rank); // a batch script is no step
		for (size_t k = 0; k < i && !known; k++)
			known = text_is_same(sorted[k].step, sorted[i].step);
		job->n_steps += !known;
	}
	for (size_t i = 0; i < work->runs->n; i++)
		work->members[i].rank = now_at[work->members[i].rank];
	job->ranks = sorted;
	return 0;
}

int ranks_make(struct job_work *work)
{
	struct job_findings *job = work->job;
	job->ranks = arena_alloc(work->arena, work->runs->n, sizeof(*job->ranks));
	if (job->ranks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < work->runs->n; i++)
		if (add_member(work, rank_of(work, &work->members[i]), &work->members[i]) < 0)
			return -ENOMEM;
	bool any = false;
	for (size_t i = 0; i < job->n_ranks; i++)
		any |= !isnan(job->ranks[i].waiting_s);
	job->waiting_j = any ? job->waiting_j : (double)NAN;
	return put_in_order(work);
}
