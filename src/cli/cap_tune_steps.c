/* The amount of work of the program: calls of a block or reports of a metric, from the run file that our recorder writes. A
 * program that was started earlier writes its steps elsewhere: to a span file (WATTLE_SPANS), or to the run file of the
 * recorder that it was started under. */
#include "cli/cap_tune.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/proc.h"
#include "base/util.h"
#include "span/reader/reader.h"
#include "store/output_file.h"
#include "store/sub_tracking.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, ANCESTORS = 64 };

/* ---- a running program ---- */

// An empty variable counts as unset.
static const char *variable(const char *environment, size_t size, const char *name)
{
	const char *value = proc_environ_find(environment, size, name);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

// Expands WATTLE_SPANS as the writer does: %p is the pid, and a relative name is relative to the program's initial folder.
static void span_file_of(int64_t pid, const char *pattern, char *out, size_t size)
{
	int n = 0;
	if (pattern[0] != '/')
		n = snprintf(out, size, "/proc/%lld/cwd/", (long long)pid);
	for (size_t at = (size_t)n; at < size; pattern++) {
		if (pattern[0] == '%' && pattern[1] == 'p') {
			at += (size_t)snprintf(out + at, size - at, "%lld", (long long)pid);
			pattern++;
			continue;
		}
		out[at++] = *pattern;
		if (*pattern == '\0')
			return;
	}
	out[size - 1] = '\0';
}

// Finds a run file among the open files of a process.
static bool find_run_file(int64_t pid, char *out, size_t size)
{
	char folder[64];
	snprintf(folder, sizeof(folder), "/proc/%lld/fd", (long long)pid);
	wattle_cleanup_dir DIR *dir = opendir(folder);
	if (dir == NULL)
		return false;
	for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, out, size - 1);
		if (n <= 0 || out[0] != '/')
			continue;
		out[n] = '\0';
		if (file_type_check_run(out, NULL) == 0)
			return true;
	}
	return false;
}

// `wattle run` is an ancestor of its command; a tracker's recorder is a descendant or a sibling of the program.
static bool find_recorder(int64_t pid, char *out, size_t size)
{
	int64_t at = pid;
	for (int i = 0; i < ANCESTORS && at > 1; i++, at = proc_parent((pid_t)at))
		if (find_run_file(at, out, size))
			return true;
	wattle_cleanup_dir DIR *proc = opendir("/proc");
	if (proc == NULL)
		return false;
	for (const struct dirent *entry; (entry = readdir(proc)) != NULL;) {
		long long child = strtoll(entry->d_name, NULL, 10);
		if (child > 0 && proc_parent((pid_t)child) == pid && find_run_file(child, out, size))
			return true;
	}
	return false;
}

static int find_steps_of(const struct cap_tune_options *options, char *out, size_t size, struct wattle_error *reterr)
{
	size_t environment_size;
	wattle_cleanup_free char *environment = proc_environ((pid_t)options->pid, &environment_size);
	if (environment == NULL)
		return error_set(reterr, -errno, "--pid: can't read process %lld: %s", (long long)options->pid,
			strerror(errno));
	const char *pattern = variable(environment, environment_size, "WATTLE_SPANS");
	const char *ring = variable(environment, environment_size, "WATTLE_RING");
	if (ring != NULL && find_recorder(options->pid, out, size))
		return 0;
	if (pattern != NULL) {
		span_file_of(options->pid, pattern, out, size);
		return 0;
	}
	if (ring != NULL)
		return error_set(reterr, -ENODATA,
			"--pid: can't find the run file of the recorder of process %lld; name it with --spans FILE",
			(long long)options->pid);
	return error_set(reterr, -ENODATA,
		"--pid: process %lld does not record its spans; start it with WATTLE_SPANS=FILE in its "
		"environment, or under `wattle run` (--nvtx, --itt capture unmodified programs), or let "
		"`wattle cap tune … -- CMD` start it",
		(long long)options->pid);
}

/* ---- opening ---- */

int tune_steps_open(struct tune_steps *steps, const struct cap_tune_options *options,
	const struct tune_recorder *recorder, struct wattle_error *reterr)
{
	const char *metric = options->metric != NULL ? options->metric : options->metric_total;
	*steps = (struct tune_steps){.is_metric = metric != NULL, .is_total = options->metric_total != NULL};
	steps->whole_runs = metric == NULL && options->step == NULL;
	text_copy(steps->path, sizeof(steps->path), recorder->path);
	if (steps->whole_runs)
		return 0;
	int r = 0;
	if (options->spans != NULL)
		text_copy(steps->path, sizeof(steps->path), options->spans);
	else if (options->command == NULL)
		r = find_steps_of(options, steps->path, sizeof(steps->path), reterr);
	if (r < 0)
		return r;
	steps->is_span_file = span_file_probe(steps->path);
	bool is_ours = strcmp(steps->path, recorder->path) == 0;
	if (!is_ours && !steps->is_span_file && (r = file_type_check_run(steps->path, reterr)) < 0)
		return r;
	step_tail_init(&steps->tail, steps->path, metric != NULL ? metric : options->step, metric != NULL);
	return 0;
}

