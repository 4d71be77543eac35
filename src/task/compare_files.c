#include "task/task.h"

#include "base/util.h"
#include "store/output_file.h"

#include <errno.h>
#include <string.h>

// Total for all runs: a page of many runs must still open quickly.
enum { BUCKETS_OF_ALL = 6000, BUCKETS_MIN = 300, BUCKETS_MAX = 2000 };

static int load(const struct named_file *file, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_results, struct wattle_error *reterr)
{
	return file->store != NULL ? load_blocks_stored(file->store, file->file, statistic, arena, ret_results, reterr)
				   : load_blocks(file->file, statistic, arena, ret_results, reterr);
}

int compare_files(const struct named_file *files, size_t n, const char *statistic, struct arena *arena,
	struct comparison *ret_comparison, struct wattle_error *reterr)
{
	struct compare_session *sessions = arena_alloc(arena, n, sizeof(*sessions));
	struct saved_blocks *results = arena_alloc(arena, n, sizeof(*results));
	if (sessions == NULL || results == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		int r = load(&files[i], statistic, arena, &results[i], reterr);
		if (r < 0)
			return r;
		sessions[i] = (struct compare_session){files[i].name, &results[i]};
	}
	return compare_make(sessions, n, arena, ret_comparison, reterr);
}

/* ---- comparison with the runs ---- */

static size_t buckets_each(size_t n)
{
	size_t each = BUCKETS_OF_ALL / n;
	return each < BUCKETS_MIN ? BUCKETS_MIN : each > BUCKETS_MAX ? BUCKETS_MAX : each;
}

static int open_run(const struct named_file *file, const char *statistic, size_t buckets, struct arena *arena,
	struct compared_run *run, struct saved_blocks *ret_results, struct wattle_error *reterr)
{
	// The page of a comparison has no lanes.
	const struct chart_limits limits = {.buckets = buckets, .items = 1, .lanes = 1};
	if (file->store != NULL || !file_type_is_measurements(file->file)) // jobs have their own page
		return load(file, statistic, arena, ret_results, reterr);
	int r = load_findings(file->file, &run->run, &run->findings, reterr);
	if (r < 0)
		return r;
	run->is_run = true;
	r = charts_make(&run->findings, &limits, &run->charts);
	findings_drop_times(&run->findings); // many runs may be compared
	if (r < 0)
		return error_set(reterr, r, "%s: %s", file->file, strerror(-r));
	return load_blocks_of(&run->findings, file->file, statistic, arena, ret_results, reterr);
}

// Blocks that do not match must not suppress the rest of a page: the page states why they are missing.
static int without_blocks(const struct compare_session *sessions, struct saved_blocks *results, size_t n,
	struct arena *arena, struct comparison *ret_comparison, struct wattle_error *reterr)
{
	const char **warning = arena_alloc(arena, 1, sizeof(*warning));
	if (warning != NULL)
		*warning = arena_printf(arena, "%s; code blocks are left out", reterr->text);
	if (warning == NULL || *warning == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		results[i].n_blocks = 0;
	int r = compare_make(sessions, n, arena, ret_comparison, reterr);
	if (r == 0 && ret_comparison->n_warnings == 0) {
		ret_comparison->warnings = warning;
		ret_comparison->n_warnings = 1;
	}
	return r;
}

int compare_runs(const struct named_file *files, size_t n, const char *statistic, struct arena *arena,
	struct compared_run *ret_runs, struct comparison *ret_comparison, struct wattle_error *reterr)
{
	struct compare_session *sessions = arena_alloc(arena, n, sizeof(*sessions));
	struct saved_blocks *results = arena_alloc(arena, n, sizeof(*results));
	if (sessions == NULL || results == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		int r = open_run(&files[i], statistic, buckets_each(n), arena, &ret_runs[i], &results[i], reterr);
		if (r < 0)
			return r;
		sessions[i] = (struct compare_session){files[i].name, &results[i]};
	}
	int r = compare_make(sessions, n, arena, ret_comparison, reterr);
	return r == -EINVAL ? without_blocks(sessions, results, n, arena, ret_comparison, reterr) : r;
}

void compare_runs_finish(struct compared_run *runs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!runs[i].is_run)
			continue;
		charts_finish(&runs[i].charts);
		findings_finish(&runs[i].findings);
		run_finish(&runs[i].run);
	}
}
