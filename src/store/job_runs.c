#include "store/job_runs.h"

#include "base/util.h"
#include "store/list.h"

#include <errno.h>
#include <string.h>

/* ---- limits on what is read ---- */

int64_t job_every_ns(const struct job_weight *weight, bool all_samples)
{
	static const int64_t steps_s[] = {1, 2, 5, 10, 20, 30, 60};
	if (all_samples || weight->samples <= JOB_SAMPLES_MAX)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(steps_s); i++)
		if (weight->duration_s / (double)steps_s[i] <= JOB_SAMPLES_MAX)
			return steps_s[i] * NS_PER_S;
	return 60 * NS_PER_S;
}

/* ---- selection of the job ---- */

static void add_name(struct buf *names, const char *id, size_t n)
{
	if (n < JOB_NAMES_MAX)
		buf_printf(names, "%s%s", n > 0 ? ", " : "", id != NULL ? id : "none (without an ID)");
	else if (n == JOB_NAMES_MAX)
		buf_str(names, ", …");
}

// Whether `a` precedes `b` in messages: by number, because all jobs of an array start at once.
static bool is_before(const char *a, const char *b)
{
	return a != NULL && (b == NULL || strverscmp(a, b) < 0);
}

// Returns the entry that follows `last` in that order; false: `last` is the final one.
static bool next_job(const struct job_entry *entries, size_t n, const struct job_entry *last,
	const struct job_entry **ret)
{
	const struct job_entry *next = NULL;
	for (size_t i = 0; i < n; i++) {
		const struct job_entry *entry = &entries[i];
		if (entry->in_job && (last == NULL || is_before(last->job_id, entry->job_id)) &&
			(next == NULL || is_before(entry->job_id, next->job_id)))
			next = entry;
	}
	*ret = next;
	return next != NULL;
}

static size_t name_jobs(const struct job_entry *entries, size_t n, struct buf *names, const char **ret_only)
{
	size_t n_jobs = 0;
	for (const struct job_entry *entry = NULL; next_job(entries, n, entry, &entry);) {
		add_name(names, entry->job_id, n_jobs++);
		*ret_only = entry->job_id;
	}
	return n_jobs;
}

int job_choose(const struct job_choice *choice, const struct job_entry *entries, size_t n, const char *where,
	const char **ret_id, struct wattle_error *reterr)
{
	struct buf names;
	const char *only = NULL;
	buf_init(&names, 4096);
	size_t n_jobs = name_jobs(entries, n, &names, &only);
	bool found = false;
	for (size_t i = 0; choice->job_id != NULL && i < n; i++)
		found |= entries[i].job_id != NULL && strcmp(entries[i].job_id, choice->job_id) == 0;
	const char *wanted = choice->job_id;
	for (size_t i = 0; text_is_same(choice->job_id, JOB_WITHOUT_ID) && !found && i < n; i++)
		if (entries[i].in_job && entries[i].job_id == NULL) {
			found = true;
			wanted = NULL;
			break;
		}
	int r = 0;
	if (n_jobs == 0 && !found)
		r = error_set(reterr, -ENOENT,
			"%s has no run of a job (run under srun, mpirun or torchrun, or with --job ID); `wattle list %s` lists its runs, `wattle report RUN` reports one",
			where, where);
	else if (choice->job_id != NULL && !found)
		r = error_set(reterr, -ENOENT, "%s has no run of job %s; it has jobs %s", where, choice->job_id,
			names.data);
	else if (choice->job_id == NULL && n_jobs > 1)
		r = error_set(reterr, -EINVAL, "%s has runs of several jobs, %s: %s", where,
			choice->remedy != NULL ? choice->remedy : "choose one with --job", names.data);
	buf_finish(&names);
	if (r == 0)
		*ret_id = choice->job_id != NULL ? wanted : only;
	return r;
}

bool job_accepts(const struct job_choice *choice, const char *id, const struct job_entry *entry)
{
	if (!entry->in_job || !text_is_same(id, entry->job_id))
		return false;
	return choice->step == NULL || text_is_same(choice->step, entry->step);
}

int job_fail_step(const struct job_choice *choice, const char *where, struct wattle_error *reterr)
{
	return error_set(reterr, -ENOENT, "%s has no run of step %s of this job", where, choice->step);
}

/* ---- the runs ---- */

int job_add_problem(struct job_runs *runs, const char *text)
{
	const char **larger = arena_alloc(runs->arena, runs->n_problems + 1, sizeof(*larger));
	if (larger == NULL)
		return -ENOMEM;
	if (runs->n_problems > 0)
		memcpy(larger, runs->problems, runs->n_problems * sizeof(*larger));
	larger[runs->n_problems++] = arena_text(runs->arena, text);
	runs->problems = larger;
	return 0;
}

static int64_t start_of(const struct run *run)
{
	return run->n_segments > 0 ? run->segments[0].wall_start_ns : VALUE_MISSING;
}

static int compare_i64(int64_t a, int64_t b)
{
	if (value_ok(a) != value_ok(b)) // unknown values last
		return value_ok(a) ? -1 : 1;
	return (a > b) - (a < b);
}

static int64_t restart_of(const struct run *run)
{
	int64_t restart = run_metadata_i64(run, "restart");
	return value_ok(restart) ? restart : 0;
}

