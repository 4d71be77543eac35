// --per-process: cores, memory and threads of each process, on its own track.
#include "report/trace/internal.h"

#include "base/util.h"

#include <errno.h>

struct row {
	int64_t pid, start_ns, t_ns;
	size_t sample;
};

static int by_process_then_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

struct process_counters {
	struct trace_counter cores, rss, threads;
};

static struct trace_counter counter_of(struct trace *trace, uint64_t parent, const char *name, const char *unit)
{
	return (struct trace_counter){.trace = trace, .about = {.name = name, .parent = parent}, .unit = {unit, NULL}};
}

// CPU use over the time until the next sample.
static double cores(const struct run_process_samples *samples, const struct row *row, const struct row *next)
{
	double from_ns = value_to_double(process_value(samples, PROCESS_CPU, row->sample), 1);
	double to_ns = value_to_double(process_value(samples, PROCESS_CPU, next->sample), 1);
	return (to_ns - from_ns) / (double)(next->t_ns - row->t_ns);
}

static void put_row(struct process_counters *counters, const struct run_process_samples *samples, const struct row *row,
	const struct row *next)
{
	int64_t rss_bytes = process_value(samples, PROCESS_RSS, row->sample);
	int64_t threads = process_value(samples, PROCESS_THREADS, row->sample);
	bool is_last = next == NULL;
	trace_counter_put(&counters->cores, row->t_ns, is_last ? (double)NAN : cores(samples, row, next));
	trace_counter_put(&counters->rss, row->t_ns, is_last ? (double)NAN : value_to_double(rss_bytes, 1));
	trace_counter_put(&counters->threads, row->t_ns, is_last ? (double)NAN : value_to_double(threads, 1));
}

static bool same_process(const struct row *a, const struct row *b)
{
	return a->pid == b->pid && a->start_ns == b->start_ns;
}

static void put_rows(struct trace *trace, const struct row *rows, size_t n)
{
	struct process_counters counters = {0};
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || !same_process(&rows[i - 1], &rows[i])) {
			size_t process = trace_process_at(trace, rows[i].pid, rows[i].start_ns);
			uint64_t parent = trace_process_track(trace, process);
			counters = (struct process_counters){
				counter_of(trace, parent, "CPU", "cores"),
				counter_of(trace, parent, "resident memory", "bytes"),
				counter_of(trace, parent, "threads", "threads"),
			};
		}
		bool goes_on = i + 1 < n && same_process(&rows[i], &rows[i + 1]) &&
			rows[i + 1].t_ns - rows[i].t_ns <= trace->hole_ns; // not across a pause between segments
		put_row(&counters, &trace->run->process_samples, &rows[i], goes_on ? &rows[i + 1] : NULL);
	}
}

int trace_process_samples(struct trace *trace)
{
	const struct run_process_samples *samples = &trace->run->process_samples;
	struct row *rows = arena_alloc(trace->arena, samples->n, sizeof(*rows));
	if (rows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < samples->n; i++)
		rows[i] = (struct row){samples->pid[i], samples->start_ns[i], samples->t_ns[i], i};
	qsort(rows, samples->n, sizeof(*rows), by_process_then_time);
	put_rows(trace, rows, samples->n);
	return 0;
}
