/* Load imbalance of the ranks, and the cost of waiting for the slowest one. */
#include "analysis/job/internal.h"

#include "base/util.h"

// A batch script around the job's steps has no rank and is not compared with ranks, unless there are no ranks at all.
static bool is_in_step(const struct job_findings *job, const struct job_rank *rank)
{
	if (rank->nested || (job->n_steps > 0 && !value_ok(rank->rank)))
		return false;
	return job->n_steps < 2 || text_is_same(rank->step, job->compared_step);
}

static bool is_compared(const struct job_findings *job, const struct job_rank *rank)
{
	return is_in_step(job, rank) && !rank->ended_early;
}

/* Marks ranks that were killed, or restarted with a part of their work unrecorded: their shorter time is no load
 * imbalance. The test compares durations because the clocks of nodes can differ. If all ranks were stopped together,
 * none ended early. */
static void mark_early(struct job_findings *job, struct job_rank *rank)
{
	static const double early_part = 0.05, early_s = 1;
	double longest_s = 0;
	for (size_t i = 0; i < job->n_ranks; i++)
		if (!job->ranks[i].nested && text_is_same(job->ranks[i].step, rank->step))
			longest_s = fmax(longest_s, job->ranks[i].duration_s);
	bool failed = !rank->complete || rank->cut_off > 0 || (value_ok(rank->exit_code) && rank->exit_code != 0);
	bool is_early = isnan(rank->duration_s) ||
		longest_s - rank->duration_s > fmax(early_s, early_part * longest_s);
	rank->ended_early = !rank->nested && failed && is_early;
}

void imbalance_mark_early(struct job_work *work)
{
	for (size_t i = 0; i < work->job->n_ranks; i++)
		mark_early(work->job, &work->job->ranks[i]);
}

// Chooses the step to compare: steps of one job do different things. It is the one with the longest working time.
static void choose_step(struct job_findings *job)
{
	double max_s = -1;
	for (size_t i = 0; i < job->n_ranks && job->n_steps > 1; i++) {
		double sum_s = 0;
		for (size_t k = 0; k < job->n_ranks; k++)
			if (!job->ranks[k].nested && value_ok(job->ranks[k].rank) &&
				text_is_same(job->ranks[k].step, job->ranks[i].step) && !isnan(job->ranks[k].work_s))
				sum_s += job->ranks[k].work_s;
		if (sum_s > max_s) {
			max_s = sum_s;
			job->compared_step = job->ranks[i].step;
		}
	}
}

struct spread spread_of(const double *values, size_t n)
{
	const double none = (double)NAN;
	struct spread s = {none, none, none, none, none, 0, -1, none};
	double total = 0, squares = 0;
	for (size_t i = 0; i < n; i++) {
		if (isnan(values[i]))
			continue;
		s.min = fmin(s.min, values[i]);
		if (s.max_at < 0 || values[i] > s.max) {
			s.max = values[i];
			s.max_at = (int64_t)i;
		}
		total += values[i];
		s.count++;
	}
	if (s.count == 0)
		return s;
	s.total = total;
	s.mean = total / (double)s.count;
	for (size_t i = 0; i < n; i++)
		squares += isnan(values[i]) ? 0 : (values[i] - s.mean) * (values[i] - s.mean);
	s.std = sqrt(squares / (double)s.count);
	if (s.std < 1e-12 * fabs(s.mean)) // rounding error of equal values
		s.std = 0;
	if (s.count > 1 && s.max > 0)
		s.imbalance_percent = fmax(0, s.max - s.mean) / s.max * 100;
	return s;
}

static void end_waits(struct job_findings *job)
{
	double last_s = (double)NAN;
	for (size_t i = 0; i < job->n_ranks; i++)
		if (is_in_step(job, &job->ranks[i]))
			last_s = fmax(last_s, job->ranks[i].end_s);
	for (size_t i = 0; i < job->n_ranks; i++)
		if (is_in_step(job, &job->ranks[i]))
			job->ranks[i].end_wait_s = last_s - job->ranks[i].end_s;
}

static int over_ranks(struct job_work *work)
{
	struct job_findings *job = work->job;
	const struct {
		size_t of_rank;
		struct spread *spread;
	} all[] = {
		{offsetof(struct job_rank, duration_s), &job->duration_s},
		{offsetof(struct job_rank, work_s), &job->work_s},
		{offsetof(struct job_rank, cpu_s), &job->cpu_s},
		{offsetof(struct job_rank, energy_j), &job->energy_j},
		{offsetof(struct job_rank, waiting_s), &job->waiting_s},
		{offsetof(struct job_rank, end_wait_s), &job->end_wait_s},
	};
	double *values = arena_alloc(work->arena, job->n_ranks, sizeof(*values));
	if (values == NULL)
		return -1;
	for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
		for (size_t i = 0; i < job->n_ranks; i++) {
			const char *rank = (const char *)&job->ranks[i];
			values[i] = is_compared(job, &job->ranks[i])
				? *(const double *)(const void *)(rank + all[k].of_rank)
				: (double)NAN;
		}
		*all[k].spread = spread_of(values, job->n_ranks);
	}
	return 0;
}

/* Time and energy that the other ranks spent waiting for the slowest one. A rank with waiting blocks has a measured
 * waiting power, the others use their mean power. The energy is an estimate in any case: without the wait a rank may do
 * other work. */
static void slowest(struct job_findings *job)
{
	const double none = (double)NAN;
	job->slowest = (struct slowest){-1, none, none, none, none};
	if (job->work_s.count < 2)
		return;
	const struct job_rank *slow = &job->ranks[job->work_s.max_at];
	struct slowest s = {.rank = job->work_s.max_at, .over_mean_s = slow->work_s - job->work_s.mean};
	s.over_percent = job->work_s.mean > 0 ? s.over_mean_s / job->work_s.mean * 100 : none;
	for (size_t i = 0; i < job->n_ranks; i++) {
		const struct job_rank *rank = &job->ranks[i];
		if (!is_compared(job, rank))
			continue;
		double waited_s = slow->work_s - rank->work_s;
		double mean_w = rank->duration_s > 0 ? rank->energy_j / rank->duration_s : none;
		double power_w = rank->waiting_w >= 0 ? rank->waiting_w : mean_w;
		s.waited_s += waited_s;
		s.waited_j += waited_s > 0 ? waited_s * power_w : 0;
	}
	job->slowest = s;
}

void imbalance_make(struct job_work *work)
{
	struct job_findings *job = work->job;
	for (size_t i = 0; i < job->n_ranks; i++) {
		struct job_rank *rank = &job->ranks[i];
		rank->work_s = rank->duration_s - (rank->waiting_s > 0 ? rank->waiting_s : 0);
	}
	choose_step(job);
	for (size_t i = 0; i < job->n_ranks; i++)
		job->n_ended_early += job->ranks[i].ended_early && is_in_step(job, &job->ranks[i]);
	end_waits(job);
	if (over_ranks(work) == 0)
		slowest(job);
}
