/* Synthetic runs, shared by the tests of analysis and report. Times are in seconds after the start of the run, which
 * is one hour after boot. Values not filled in are unknown. */
#pragma once

#include "analysis/findings.h"
#include "base/arena.h"
#include "base/util.h"
#include "store/run.h"
#include "store/run_read.h"

#include "rows.h"

#include <stdio.h>

static const int64_t build_start_ns = 3600 * NS_PER_S;
static const int64_t build_wall_ns = 1700000000 * NS_PER_S; // 2023-11-14 22:13:20 UTC

static inline int64_t at_s(double t_s)
{
	return build_start_ns + llround(t_s * 1e9);
}

static inline int64_t *build_unknown(struct arena *arena, size_t n)
{
	int64_t *values = arena_alloc(arena, n, sizeof(*values));
	for (size_t i = 0; i < n; i++)
		values[i] = VALUE_MISSING;
	return values;
}

static inline void build_fact(struct run *run, const char *key, const char *value)
{
	run->facts[run->n_metadata++] = (struct run_metadata){key, value};
}

// An empty run with room for n samples; 100 ms, 4 cores, 16 GB.
static inline void build_run(struct run *run, size_t n)
{
	*run = (struct run){.arena = arena_new(), .n = n};
	run->t_ns = arena_alloc(run->arena, n, sizeof(int64_t));
	for (size_t m = 0; m < RUN_COUNT; m++)
		run->values[m] = build_unknown(run->arena, n);
	run->facts = arena_alloc(run->arena, 32, sizeof(struct run_metadata));
	run->segments = arena_alloc(run->arena, 4, sizeof(struct run_segment));
	run->devices = arena_alloc(run->arena, 16, sizeof(struct run_device));
	run->events = arena_alloc(run->arena, 16, sizeof(struct event));
	run->anchor_mono_ns = build_start_ns;
	run->anchor_wall_ns = build_wall_ns;
	build_fact(run, "id", "00000000-1111-2222-3333-444444444444");
	build_fact(run, "host", "testbed");
	build_fact(run, "interval_ns", "100000000");
	build_fact(run, "n_cores", "4");
	build_fact(run, "expected_cores", "4");
	build_fact(run, "n_gpus_system", "0");
	build_fact(run, "memory_total_bytes", "16000000000");
	build_fact(run, "ram_unit", "gigabytes");
	build_fact(run, "gpu_ram_unit", "gigabytes");
	build_fact(run, "time_unit", "hours");
}

static inline struct run_segment *build_segment(struct run *run, double start_s, double end_s)
{
	struct run_segment *segment = &run->segments[run->n_segments++];
	const int64_t none = VALUE_MISSING;
	*segment = (struct run_segment){.id = (int64_t)run->n_segments,
		.start_ns = at_s(start_s),
		.end_ns = at_s(end_s),
		.wall_start_ns = build_wall_ns + llround(start_s * 1e9),
		.pid = none,
		.exit_code = none,
		.complete = true,
		.samples = none,
		.lost_samples = none,
		.main_cpu_ns = none,
		.descendants_cpu_ns = none,
		.referee_cpu_ns = none,
		.processes_seen = none,
		.processes_sampled = none,
		.peak_rss_bytes = none,
		.main_peak_rss_bytes = none,
		.read_bytes = none,
		.written_bytes = none,
		.major_faults = none,
		.minor_faults = none,
		.voluntary_switches = none,
		.involuntary_switches = none,
		.self_cpu_ns = none,
		.self_max_rss_bytes = none,
		.self_wakeups = none};
	return segment;
}

// Samples first … last - 1, `step_s` apart.
static inline void build_times(struct run *run, size_t first, size_t last, double from_s, double step_s)
{
	for (size_t i = first; i < last; i++)
		run->t_ns[i] = at_s(from_s + (double)(i - first) * step_s);
}

// One segment of n samples, 100 ms apart.
static inline void build_simple(struct run *run, size_t n)
{
	build_run(run, n);
	build_segment(run, 0, (double)(n - 1) * 0.1);
	build_times(run, 0, n, 0, 0.1);
}

