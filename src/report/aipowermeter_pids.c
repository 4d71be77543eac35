#include "report/aipowermeter_internal.h"

#include "base/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t tick_ns = 10 * NS_PER_MS; // the kernel rounds the start time of a process down to this

/* ---- samples by process ---- */

struct sample_key {
	int64_t pid, start_ns;
	size_t sample; // index in order of time
};

static int by_process(const void *a, const void *b)
{
	const struct sample_key *x = a, *y = b;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->sample > y->sample) - (x->sample < y->sample);
}

static bool same_process(const struct sample_key *a, const struct sample_key *b)
{
	return a->pid == b->pid && a->start_ns == b->start_ns;
}

int aipm_pids_make(const struct run *run, struct arena *arena, struct aipm_pids *ret_pids)
{
	const struct run_process_samples *samples = &run->process_samples;
	struct aipm_pids pids = {samples, arena_alloc(arena, samples->n, sizeof(*pids.before)),
		arena_alloc(arena, samples->n, sizeof(*pids.after))};
	struct sample_key *keys = arena_alloc(arena, samples->n, sizeof(*keys));
	if (pids.before == NULL || pids.after == NULL || keys == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < samples->n; i++)
		keys[i] = (struct sample_key){samples->pid[i], samples->start_ns[i], i};
	if (samples->n > 0)
		qsort(keys, samples->n, sizeof(*keys), by_process);
	for (size_t i = 0; i < samples->n; i++) {
		bool follows = i > 0 && same_process(&keys[i - 1], &keys[i]);
		bool goes_on = i + 1 < samples->n && same_process(&keys[i], &keys[i + 1]);
		pids.before[keys[i].sample] = follows ? keys[i - 1].sample : SIZE_MAX;
		pids.after[keys[i].sample] = goes_on ? keys[i + 1].sample : SIZE_MAX;
	}
	*ret_pids = pids;
	return 0;
}

/* ---- window of a row ---- */

// The last process sample of a segment is taken just after the target's end.
static struct slice samples_of(const struct aipowermeter *a, const struct aipm_row *row)
{
	const struct run_process_samples *samples = a->pids.samples;
	bool is_last = row->instant + 1 == row->interval.end;
	int64_t to_ns = is_last ? slice_to_ns(a->run, row->segment) : row->t_ns;
	return slice_after(samples->t_ns, samples->n, row->from_ns, to_ns);
}

// True for the last sample of a process in the window; CPU time is cumulative.
static bool is_last_in(const struct aipowermeter *a, size_t sample, struct slice window)
{
	size_t after = a->pids.after[sample];
	return after == SIZE_MAX || after >= window.end;
}

// CPU time of a process in the window that ends with its sample.
static double used_ns(const struct aipowermeter *a, const struct aipm_row *row, size_t sample, struct slice window)
{
	struct run_values cpu_ns = process_column(a->pids.samples, PROCESS_CPU);
	size_t before = sample, first = sample;
	while (before != SIZE_MAX && before >= window.begin) {
		first = before;
		before = a->pids.before[before];
	}
	bool born_here = before == SIZE_MAX &&
		a->pids.samples->start_ns[sample] >= a->run->segments[row->segment].start_ns - tick_ns;
	int64_t from_ns = born_here ? 0 : values_at(cpu_ns, before == SIZE_MAX ? first : before);
	int64_t to_ns = values_at(cpu_ns, sample);
	return value_ok(from_ns) && value_ok(to_ns) && to_ns > from_ns ? (double)(to_ns - from_ns) : 0;
}

int64_t aipm_root_pid(const struct aipowermeter *a, size_t segment)
{
	int64_t pid = a->run->segments[segment].pid;
	for (size_t i = 0; !value_ok(pid) && i < a->run->n_processes; i++)
		if (a->run->processes[i].is_main)
			pid = a->run->processes[i].pid;
	return value_ok(pid) ? pid : 0; // the recorder ended before it was known
}

void aipm_key_pid(struct jsonw *j, int64_t pid)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, pid);
	jsonw_key(j, text);
}

static double sum_of_all(const struct aipowermeter *a, const struct aipm_row *row, struct slice window)
{
	double sum_ns = 0;
	for (size_t i = window.begin; i < window.end; i++)
		if (is_last_in(a, i, window))
			sum_ns += used_ns(a, row, i, window);
	return sum_ns;
}

// Use that no sampled process accounts for belongs to short-lived processes; it is attributed to the root process.
void aipm_by_pid(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row, const char *key,
	double value)
{
	if (isnan(value))
		return;
	struct slice window = samples_of(a, row);
	double all_ns = sum_of_all(a, row, window), rest = 1;
	if (row->window.target_ns > all_ns)
		all_ns = row->window.target_ns;
	int64_t root = aipm_root_pid(a, row->segment);
	jsonw_key(j, key);
	jsonw_begin_object(j);
	for (size_t i = window.begin; all_ns > 0 && i < window.end; i++) {
		if (!is_last_in(a, i, window) || a->pids.samples->pid[i] == root)
			continue;
		double part = used_ns(a, row, i, window) / all_ns;
		aipm_key_pid(j, a->pids.samples->pid[i]);
		jsonw_double(j, value * part);
		rest -= part;
	}
	aipm_key_pid(j, root);
	jsonw_double(j, value * (rest > 0 ? rest : 0));
	jsonw_end_object(j);
}

static void each_memory(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row, const char *key,
	double target, double unit)
{
	struct slice window = samples_of(a, row);
	jsonw_key(j, key);
	jsonw_begin_object(j);
	size_t n = 0;
	for (size_t i = window.begin; i < window.end; i++) {
		int64_t rss_bytes = process_value(a->pids.samples, PROCESS_RSS, i);
		if (!is_last_in(a, i, window) || !value_ok(rss_bytes))
			continue;
		aipm_key_pid(j, a->pids.samples->pid[i]);
		jsonw_double(j, (double)rss_bytes / unit);
		n++;
	}
	if (n == 0) {
		aipm_key_pid(j, aipm_root_pid(a, row->segment));
		jsonw_double(j, target / unit);
	}
	jsonw_end_object(j);
}

void aipm_memory_by_pid(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row, double target_bytes,
	double used_bytes)
{
	if (isnan(target_bytes))
		return;
	each_memory(j, a, row, "per_process_mem_use_abs", target_bytes, 1);
	if (used_bytes > 0)
		each_memory(j, a, row, "per_process_mem_use_percent", target_bytes, used_bytes);
}
