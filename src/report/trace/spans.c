// Spans as slices. The lanes in trace/internal.h select their tracks.
#include "report/trace/internal.h"

#include "analysis/energy/timeline.h"
#include "analysis/names.h"
#include "base/util.h"

#include <errno.h>

/* ---- order and tracks ---- */

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static bool same_thread(const struct lane_row *a, const struct lane_row *b)
{
	return a->process == b->process && a->is_range == b->is_range && a->tid == b->tid;
}

// Sorts by thread, then begin; of spans with equal begin, longer (outer) ones first, then by index.
static int by_thread_then_begin(const void *a, const void *b)
{
	const struct lane_row *x = a, *y = b;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->is_range != y->is_range)
		return x->is_range ? 1 : -1;
	if (x->tid != y->tid)
		return compare(x->tid, y->tid);
	if (x->begin_ns != y->begin_ns)
		return compare(x->begin_ns, y->begin_ns);
	if (x->end_ns != y->end_ns)
		return compare(y->end_ns, x->end_ns);
	return compare((int64_t)x->span, (int64_t)y->span);
}

static struct lane_row row_of(const struct trace *trace, size_t index)
{
	const struct run_span *span = &trace->run->spans[index];
	bool ended = value_ok(span->end_ns);
	bool is_range = span->kind == SPAN_RANGE;
	return (struct lane_row){
		.process = trace_process_at(trace, span->pid, span->begin_ns),
		.begin_ns = span->begin_ns,
		.end_ns = !ended                        ? INT64_MAX
			: span->end_ns > span->begin_ns ? span->end_ns
							: span->begin_ns,
		.span = index,
		.tid = is_range || span->tid < 0 ? 0 : span->tid,
		.is_range = is_range,
	};
}

/* ---- tracks with open slices ---- */

struct work {
	struct trace *trace;
	const double *energy_j, *error_j;
	struct names names;
	bool *is_told; // by long name: already written to the trace
	struct lanes lanes;
};

// The first track is the thread's own.
static uint64_t new_track(struct work *work, const struct lane_row *row)
{
	struct trace *trace = work->trace;
	uint64_t process = trace_process_track(trace, row->process);
	struct trace_track track = {.parent = process};
	if (row->is_range)
		track.name = "ranges";
	else if (row->tid == 0 || trace->processes[row->process].pid <= 0)
		track.name = "spans";
	else if (work->lanes.n == 1)
		track = (struct trace_track){.parent = process,
			.process = &trace->processes[row->process],
			.tid = row->tid};
	else
		track.name = trace_text(trace, "overlapping spans of thread %d", (int)row->tid);
	return trace_track(trace, &track);
}

/* ---- slices ---- */

enum { LONG_NAME = 64 }; // bytes; longer names are written once

static void put_name(struct work *work, const struct run_span *span, size_t index)
{
	uint32_t number = work->names.of[index];
	if (strlen(span->name) <= LONG_NAME)
		trace_event_name(work->trace, span->name, span->category);
	else
		trace_event_name_number(work->trace, number, span->category);
}

static void write_name(struct work *work, const struct run_span *span, size_t index)
{
	uint32_t number = work->names.of[index];
	if (strlen(span->name) <= LONG_NAME || work->is_told[number])
		return;
	trace_name_number(work->trace, number, span->name);
	work->is_told[number] = true;
}

static void put_slice(struct work *work, const struct lane *lane, size_t index)
{
	struct trace *trace = work->trace;
	const struct run_span *span = &trace->run->spans[index];
	write_name(work, span, index);
	struct trace_event slice = trace_slice_begin(trace, lane->track, span->begin_ns);
	put_name(work, span, index);
	trace_argument_double(trace, "energy_j", work->energy_j[index]);
	trace_argument_double(trace, "error_j", work->error_j[index]);
	trace_argument_double(trace, "cpu_s", value_to_double(span->cpu_ns, 1e-9));
	trace_argument_text(trace, "category", span->category);
	trace_argument_text(trace, "kind", span_kind_name(span->kind));
	if (span->close != SPAN_ENDED)
		trace_argument_text(trace, "close", span_close_name(span->close));
	trace_argument_int(trace, "span", span->id);
	trace_event_close(trace, slice);
}

static int put_row(struct work *work, const struct lane_row *row)
{
	struct lane *lane = lanes_put(&work->lanes, row);
	if (lane == NULL)
		return -ENOMEM;
	if (lane->track == 0)
		lane->track = new_track(work, row);
	put_slice(work, lane, row->span);
	return 0;
}

static int put_rows(struct work *work, const struct lane_row *rows, size_t n)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		if (i > 0 && !same_thread(&rows[i - 1], &rows[i]))
			lanes_end_all(&work->lanes);
		r = put_row(work, &rows[i]);
	}
	lanes_free(&work->lanes);
	return r;
}

int trace_spans(struct trace *trace)
{
	const struct run *run = trace->run;
	struct work work = {.trace = trace, .lanes = {.trace = trace}};
	double *energy_j, *error_j;
	if (run->n_spans == 0)
		return 0;
	if (spans_energy(trace->findings, trace->arena, &energy_j, &error_j) < 0)
		return -ENOMEM;
	if (names_make(&run->spans[0].name, sizeof(run->spans[0]), run->n_spans, trace->arena, &work.names) < 0)
		return -ENOMEM;
	work.energy_j = energy_j;
	work.error_j = error_j;
	work.is_told = arena_alloc(trace->arena, work.names.n, sizeof(*work.is_told));
	struct lane_row *rows = arena_alloc(trace->arena, run->n_spans, sizeof(*rows));
	if (work.is_told == NULL || rows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_spans; i++)
		rows[i] = row_of(trace, i);
	qsort(rows, run->n_spans, sizeof(*rows), by_thread_then_begin);
	return put_rows(&work, rows, run->n_spans);
}
