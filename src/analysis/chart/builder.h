/* Internal interfaces of this folder: charts.c calls the functions below in the order of the charts. */
#pragma once

#include "analysis/chart/chart.h"
#include "analysis/energy/domains.h"

struct chart_work {
	const struct findings *findings;
	const struct run *run;
	struct charts *charts;
	struct arena *arena, *scratch; // for results, and for temporary data
	int64_t *from_ns, *to_ns;      // bounds of each bucket
	struct slice *buckets;         // buckets of each segment
	int64_t hole_ns;               // readings further apart than this leave the time between them unknown
	size_t charts_capacity;
};

// axis.c
int axis_make(struct chart_work *work, size_t max_buckets); // -ENOMEM

// Each adds the charts of one kind, none without data. -ENOMEM.
int chart_power(struct chart_work *work);
int chart_cpu(struct chart_work *work);
int chart_memory(struct chart_work *work);
int chart_gpus(struct chart_work *work); // utilization, memory, temperature, clocks of all devices that have them
int chart_processes(struct chart_work *work);
int chart_metrics(struct chart_work *work);
int chart_bands(struct chart_work *work);
int chart_marks(struct chart_work *work);
int chart_block_colors(struct chart_work *work);
int chart_lanes(struct chart_work *chart, const struct chart_limits *limits);

/* ---- helpers for one chart ---- */

// Initialises a chart with room for that many series; it is not in the list of charts yet. False: no memory.
bool chart_begin(struct chart_work *work, struct chart *chart, size_t max_series);
// Adds a series with unknown values. NULL: no memory.
struct chart_series *chart_add(struct chart_work *work, struct chart *chart, const struct chart_series *like);
// Label shown in reports: "gpu-0 (NVIDIA H100)" plus the suffix. NULL: no memory.
const char *chart_device_label(const struct chart_work *work, const struct run_device *device, const char *suffix);
// Adds the chart to the list if any of its values is known.
int chart_end(struct chart_work *work, struct chart *chart); // -ENOMEM

/* Resampler: adds values that hold for an interval to the buckets that the interval touches. Intervals come in
 * ascending order of their begins; the part of an interval in a pause between segments is ignored. */
struct chart_resampler {
	const struct chart_work *work;
	struct chart_series *series;
	double *weight_s; // weight of each bucket's mean; mean is a sum until resampler_end
	size_t bucket;    // first bucket that a later interval can touch
};
int resampler_begin(struct chart_resampler *resampler, const struct chart_work *work,
	struct chart_series *series); // -ENOMEM
void resampler_hold(struct chart_resampler *resampler, int64_t from_ns, int64_t to_ns,
	double value); // updates mean, low and high
void resampler_touch(struct chart_resampler *resampler, int64_t from_ns, int64_t to_ns,
	double value); // updates low and high only
// Adds an instant; the mean is over instants. Instants outside of segments map as in chart_axis_s. No other calls on
// this pen.
void resampler_dot(struct chart_resampler *resampler, int64_t t_ns, double value);
void resampler_end(struct chart_resampler *resampler); // turns sums into means

/* Readings of a gauge in order of time. Each represents the time since the previous one, the last one also the time to
 * the end of the segment. Holes have no value. */
struct chart_gauge {
	const int64_t *t_ns;
	struct run_values values;
	size_t n;
	double scale;
	const struct run_device *device; // skips the device's extra polls of counters; NULL: a run's samples
};
int resampler_gauge(const struct chart_work *work, struct chart_series *series,
	const struct chart_gauge *gauge); // -ENOMEM

/* Whether the energy of an interval is known: the curve covers it, and there are readings around it or the counter has
 * covered the time since. Intervals come in ascending order. */
struct chart_meter {
	const struct run_device *device;
	const struct curve *curve;
	int64_t hole_ns;
	size_t next;       // first row with a reading at or after the end of the latest interval; device->n: none
	bool any;          // there is a reading before row `next` …
	int64_t before_ns; // … at this time
};
bool meter_covers(struct chart_meter *meter, size_t segment, int64_t from_ns, int64_t to_ns, double energy_j);