void tune_steps_close(struct tune_steps *steps)
{
	step_tail_finish(&steps->tail);
}

void tune_steps_begin(struct tune_steps *steps)
{
	steps->tail.is_over = false;
	steps->tail.stored_ns = VALUE_MISSING;
}

/* ---- reading ---- */

// Offset of the times of a span file from an earlier boot: they are on the clock of that boot.
static int64_t clock_shift_ns(const struct run *run)
{
	int64_t ours_ns = clock_wall_ns() - clock_now_ns();
	int64_t shift_ns = run->anchor_wall_ns - run->anchor_mono_ns - ours_ns;
	return llabs(shift_ns) < NS_PER_S ? 0 : shift_ns; // a smaller shift is an adjustment of the wall clock
}

static int add_step(struct step_tail *tail, int64_t t_ns, double value)
{
	struct tail_step *larger = array_reserve(tail->steps, tail->n_steps, &tail->steps_capacity, sizeof(*larger),
		1024);
	if (larger == NULL)
		return -ENOMEM;
	tail->steps = larger;
	larger[tail->n_steps++] = (struct tail_step){t_ns, value};
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct tail_step *x = a, *y = b;
	return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static int take_steps(struct step_tail *tail, const struct run *run)
{
	int64_t shift_ns = clock_shift_ns(run);
	int r = 0;
	tail->n_steps = 0;
	for (size_t i = 0; r == 0 && tail->is_metric && i < run->n_user_metrics; i++)
		if (strcmp(run->user_metrics[i].name, tail->name) == 0)
			r = add_step(tail, run->user_metrics[i].t_ns + shift_ns, run->user_metrics[i].value);
	for (size_t i = 0; r == 0 && !tail->is_metric && i < run->n_spans; i++)
		if (run->spans[i].close == SPAN_ENDED && strcmp(run->spans[i].name, tail->name) == 0)
			r = add_step(tail, run->spans[i].end_ns + shift_ns, 1);
	if (tail->n_steps > 1)
		qsort(tail->steps, tail->n_steps, sizeof(*tail->steps), by_time);
	return r;
}

// Programs write the file as they run, so its content is complete up to now.
static int poll_span_file(struct tune_steps *steps, struct wattle_error *reterr)
{
	struct run run;
	int64_t now_ns = clock_now_ns();
	int r = span_file_load(steps->path, &run, reterr);
	if (r < 0)
		return r;
	r = take_steps(&steps->tail, &run);
	run_finish(&run);
	steps->tail.stored_ns = now_ns;
	return r < 0 ? error_set(reterr, r, "out of memory") : 0;
}

int tune_steps_poll(struct tune_steps *steps, struct wattle_error *reterr)
{
	return steps->is_span_file ? poll_span_file(steps, reterr) : step_tail_poll(&steps->tail, reterr);
}

bool tune_steps_interval(const struct tune_steps *steps, int64_t since_ns, int64_t length_ns, size_t least,
	struct tune_step_interval *ret_interval)
{
	const struct tail_step *at = steps->tail.steps;
	size_t n = steps->tail.n_steps, first = 0, last;
	while (first < n && at[first].t_ns < since_ns)
		first++;
	if (first == n)
		return false;
	struct tune_step_interval interval = {.from_ns = at[first].t_ns, .to_ns = at[first].t_ns};
	for (last = first; last + 1 < n; last++) {
		bool fits = at[last + 1].t_ns <= interval.from_ns + length_ns;
		if (!fits && last - first >= least)
			break;
		interval.to_ns = at[last + 1].t_ns;
		interval.steps += at[last + 1].value;
	}
	interval.ends = last - first;
	if (steps->is_total)
		interval.steps = at[last].value - at[first].value;
	*ret_interval = interval;
	return true;
}

void tune_steps_names(const struct tune_steps *steps, char *out, size_t size)
{
	struct run run;
	if (!steps->is_span_file) {
		step_tail_names(steps->path, steps->is_metric, out, size);
		return;
	}
	out[0] = '\0';
	if (span_file_load(steps->path, &run, NULL) < 0)
		return;
	const char *before = NULL;
	size_t used = 0, most = steps->is_metric ? run.n_user_metrics : run.n_spans;
	for (size_t i = 0; i < most && used < size; i++) {
		const char *name = steps->is_metric ? run.user_metrics[i].name : run.spans[i].name;
		bool is_known = before != NULL && strcmp(before, name) == 0;
		if (is_known || strstr(out, name) != NULL)
			continue;
		int length = snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "", name);
		used += length > 0 ? (size_t)length : 0;
		before = name;
	}
	run_finish(&run);
}
