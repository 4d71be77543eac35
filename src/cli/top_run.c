/* Reads a run in progress from its file: whether it is still running, its energy, and its open spans. */
#include "cli/top.h"

#include "analysis/findings.h"
#include "base/clock.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "store/follow.h"
#include "store/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* The energy so far is computed as in the report, in parts: samples up to `complete_until_ns` once, later samples again at each
 * update. So an update costs the same in the first minute and after a day. */
enum { PART_SAMPLES = 20000, WARM_UP_SAMPLES = 600 };
static const int64_t WORK_NS = 150 * NS_PER_MS;  // limit per update, until the history has been processed
static const int64_t AGAIN_NS = 900 * NS_PER_MS; // samples are stored once per second; computing the energy takes milliseconds

struct sum {
	double target_j, total_j;
};

struct top_run {
	struct span_tail tail;
	struct live_run view;
	char *command;      // owned
	int64_t complete_until_ns; // in times of the file; VALUE_MISSING: none yet
	struct sum has_caught_up;
	double interval_s;
	int64_t added_ns;        // time of the last energy computation
	struct live_span *spans; // owned
	size_t spans_capacity;
};

/* ---- energy ---- */

// Adds the energy between two samples; NaN if no meter covered it. Negative errno: cannot be read now.
static int add_energy_in(const char *path, int64_t from_ns, int64_t to_ns, struct sum *sum)
{
	struct sum part = {(double)NAN, (double)NAN};
	struct run run;
	struct findings findings;
	int r = run_load_devices(path, from_ns, to_ns, &run, NULL);
	if (r < 0)
		return r;
	if (run.n_segments > 0 && run.n > 1) { // one segment, from sample to sample
		struct run_segment *segment = &run.segments[run.n_segments - 1];
		segment->start_ns = run.t_ns[0];
		segment->end_ns = run.t_ns[run.n - 1];
		run.segments = segment;
		run.n_segments = 1;
		r = findings_make(&run, &findings);
		if (r == 0) {
			part = (struct sum){findings.ledger.target_j, findings.total_j};
			findings_finish(&findings);
		}
	}
	run_finish(&run);
	if (r == 0)
		*sum = (struct sum){sum->target_j + part.target_j, sum->total_j + part.total_j};
	return r;
}

// Adds samples that are old enough to be final. 1: more remain than fit into one update.
static int update_complete_until(struct top_run *run, int64_t stored_ns, int64_t limit_ns)
{
	int64_t begun_ns = clock_now_ns();
	for (;;) {
		int64_t to_ns = span_tail_nth_sample(&run->tail, run->complete_until_ns, PART_SAMPLES);
		int64_t tail_ns = stored_ns - (int64_t)(WARM_UP_SAMPLES / 2 * run->interval_s * 1e9);
		if (to_ns >= tail_ns &&
			span_tail_nth_sample(&run->tail, run->complete_until_ns, WARM_UP_SAMPLES) >= stored_ns)
			return 0;
		if (to_ns > tail_ns)
			to_ns = tail_ns;
		// Adjacent parts share a sample, as the end of one and the start of the next.
		int64_t next_ns = span_tail_nth_sample(&run->tail, to_ns - 1, 1);
		if (next_ns <= run->complete_until_ns)
			return 0;
		int r = add_energy_in(run->tail.path, run->complete_until_ns, next_ns, &run->has_caught_up);
		if (r < 0)
			return r;
		run->complete_until_ns = next_ns;
		if (clock_now_ns() - begun_ns > limit_ns)
			return 1;
	}
}

