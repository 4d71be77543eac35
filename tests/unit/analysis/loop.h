/* A simulated program that repeats the same blocks, on a machine whose counter is slower than they are, and a
 * recorder as the real one: a sample ten times a second, quick readings until five updates were seen at the start,
 * three every 30 s and one at the end. */
#pragma once

#include "machine.h"

#include "analysis/block/deconvolve.h"
#include "analysis/energy/attribute.h"

enum { LOOP_BLOCKS_MAX = 32 };

struct loop_kind {
	size_t n_blocks;
	double min_s, max_s;    // of a block's calls; one call has each extreme, the rest lie between
	double vary_s, vary_w;  // relative scatter of a call's time; and power
	double drift_w;         // all powers rise from 1 - this to 1 + this
	double length_s;
	double period_s, period_off;  // of the counter; relative error of up to this
	double jitter_s, quantum_j;   // each update is early or late by up to this
	bool samples_only, few_looks; // no quick readings; those at the start saw a single update
	double every_s, late_s;       // between two samples, 0: 0.1; a reading is late by up to this
	bool threads;  // two threads, each with half of the power; the second runs blocks in another order
	bool pairs;    // each block is followed by one of its own that takes as long
	double loop_s; // the loop takes exactly this long; 0: as long as its blocks
	double others; // cores that other programs keep busy; CPU time then comes in ticks of 10 ms
	const double (*fixed)[2];   // seconds and watts of each block, [0] for the time outside; NULL: random
	double held_part, held_s;   // fraction of updates that are later still, by up to this
	double stall_part, stall_s; // fraction of calls that take longer, by up to this
	double found_period_s, found_jitter_s; // period that the recorder states; 0: the true one
};

struct loop {
	struct loop_kind kind;
	uint64_t random;
	double block_s[LOOP_BLOCKS_MAX], block_w[LOOP_BLOCKS_MAX]; // [0]: outside of all blocks
	double true_j[LOOP_BLOCKS_MAX], time_s[LOOP_BLOCKS_MAX];
	size_t n_columns;
	size_t n, capacity; // intervals: interval i is from t_s[i] to t_s[i + 1], j before it
	double *t_s, *j;
	struct deconvolve_interval *pieces;
	size_t n_pieces;
	struct counter_model counter;
	struct run run;
	struct run_device *device;
	struct findings findings;
	struct arena *scratch;
	struct fold fold;
};

static inline double loop_energy_j(const struct loop *loop, double t_s)
{
	size_t low = 0, high = loop->n;
	if (t_s <= 0)
		return loop->block_w[0] * t_s;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		if (loop->t_s[middle] <= t_s)
			low = middle;
		else
			high = middle;
	}
	double length_s = loop->t_s[low + 1] - loop->t_s[low];
	double part = (t_s - loop->t_s[low]) / length_s;
	return loop->j[low] + part * (loop->j[low + 1] - loop->j[low]);
}

static inline double loop_vary(struct loop *loop, double by)
{
	return 1 + by * random_between(&loop->random, -1, 1);
}

static inline void loop_make_blocks(struct loop *loop)
{
	const struct loop_kind *kind = &loop->kind;
	size_t n = kind->n_blocks;
	loop->n_columns = n + 1;
	loop->block_s[0] = 2e-4;
	loop->block_w[0] = 40;
	for (size_t b = 1; b <= n; b++) {
		double u = b == 1 ? 0 : b == 2 ? 1 : random_uniform(&loop->random);
		loop->block_s[b] = kind->min_s * pow(kind->max_s / kind->min_s, u);
		loop->block_w[b] = random_between(&loop->random, 30, 250);
		if (kind->pairs && b % 2 == 0)
			loop->block_s[b] = loop->block_s[b - 1];
	}
	for (size_t b = 0; b <= n && kind->fixed != NULL; b++) {
		loop->block_s[b] = kind->fixed[b][0];
		loop->block_w[b] = kind->fixed[b][1];
	}
	for (size_t b = n; b > 1 && !kind->pairs && kind->fixed == NULL; b--) { // the shortest is not always the first
		size_t other = 1 + random_next(&loop->random) % b;
		double s = loop->block_s[b];
		loop->block_s[b] = loop->block_s[other];
		loop->block_s[other] = s;
	}
	double sum_s = 0;
	for (size_t b = 0; b <= n; b++)
		sum_s += loop->block_s[b];
	for (size_t b = 0; b <= n && kind->loop_s > 0; b++)
		loop->block_s[b] *= kind->loop_s / sum_s;
}