/* CPU counters that grow evenly: cores used by the target's main process, its descendants, wattle, and the whole
 * machine. */
static inline void build_cpu(struct run *run, double main, double descendants, double wattle, double busy)
{
	for (size_t i = 0; i < run->n; i++) {
		double t_ns = (double)(run->t_ns[i] - build_start_ns);
		run->values[RUN_MAIN_CPU][i] = llround(main * t_ns);
		run->values[RUN_DESCENDANTS_CPU][i] = llround(descendants * t_ns);
		run->values[RUN_SELF_CPU][i] = llround(wattle * t_ns);
		run->values[RUN_SYSTEM_BUSY][i] = llround(busy * t_ns);
		run->values[RUN_SYSTEM_IDLE][i] = llround((4 - busy) * t_ns);
	}
}

// A device with a row for each sample of the run, values unknown.
static inline struct run_device *build_device(struct run *run, const char *name, enum domain_kind kind)
{
	struct run_device *device = &run->devices[run->n_devices];
	*device = (struct run_device){.id = (int64_t)run->n_devices++,
		.kind = kind,
		.index = 0,
		.n = run->n,
		.t_ns = run->t_ns,
		.provenance = PROVENANCE_MEASURED,
		.has_energy = true,
		.resolution_j = (double)NAN,
		.update_period_s = (double)NAN,
		.update_jitter_s = (double)NAN,
		.relative_error = (double)NAN,
		.energy_range_j = (double)NAN,
		.idle_w = (double)NAN,
		.idle_error_w = (double)NAN,
		.idle_temperature_c = (double)NAN,
		.memory_total_bytes = VALUE_MISSING};
	text_copy(device->name, sizeof(device->name), name);
	text_copy(device->source, sizeof(device->source), kind == DOMAIN_GPU ? "nvml" : "cray");
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		device->values[m] = build_unknown(run->arena, run->n);
	return device;
}

// A counter under constant power.
static inline struct run_device *build_metered(struct run *run, const char *name, enum domain_kind kind, double power_w)
{
	struct run_device *device = build_device(run, name, kind);
	for (size_t i = 0; i < run->n; i++)
		device->values[DEVICE_ENERGY][i] = llround((double)(run->t_ns[i] - build_start_ns) / 1e3 * power_w);
	return device;
}

// The counter has timestamps equal to the reading times. Energies are exact then.
static inline void build_stamps(struct run_device *device)
{
	for (size_t i = 0; i < device->n; i++)
		device->values[DEVICE_ENERGY_TIME][i] = device->t_ns[i];
}

// Power readings, no counter.
static inline struct run_device *build_powered(struct run *run, const char *name, enum domain_kind kind, double power_w)
{
	struct run_device *device = build_device(run, name, kind);
	device->has_energy = false;
	device->provenance = PROVENANCE_DERIVED;
	for (size_t i = 0; i < run->n; i++)
		device->values[DEVICE_POWER][i] = llround(power_w * 1e3);
	return device;
}

static inline void build_gauge(struct run *run, enum run_metric metric, int64_t value)
{
	for (size_t i = 0; i < run->n; i++)
		run->values[metric][i] = value;
}

static inline void build_event(struct run *run, double t_s, const char *kind, const char *text)
{
	struct event *event = &run->events[run->n_events++];
	*event = event_make(EVENT_OTHER, at_s(t_s));
	event->kind = event_kind_of_name(kind);
	event->kind_name = kind;
	event->text = text;
	event_of_text(event, text, run->arena);
}

static inline void build_finish(struct run *run)
{
	arena_free(run->arena);
}

static inline const struct domain_finding *finding_of(const struct findings *findings, const char *name)
{
	for (size_t i = 0; i < findings->n_domains; i++)
		if (strcmp(findings->domains[i].device->name, name) == 0)
			return &findings->domains[i];
	fail_msg("no domain %s", name);
	return NULL;
}

// Equal to 1e-9 relative; NaN equals NaN.
static inline void assert_close(double value, double expected)
{
	if (isnan(expected) ? !isnan(value) : !(fabs(value - expected) <= 1e-9 * fmax(fabs(expected), 1e-6)))
		fail_msg("%.17g is not %.17g", value, expected);
}
