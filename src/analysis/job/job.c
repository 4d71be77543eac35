#include "analysis/job/job.h"

#include "analysis/job/internal.h"
#include "analysis/metadata_keys.h"
#include "base/util.h"

#include <errno.h>

static const int64_t INTERVAL_DEFAULT_NS = 100 * NS_PER_MS;

// The largest interval between stored samples, so that downsampling does not look like holes.
static int64_t interval_ns(const struct job_runs *runs)
{
	static const int64_t longest_ns = 3600 * NS_PER_S; // longest interval that wattle accepts; a longer one comes
							   // from a damaged file
	int64_t max_ns = runs->every_ns;
	for (size_t i = 0; i < runs->n; i++) {
		int64_t one_ns = run_metadata_i64(&runs->runs[i].run, META_KEY_INTERVAL);
		max_ns = one_ns > max_ns && one_ns <= longest_ns ? one_ns : max_ns;
	}
	return max_ns > 0 ? max_ns : INTERVAL_DEFAULT_NS;
}

// The first non-empty value of a key in any run; one launcher started them all.
static const char *reported(const struct job_work *work, const char *key)
{
	for (size_t i = 0; i < work->runs->n; i++) {
		const char *value = run_metadata(&work->runs->runs[i].run, key);
		if (value != NULL && value[0] != '\0')
			return value;
	}
	return NULL;
}

// The launcher of the ranks, not that of a recording around them.
static const char *launcher(const struct job_work *work)
{
	for (size_t i = 0; i < work->runs->n; i++) {
		const struct run *run = &work->runs->runs[i].run;
		if (run_metadata(run, META_KEY_RANK) != NULL && run_metadata(run, META_KEY_JOB_LAUNCHER) != NULL)
			return run_metadata(run, META_KEY_JOB_LAUNCHER);
	}
	return reported(work, META_KEY_JOB_LAUNCHER);
}

static int64_t largest(const struct job_work *work, const char *key)
{
	int64_t most = VALUE_MISSING; // smaller than any known value
	for (size_t i = 0; i < work->runs->n; i++) {
		int64_t value = run_metadata_i64(&work->runs->runs[i].run, key);
		most = value > most ? value : most;
	}
	return most;
}

static void set_node_names(struct job_work *work)
{
	struct job_findings *job = work->job;
	job->id = work->runs->job_id != NULL ? work->runs->job_id : reported(work, META_KEY_JOB_ID);
	job->name = reported(work, META_KEY_JOB_NAME);
	job->user = reported(work, META_KEY_JOB_USER) != NULL ? reported(work, META_KEY_JOB_USER)
							      : reported(work, META_KEY_USER);
	job->cluster = reported(work, META_KEY_JOB_CLUSTER);
	job->launcher = launcher(work);
	job->world_size = largest(work, META_KEY_WORLD_SIZE);
	job->n_nodes_expected = largest(work, META_KEY_N_NODES);
}

/* Counts ranks without a run, by the largest world size of the job's steps: an earlier smaller step has the same rank
 * numbers. */
static void count_missing(struct job_findings *job)
{
	int64_t seen = 0;
	job->missing_ranks = VALUE_MISSING;
	if (!value_ok(job->world_size))
		return;
	for (size_t i = 0; i < job->n_ranks; i++) {
		const struct job_rank *rank = &job->ranks[i];
		bool counts = !rank->nested && value_ok(rank->rank) && rank->rank < job->world_size;
		for (size_t k = 0; k < i && counts; k++)
			counts = job->ranks[k].nested || job->ranks[k].rank != rank->rank;
		seen += counts;
	}
	job->missing_ranks = job->world_size > seen ? job->world_size - seen : 0;
}

// The step that all ranks share. NULL if there is another one, or a recorded batch script.
static const char *only_step(const struct job_findings *job)
{
	const char *step = job->ranks[0].step;
	for (size_t i = 1; i < job->n_ranks && step != NULL; i++)
		if (!job->ranks[i].nested && (job->ranks[i].step == NULL || strcmp(job->ranks[i].step, step) != 0))
			return NULL;
	return step;
}

static void count_ranks(struct job_findings *job)
{
	for (size_t i = 0; i < job->n_ranks; i++)
		job->nodes[job->ranks[i].node].n_ranks += !job->ranks[i].nested;
	if (job->n_steps < 2 && job->n_ranks > 0)
		job->step = only_step(job);
}

static int make_members(struct job_work *work)
{
	for (size_t i = 0; i < work->runs->n; i++) {
		struct member *member = &work->members[i];
		if (member_make(work, member) < 0 || waiting_make(work, member) < 0)
			return -ENOMEM;
		findings_drop_times(&member->findings); // saves memory in jobs of many ranks
	}
	return 0;
}

static int make(struct job_work *work)
{
	if (machines_find(work) < 0)
		return -ENOMEM;
	members_mark_nested(work);
	set_node_names(work);
	for (size_t m = 0; m < work->n_machines; m++)
		if (machine_make(work, &work->machines[m]) < 0)
			return -ENOMEM;
	if (make_members(work) < 0)
		return -ENOMEM;
	for (size_t m = 0; m < work->n_machines; m++)
		ledgers_clamp(work, &work->machines[m]);
	if (nodes_make(work) < 0 || total_make(work) < 0 || ranks_make(work) < 0)
		return -ENOMEM;
	imbalance_mark_early(work);
	if (job_blocks_make(work) < 0)
		return -ENOMEM;
	count_ranks(work->job);
	count_missing(work->job);
	imbalance_make(work);
	return job_warnings_make(work);
}

int job_make(const struct job_runs *runs, const struct job_options *options, struct job_findings *ret_job)
{
	struct arena *arena = arena_new();
	struct job_work *work = arena != NULL ? arena_alloc(arena, 1, sizeof(*work)) : NULL;
	if (work == NULL) {
		arena_free(arena);
		return -ENOMEM;
	}
	struct job_findings job = {.runs = runs, .arena = arena, .work = work};
	*work = (struct job_work){.runs = runs,
		.options = options,
		.job = &job,
		.arena = arena,
		.interval_ns = interval_ns(runs)};
	int r = runs->n > 0 ? make(work) : -ENOMEM;
	if (r < 0) {
		job_finish(&job);
		return r;
	}
	work->job = NULL; // the caller owns it now
	*ret_job = job;
	return 0;
}

void job_finish(struct job_findings *job)
{
	struct job_work *work = job->work;
	if (work == NULL)
		return;
	for (size_t i = 0; work->members != NULL && i < work->runs->n; i++)
		findings_finish(&work->members[i].findings);
	for (size_t m = 0; m < work->n_machines; m++)
		findings_finish(&work->machines[m].findings);
	findings_finish(&job->total);
	arena_free(job->arena);
	*job = (struct job_findings){0};
}

double job_time_s(const struct job_findings *job, size_t run, int64_t t_ns)
{
	return (double)job_clock_ns(job->work, &job->work->members[run], t_ns) / 1e9;
}

size_t job_rank_of(const struct job_findings *job, size_t run)
{
	return job->work->members[run].rank;
}