static inline void loop_add(struct loop *loop, size_t column, size_t other, double length_s)
{
	const struct loop_kind *kind = &loop->kind;
	double t_s = loop->t_s[loop->n], drift = 1 + kind->drift_w * (2 * t_s / kind->length_s - 1);
	size_t columns[] = {column, other}, n = kind->threads ? 2 : 1;
	loop->j[loop->n + 1] = loop->j[loop->n];
	loop->t_s[loop->n + 1] = t_s + length_s;
	for (size_t i = 0; i < n; i++) {
		double j = loop->block_w[columns[i]] * drift * loop_vary(loop, kind->vary_w) * length_s / (double)n;
		loop->j[loop->n + 1] += j;
		loop->true_j[columns[i]] += j;
		loop->time_s[columns[i]] += length_s / (double)n;
		if (columns[i] != 0)
			loop->pieces[loop->n_pieces++] = (struct deconvolve_interval){.begin_ns = at_s(t_s),
				.end_ns = at_s(t_s + length_s),
				.column = (uint32_t)columns[i],
				.weight = 1 / (float)n};
	}
	loop->n++;
}

// With two threads, the second one's blocks change in the middle of the first one's.
static inline void loop_run(struct loop *loop)
{
	const struct loop_kind *kind = &loop->kind;
	double sum_s = 0;
	for (size_t b = 0; b < loop->n_columns; b++)
		sum_s += loop->block_s[b];
	loop->capacity = 4 * loop->n_columns * ((size_t)(kind->length_s / sum_s) + 2);
	loop->t_s = calloc(loop->capacity + 3, sizeof(double));
	loop->j = calloc(loop->capacity + 3, sizeof(double));
	loop->pieces = calloc(2 * loop->capacity, sizeof(*loop->pieces));
	size_t other = 0;
	while (loop->t_s[loop->n] < kind->length_s && loop->n + 2 * loop->n_columns < loop->capacity)
		for (size_t b = 0; b < loop->n_columns; b++) {
			double s = loop->block_s[b] * loop_vary(loop, kind->vary_s);
			if (kind->stall_part > 0 && random_uniform(&loop->random) < kind->stall_part)
				s += kind->stall_s * random_uniform(&loop->random);
			double first = kind->threads ? random_uniform(&loop->random) : 1;
			loop_add(loop, b, other, s * first);
			if (!kind->threads)
				continue;
			other = random_next(&loop->random) % loop->n_columns;
			loop_add(loop, b, other, s * (1 - first));
		}
	loop->kind.length_s = loop->t_s[loop->n];
	loop->t_s[loop->n + 1] = loop->t_s[loop->n] + 10;
	loop->j[loop->n + 1] = loop->j[loop->n] + 10 * loop->block_w[0];
	loop->n++;
}

/* ---- the recorder ---- */

struct loop_reading {
	double t_s;
	bool sample;
};

static inline int loop_by_time(const void *a, const void *b)
{
	const struct loop_reading *x = a, *y = b;
	return (x->t_s > y->t_s) - (x->t_s < y->t_s);
}

static inline double loop_late(struct loop *loop, double t_s)
{
	return t_s + loop->kind.late_s * random_uniform(&loop->random);
}

static inline size_t loop_look(struct loop *loop, struct loop_reading *readings, size_t n, double from_s, int updates)
{
	double step_s = fmin(fmax(loop->counter.period_s / 20, 1e-3), 1e-2), t_s = from_s;
	double seen_s = counter_last_update_s(&loop->counter, t_s);
	while (updates > 0) {
		t_s = loop_late(loop, t_s + step_s);
		double now_s = counter_last_update_s(&loop->counter, t_s);
		updates -= now_s > seen_s;
		seen_s = now_s;
		readings[n++] = (struct loop_reading){t_s, false};
	}
	return n;
}

static inline size_t loop_readings(struct loop *loop, struct loop_reading *readings)
{
	double end_s = loop->kind.length_s;
	size_t n = 0;
	readings[n++] = (struct loop_reading){-0.002, true};
	for (int i = 1; i * loop->kind.every_s < end_s; i++)
		readings[n++] = (struct loop_reading){loop_late(loop, i * loop->kind.every_s), true};
	readings[n++] = (struct loop_reading){end_s + 0.0005, true};
	if (!loop->kind.samples_only && loop->counter.period_s >= 3e-3) {
		n = loop_look(loop, readings, n, -0.002, loop->kind.few_looks ? 1 : 5);
		for (double t_s = 30; t_s < end_s - 1 && !loop->kind.few_looks; t_s += 30)
			n = loop_look(loop, readings, n, t_s, 3);
		n = loop_look(loop, readings, n, end_s + 0.0005, 1);
	}
	qsort(readings, n, sizeof(*readings), loop_by_time);
	return n;
}

