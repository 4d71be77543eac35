// Processes of spans, metrics and samples. Pids are reused, so a pid and a time identify a process.
#include "report/trace/internal.h"

#include "base/search.h"
#include "base/util.h"

#include <errno.h>

static int by_pid_then_start(const void *a, const void *b)
{
	const struct trace_process *x = a, *y = b;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static bool is_process_before(const void *item, const void *key)
{
	return ((const struct trace_process *)item)->pid < *(const int64_t *)key;
}

// Index of the first process of a pid, or its insertion point.
static size_t first_of(const struct trace_process *processes, size_t n, int64_t pid)
{
	return search_first(processes, n, sizeof(*processes), &pid, is_process_before);
}

size_t trace_process_at(const struct trace *trace, int64_t pid, int64_t t_ns)
{
	size_t at = first_of(trace->processes, trace->n_processes, pid);
	while (at + 1 < trace->n_processes && trace->processes[at + 1].pid == pid &&
		trace->processes[at + 1].start_ns <= t_ns)
		at++;
	return at;
}

uint64_t trace_process_track(struct trace *trace, size_t index)
{
	struct trace_process *process = &trace->processes[index];
	if (process->track != 0)
		return process->track;
	struct trace_track track = {.process = process};
	if (process->pid <= 0) // span file without a pid; Perfetto's pid 0 is the kernel
		track = (struct trace_track){.name = "unknown process"};
	return process->track = trace_track(trace, &track);
}

/* ---- collection ---- */

struct finding {
	struct trace_process *processes;
	size_t n_known, n; // n_known: sorted, from table process; the others follow
};

static void add_unknown(struct finding *finding, int64_t pid)
{
	size_t at = first_of(finding->processes, finding->n_known, pid);
	bool is_known = at < finding->n_known && finding->processes[at].pid == pid;
	bool was_last = finding->n > finding->n_known && finding->processes[finding->n - 1].pid == pid;
	if (!is_known && !was_last)
		finding->processes[finding->n++] = (struct trace_process){.pid = pid, .start_ns = VALUE_MISSING};
}

// A killed recorder has not stored the processes that were still running; their samples identify them.
static void add_sampled(struct finding *finding, const struct run_process_samples *samples, size_t sample)
{
	const struct trace_process process = {.pid = samples->pid[sample], .start_ns = samples->start_ns[sample]};
	if (bsearch(&process, finding->processes, finding->n_known, sizeof(process), by_pid_then_start) == NULL)
		finding->processes[finding->n++] = process;
}

static size_t without_doubles(struct trace_process *processes, size_t n)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || by_pid_then_start(&processes[kept - 1], &processes[i]) != 0)
			processes[kept++] = processes[i];
	return kept;
}

int trace_processes_find(struct trace *trace)
{
	const struct run *run = trace->run;
	const struct run_process_samples *samples = &run->process_samples;
	size_t most = run->n_processes + run->n_spans + run->n_user_metrics +
		samples->n; // untouched memory costs nothing
	struct finding finding = {arena_alloc(trace->arena, most, sizeof(*finding.processes)), 0, 0};
	if (finding.processes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_processes; i++) {
		const struct run_process *process = &run->processes[i];
		finding.processes[finding.n++] = (struct trace_process){process->pid, process->start_ns,
			process->command, 0};
	}
	qsort(finding.processes, finding.n, sizeof(*finding.processes), by_pid_then_start);
	finding.n_known = finding.n;
	for (size_t i = 0; i < samples->n; i++)
		add_sampled(&finding, samples, i);
	qsort(finding.processes, finding.n, sizeof(*finding.processes), by_pid_then_start);
	finding.n_known = finding.n = without_doubles(finding.processes, finding.n);
	for (size_t i = 0; i < run->n_spans; i++)
		add_unknown(&finding, run->spans[i].pid);
	for (size_t i = 0; i < run->n_user_metrics; i++)
		add_unknown(&finding, run->user_metrics[i].pid);
	qsort(finding.processes, finding.n, sizeof(*finding.processes), by_pid_then_start);
	trace->processes = finding.processes;
	trace->n_processes = without_doubles(finding.processes, finding.n);
	return 0;
}
