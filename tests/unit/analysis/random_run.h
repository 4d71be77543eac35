/* Random runs, with everything that a run may have and lack. */
#pragma once

#include "machine.h"

static inline void random_counter(int64_t *values, size_t n, double mean_step, double missing, uint64_t *state)
{
	double value = 0;
	for (size_t i = 0; i < n; i++) {
		value += random_uniform(state) < 0.2 ? 0 : mean_step * 2 * random_uniform(state);
		values[i] = random_uniform(state) < missing ? VALUE_MISSING : (int64_t)value;
	}
}

static inline void random_gauge(int64_t *values, size_t n, double most, double missing, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		values[i] = random_uniform(state) < missing ? VALUE_MISSING : (int64_t)(most * random_uniform(state));
}

static inline void random_times(struct run *run, uint64_t *state)
{
	size_t n_segments = 1 + random_next(state) % 3, at = 0;
	double t_s = 0;
	for (size_t s = 0; s < n_segments; s++) {
		size_t last = s + 1 == n_segments ? run->n : at + run->n / n_segments;
		double start_s = t_s;
		for (; at < last; at++) {
			run->t_ns[at] = at_s(t_s);
			t_s += random_uniform(state) < 0.02 ? 3 * random_uniform(state)
							    : 0.001 + 0.2 * random_uniform(state);
		}
		double late_s = 0.1 * random_uniform(state); // a last sample before or after the end
		build_segment(run, start_s + 0.1 * random_uniform(state), t_s - late_s);
		t_s += 10;
	}
}

static inline struct run_device *random_device(struct run *run, const char *name, uint64_t *state)
{
	static const enum domain_kind kinds[] = {DOMAIN_PACKAGE, DOMAIN_DRAM, DOMAIN_GPU, DOMAIN_CORE, DOMAIN_UNCORE,
		DOMAIN_PSYS, DOMAIN_NODE};
	struct run_device *device = build_device(run, name, kinds[random_next(state) % ARRAY_SIZE(kinds)]);
	device->provenance = (enum provenance)(random_next(state) % PROVENANCE_KINDS);
	device->has_energy = random_uniform(state) < 0.7;
	if (random_uniform(state) < 0.5)
		device->update_period_s = 0.2 * random_uniform(state);
	if (random_uniform(state) < 0.3)
		device->update_jitter_s = 0.2 * random_uniform(state);
	if (random_uniform(state) < 0.5)
		device->resolution_j = random_uniform(state);
	if (random_uniform(state) < 0.5)
		device->idle_w = 50 * random_uniform(state);
	if (random_uniform(state) < 0.5)
		device->energy_range_j = 1000;
	return device;
}

// Rows between the samples with energy only, and timestamps of all kinds, invalid ones too.
static inline void random_looks(struct run_device *device, const struct run *run, uint64_t *state)
{
	device->t_ns = arena_alloc(run->arena, device->n, sizeof(int64_t));
	for (size_t i = 0; i < device->n; i++) {
		int64_t late_ns = i + 1 < device->n ? (run->t_ns[i + 1] - run->t_ns[i]) / 2 : 0;
		device->t_ns[i] = run->t_ns[i] + (random_uniform(state) < 0.2 ? late_ns : 0);
		if (random_uniform(state) < 0.3)
			device->values[DEVICE_ENERGY_TIME][i] = device->t_ns[i] +
				llround(3e8 * (random_uniform(state) - 0.9));
	}
}

static inline void random_values(struct run_device *device, const struct run *run, double missing, uint64_t *state)
{
	size_t n = run->n;
	if (device->has_energy)
		random_counter(device->values[DEVICE_ENERGY], n, random_uniform(state) < 0.1 ? 0 : 1e7, missing, state);
	if (random_uniform(state) < 0.7)
		random_gauge(device->values[DEVICE_POWER], n, 1e5, missing, state);
	for (enum device_metric m = DEVICE_UTILIZATION; m < DEVICE_COUNT; m++)
		if (random_uniform(state) < 0.8)
			random_gauge(device->values[m], n, 3, missing, state);
	bool mig = random_uniform(state) < 0.3;
	random_gauge(device->values[DEVICE_TARGET_MIG_SHARE], n, 1e6, mig ? missing : 1, state);
	random_gauge(device->values[DEVICE_OTHERS_MIG_SHARE], n, 1e6, mig ? missing : 1, state);
	random_looks(device, run, state);
}

static inline void random_events(struct run *run, uint64_t *state)
{
	static const char *const kinds[] = {"wrap", "reset", "gap", "note"};
	for (int i = 0; i < 3; i++)
		build_event(run, 10 * random_uniform(state), kinds[random_next(state) % ARRAY_SIZE(kinds)],
			"domain-0: it had time for more than once");
}

static inline void random_spans(struct run *run, uint64_t *state)
{
	static const char *const names[] = {"a", "b", "c"};
	run->n_spans = 8;
	run->spans = arena_alloc(run->arena, run->n_spans, sizeof(*run->spans));
	for (size_t i = 0; i < run->n_spans; i++) {
		double begin_s = 40 * random_uniform(state) - 1;
		run->spans[i] = (struct run_span){.name = names[i % ARRAY_SIZE(names)],
			.begin_ns = at_s(begin_s),
			.end_ns = at_s(begin_s + 2 * random_uniform(state))};
	}
}

static inline void random_run(struct run *run, uint64_t *state)
{
	static const enum run_metric counters[] = {RUN_MAIN_CPU, RUN_DESCENDANTS_CPU, RUN_SELF_CPU, RUN_SYSTEM_BUSY,
		RUN_SYSTEM_IDLE};
	double missing = random_uniform(state) < 0.3 ? random_uniform(state) : 0.02;
	build_run(run, 1 + random_next(state) % 60);
	random_times(run, state);
	if (random_uniform(state) < 0.5)
		build_fact(run, "attribution", "active");
	for (size_t k = 0; k < ARRAY_SIZE(counters); k++)
		random_counter(run->values[counters[k]], run->n, 1e8 * random_uniform(state), missing, state);
	random_gauge(run->values[RUN_SELF_RSS], run->n, 1e9, missing, state);
	for (enum run_metric m = RUN_SYSTEM_MEMORY; m <= RUN_DESCENDANTS_PSS; m++)
		random_gauge(run->values[m], run->n, 1e10, missing, state);
	for (int d = 0; d < 5; d++) {
		static const char *const names[] = {"domain-0", "domain-1", "domain-2", "domain-3", "domain-4"};
		random_values(random_device(run, names[d], state), run, missing, state);
	}
	random_events(run, state);
	random_spans(run, state);
}