// Each tick is counted up to 10 ms after it began.
static inline int64_t loop_ticks_ns(struct loop *loop, double cores, int64_t passed_ns)
{
	return (int64_t)floor(cores * (double)passed_ns / 1e7 + random_uniform(&loop->random)) * 10000000;
}

static inline void loop_cpu(struct loop *loop)
{
	build_cpu(&loop->run, 1, 0, 0, 1); // only the target is busy
	for (size_t i = 0; loop->kind.others > 0 && i < loop->run.n; i++) {
		int64_t passed_ns = loop->run.t_ns[i] - build_start_ns;
		loop->run.values[RUN_MAIN_CPU][i] = loop_ticks_ns(loop, 1, passed_ns);
		loop->run.values[RUN_SYSTEM_BUSY][i] = loop_ticks_ns(loop, 1 + loop->kind.others, passed_ns);
	}
	for (size_t c = 0; c < loop->n_columns; c++)
		loop->true_j[c] /= 1 + loop->kind.others;
}

static inline void loop_record(struct loop *loop)
{
	size_t capacity = (size_t)(1.2 * loop->kind.length_s / loop->kind.every_s) + 1000, n = 0, samples = 0;
	struct loop_reading *readings = calloc(capacity, sizeof(*readings));
	n = loop_readings(loop, readings);
	build_run(&loop->run, n);
	build_segment(&loop->run, 0, loop->kind.length_s);
	loop->device = build_device(&loop->run, "package-0", DOMAIN_PACKAGE);
	loop->device->t_ns = arena_alloc(loop->run.arena, n, sizeof(int64_t));
	for (size_t i = 0; i < n; i++) {
		double t_s = readings[i].t_s, update_s = counter_last_update_s(&loop->counter, t_s);
		double j = loop_energy_j(loop, update_s) + 1000;
		if (loop->counter.quantum_j > 0)
			j = floor(j / loop->counter.quantum_j) * loop->counter.quantum_j;
		loop->device->t_ns[i] = at_s(t_s);
		loop->device->values[DEVICE_ENERGY][i] = llround(j * 1e6);
		if (readings[i].sample)
			loop->run.t_ns[samples++] = at_s(t_s);
	}
	loop->run.n = samples;
	loop_cpu(loop);
	loop->device->resolution_j = loop->counter.quantum_j;
	if (!loop->kind.samples_only) {
		double step_s = fmin(fmax(loop->counter.period_s / 20, 1e-3), 1e-2); // resolution of readings
		loop->device->update_period_s = round(loop->counter.period_s / step_s) * step_s;
		loop->device->update_jitter_s = 2 * loop->kind.jitter_s;
		if (loop->kind.found_period_s > 0) {
			loop->device->update_period_s = loop->kind.found_period_s;
			loop->device->update_jitter_s = loop->kind.found_jitter_s;
		}
	}
	free(readings);
}

static inline int loop_fold(struct loop *loop)
{
	struct windows windows;
	struct metering metering;
	struct deconvolve_timeline timeline = {loop->pieces, loop->n_pieces, loop->n_columns};
	loop->findings = (struct findings){.run = &loop->run, .arena = arena_new()};
	loop->findings.duration_s = run_duration_s(&loop->run);
	loop->scratch = arena_new();
	if (windows_make(&loop->run, loop->scratch, &windows) < 0 ||
		domains_make(&loop->findings, &windows, loop->scratch, &metering) < 0)
		return -1;
	return deconvolve_make(&loop->findings, &metering, &timeline, loop->scratch, &loop->fold);
}

// The whole simulation. 0, or negative: no memory.
static inline int loop_simulate(struct loop *loop, const struct loop_kind *kind, uint64_t seed)
{
	*loop = (struct loop){.kind = *kind, .random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15)};
	if (!(loop->kind.every_s > 0))
		loop->kind.every_s = 0.1;
	loop_make_blocks(loop);
	loop_run(loop);
	double period_s = kind->period_s * loop_vary(loop, kind->period_off);
	loop->counter = (struct counter_model){.period_s = period_s,
		.jitter_s = 2 * kind->jitter_s, // of the model: from the earliest to the latest
		.quantum_j = kind->quantum_j,
		.held_part = kind->held_part,
		.held_s = kind->held_s,
		.phase_s = period_s * random_uniform(&loop->random),
		.seed = random_next(&loop->random)};
	loop_record(loop);
	return loop_fold(loop);
}

static inline void loop_finish(struct loop *loop)
{
	findings_finish(&loop->findings);
	arena_free(loop->scratch);
	arena_free(loop->run.arena);
	free(loop->t_s);
	free(loop->j);
	free(loop->pieces);
}