// Negative errno: a read failed; the next update may succeed.
static int add_energy(struct top_run *run, int64_t limit_ns)
{
	const struct follow_segment *segment = &run->tail.segment;
	if (!value_ok(run->tail.stored_ns))
		return 0;
	int64_t stored_ns = run->tail.stored_ns + segment->shift_ns;
	if (!value_ok(run->complete_until_ns)) {
		run->complete_until_ns = span_tail_nth_sample(&run->tail, segment->start_ns + segment->shift_ns - 1, 1);
		run->has_caught_up = (struct sum){0};
	}
	int r = update_complete_until(run, stored_ns, limit_ns);
	run->view.is_adding_up = r == 1;
	if (r == 1)
		run->view.target_j = run->view.total_j = (double)NAN;
	if (r != 0)
		return r;
	struct sum sum = run->has_caught_up;
	r = add_energy_in(run->tail.path, run->complete_until_ns, stored_ns, &sum);
	if (r < 0)
		return r;
	run->view.target_j = sum.target_j;
	run->view.total_j = sum.total_j;
	return 0;
}

/* ---- spans ---- */

// By process and thread, then by nesting: by begin.
static int by_thread(const void *left, const void *right)
{
	const struct live_span *a = left, *b = right;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return (a->depth > b->depth) - (a->depth < b->depth);
}

// Parents have smaller ids, so they come first.
static int depth_of(const struct span_tail *tail, size_t at)
{
	int depth = 0;
	int64_t parent = tail->spans[at].parent;
	for (size_t i = at; i-- > 0 && value_ok(parent);)
		if (tail->spans[i].id == parent) {
			parent = tail->spans[i].parent;
			depth++;
		}
	return depth;
}

static void add_spans(struct top_run *run)
{
	enum { MOST = 512 }; // more do not fit on a screen
	const struct span_tail *tail = &run->tail;
	size_t n = tail->n_spans < MOST ? tail->n_spans : MOST;
	if (n > run->spans_capacity) {
		struct live_span *larger = realloc_array(run->spans, n, sizeof(*larger));
		if (larger == NULL)
			return;
		run->spans = larger;
		run->spans_capacity = n;
	}
	for (size_t i = 0; i < n; i++) {
		const struct tail_span *from = &tail->spans[i];
		struct live_span *span = &run->spans[i];
		*span = (struct live_span){.begin_ns = from->begin_ns,
			.pid = from->pid,
			.tid = from->tid,
			.depth = depth_of(tail, i)};
		text_copy(span->name, sizeof(span->name), from->name);
	}
	if (n > 0) // the array is NULL before the first span
		qsort(run->spans, n, sizeof(*run->spans), by_thread);
	run->view.spans = run->spans;
	run->view.n_spans = n;
	run->view.spans_open = (int64_t)tail->n_spans + tail->more;
}

/* ---- open ---- */

static void read_text_file(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");
	out[0] = '\0';
	if (file == NULL)
		return;
	if (fgets(out, (int)size, file) != NULL)
		out[strcspn(out, "\n")] = '\0';
	fclose(file);
}