static int by_rank(const void *left, const void *right)
{
	const struct job_run *a = left, *b = right;
	int order = compare_i64(run_metadata_i64(&a->run, "rank"), run_metadata_i64(&b->run, "rank"));
	if (order == 0)
		order = compare_i64(restart_of(&a->run), restart_of(&b->run));
	if (order == 0)
		order = compare_i64(start_of(&a->run), start_of(&b->run));
	return order != 0 ? order : strcmp(a->where, b->where);
}

void job_sort(struct job_runs *runs)
{
	if (runs->n > 0)
		qsort(runs->runs, runs->n, sizeof(*runs->runs), by_rank);
}

void job_runs_finish(struct job_runs *runs)
{
	for (size_t i = 0; i < runs->n; i++)
		run_finish(&runs->runs[i].run);
	arena_free(runs->arena);
	*runs = (struct job_runs){0};
}

/* ---- a folder ---- */

static bool is_known(const char *text)
{
	return text != NULL && text[0] != '\0';
}

static struct job_entry *entries_of(const struct run_listing *listings, size_t n, struct arena *arena)
{
	struct job_entry *entries = arena_alloc(arena, n, sizeof(*entries));
	for (size_t i = 0; entries != NULL && i < n; i++) {
		const struct run_listing *listing = &listings[i];
		entries[i] = (struct job_entry){
			.job_id = is_known(listing->job_id) ? listing->job_id : NULL,
			.step = listing->job_step,
			.in_job = listing->problem == NULL && (is_known(listing->job_id) || value_ok(listing->rank)),
		};
	}
	return entries;
}

static int report_problems(struct job_runs *runs, const struct run_listing *listings, size_t n)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		if (listings[i].problem != NULL)
			r = job_add_problem(runs, listings[i].problem);
	return r;
}

// For a run that is still recording, the number of samples is estimated from its duration.
static void job_weight_add(const struct run_listing *listing, struct job_weight *weight)
{
	double duration_s = isfinite(listing->duration_s) ? listing->duration_s : 0;
	weight->duration_s += duration_s;
	if (value_ok(listing->samples))
		weight->samples += (double)listing->samples;
	else if (value_ok(listing->interval_ns) && listing->interval_ns > 0)
		weight->samples += duration_s * 1e9 / (double)listing->interval_ns;
}

static struct job_run *find_run(struct job_runs *runs, const char *id)
{
	for (size_t i = 0; id != NULL && i < runs->n; i++)
		if (text_is_same(id, run_metadata(&runs->runs[i].run, "id")))
			return &runs->runs[i];
	return NULL;
}

// A copy of a file is not another run: the more complete file is kept.
static int leave_copy_out(struct job_runs *runs, struct job_run *other, struct job_run *now)
{
	struct wattle_error error = {0};
	if (now->run.n > other->run.n) {
		struct job_run swapped = *other;
		*other = *now;
		*now = swapped;
	}
	error_set(&error, 0, "%s is the same run as %s and is counted once.", now->where, other->where);
	run_finish(&now->run);
	*now = (struct job_run){0};
	return job_add_problem(runs, error.text);
}

static int load_file(struct job_runs *runs, const char *path)
{
	const struct run_extent extent = {.every_ns = runs->every_ns};
	struct wattle_error error = {0};
	struct job_run *run = &runs->runs[runs->n];
	int r = run_load_extent(path, &extent, &run->run, &error);
	if (r < 0)
		return r == -ENOMEM ? r : job_add_problem(runs, error.text);
	run->where = path;
	struct job_run *other = find_run(runs, run_metadata(&run->run, "id"));
	if (other != NULL)
		return leave_copy_out(runs, other, run);
	runs->n++;
	return 0;
}

static int load_files(const char *folder, const struct job_choice *choice, struct job_runs *runs,
	struct wattle_error *reterr)
{
	struct run_listing *listings;
	size_t n;
	struct job_weight weight = {0};
	int r = list_runs(folder, runs->arena, &listings, &n, reterr);
	if (r < 0)
		return r;
	struct job_entry *entries = entries_of(listings, n, runs->arena);
	runs->runs = arena_alloc(runs->arena, n, sizeof(*runs->runs));
	if (entries == NULL || runs->runs == NULL || report_problems(runs, listings, n) < 0)
		return error_set(reterr, -ENOMEM, "%s: out of memory", folder);
	r = job_choose(choice, entries, n, folder, &runs->job_id, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (job_accepts(choice, runs->job_id, &entries[i]))
			job_weight_add(&listings[i], &weight);
	runs->every_ns = job_every_ns(&weight, choice->all_samples);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (job_accepts(choice, runs->job_id, &entries[i]))
			r = load_file(runs, listings[i].path);
	if (r < 0)
		return error_set(reterr, r, "%s: out of memory", folder);
	if (runs->n == 0 && choice->step != NULL)
		return job_fail_step(choice, folder, reterr);
	return runs->n > 0 ? 0
			   : error_set(reterr, -EINVAL, "%s: can't read any run of the job: %s", folder,
				     runs->n_problems > 0 ? runs->problems[runs->n_problems - 1] : "");
}

int job_runs_from_folder(const char *folder, const struct job_choice *choice, struct job_runs *ret_runs,
	struct wattle_error *reterr)
{
	struct job_runs runs = {.arena = arena_new()};
	if (runs.arena == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", folder);
	int r = load_files(folder, choice, &runs, reterr);
	if (r < 0) {
		job_runs_finish(&runs);
		return r;
	}
	job_sort(&runs);
	*ret_runs = runs;
	return 0;
}