// Checks that the pid is valid here: same machine and same boot.
static int check_segment(const struct span_tail *tail, struct wattle_error *reterr)
{
	char host[256] = "", boot_id[40];
	const struct follow_segment *segment = &tail->segment;
	gethostname(host, sizeof(host) - 1);
	read_text_file("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
	if (segment->host[0] != '\0' && host[0] != '\0' && strcmp(segment->host, host) != 0)
		return error_set(reterr, -ESRCH, "%s: this run is on host %s; run `wattle top` there", tail->path,
			segment->host);
	if (segment->boot_id[0] != '\0' && boot_id[0] != '\0' && strcmp(segment->boot_id, boot_id) != 0)
		return error_set(reterr, -ESRCH,
			"%s: the machine was shut down during this run; `wattle report %s` shows what was stored",
			tail->path, tail->path);
	return 0;
}

static int report_ended(const struct span_tail *tail, struct wattle_error *reterr)
{
	return error_set(reterr, -ESRCH,
		"%s: the program of this run has ended and its recorder was killed; `wattle report %s` shows "
		"what was stored",
		tail->path, tail->path);
}

static int check(const struct span_tail *tail, struct wattle_error *reterr)
{
	const struct follow_segment *segment = &tail->segment;
	if (segment->id == 0)
		return error_set(reterr, -ESRCH, "%s: no run has started in this file yet", tail->path);
	if (segment->is_over)
		return error_set(reterr, -ESRCH, "%s: this run has ended; `wattle report %s` shows its results",
			tail->path, tail->path);
	if (!value_ok(segment->pid) || segment->pid <= 0)
		return error_set(reterr, -ESRCH,
			"%s: this run has no root process (a cgroup); `wattle top` shows the whole machine",
			tail->path);
	int r = check_segment(tail, reterr);
	if (r == 0 && kill((pid_t)segment->pid, 0) != 0 && errno == ESRCH)
		r = report_ended(tail, reterr);
	return r;
}

int top_run_check(const struct top_run *run, const struct monitor_sample *now, struct wattle_error *reterr)
{
	for (size_t i = 0; run != NULL && i < now->n_processes; i++) {
		const struct monitor_process *process = &now->processes[i];
		if (process->pid == run->tail.segment.pid && value_ok(process->start_ns) &&
			process->start_ns > run->tail.segment.start_ns + NS_PER_S)
			return report_ended(&run->tail, reterr);
	}
	return 0;
}

static void read_metadata(struct top_run *run)
{
	struct run facts;
	if (run_load_devices(run->tail.path, INT64_MAX, INT64_MAX, &facts, NULL) < 0)
		return;
	run->interval_s = value_to_double(run_metadata_i64(&facts, "interval_ns"), 1e-9);
	if (facts.n_segments > 0) {
		struct buf line;
		buf_init(&line, 1 << 22);
		command_text(&line, &facts.segments[facts.n_segments - 1]);
		run->command = buf_take(&line);
		buf_finish(&line);
	}
	run_finish(&facts);
}

int top_run_open(const char *path, struct top_run **ret_run, struct wattle_error *reterr)
{
	struct top_run *run = calloc(1, sizeof(*run));
	if (run == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	span_tail_init(&run->tail, path);
	run->complete_until_ns = VALUE_MISSING;
	int r = span_tail_poll(&run->tail, reterr);
	if (r == 0)
		r = check(&run->tail, reterr);
	if (r < 0) {
		top_run_close(run);
		return r;
	}
	read_metadata(run);
	if (!(run->interval_s > 0))
		run->interval_s = 0.1;
	run->view = (struct live_run){.path = path,
		.command = run->command,
		.target_j = (double)NAN,
		.total_j = (double)NAN,
		.start_ns = run->tail.segment.start_ns,
		.stored_ns = run->tail.stored_ns};
	*ret_run = run;
	return 0;
}

void top_run_close(struct top_run *run)
{
	if (run == NULL)
		return;
	span_tail_finish(&run->tail);
	free(run->command);
	free(run->spans);
	free(run);
}

void top_run_update(struct top_run *run, int64_t now_ns, bool to_the_end)
{
	const double LATE_S = 3, LATE_INTERVALS = 5;
	if (run == NULL || run->view.is_over)
		return;
	if (span_tail_poll(&run->tail, NULL) < 0)
		return;
	struct live_run *view = &run->view;
	view->stored_ns = run->tail.stored_ns;
	view->is_over = run->tail.segment.is_over;
	int64_t newest_ns = value_ok(view->stored_ns) ? view->stored_ns : view->start_ns;
	view->is_late = (double)(now_ns - newest_ns) * 1e-9 > LATE_S + LATE_INTERVALS * run->interval_s;
	add_spans(run);
	if (!to_the_end && !view->is_adding_up && now_ns - run->added_ns < AGAIN_NS)
		return;
	int r = add_energy(run, to_the_end ? INT64_MAX : WORK_NS);
	run->added_ns = r < 0 ? 0 : now_ns;
}

const struct live_run *top_run_view(const struct top_run *run)
{
	return run != NULL ? &run->view : NULL;
}

pid_t top_run_pid(const struct top_run *run)
{
	return (pid_t)run->tail.segment.pid;
}
