/* How the files of this folder make charts together: charts.c calls the rest in the order in which people look. */
#pragma once

#include "analysis/chart/chart.h"
#include "analysis/energy/timeline.h"

struct chart_work {
	const struct findings *findings;
	const struct run *run;
	struct charts *charts;
	struct arena *arena, *scratch; // of what stays, and of what does not
	struct timeline timeline;      // the energies along the time; its domains are those of the findings
	int64_t *from_ns, *to_ns;      // of each bucket
	struct slice *buckets;         // of each segment
	int64_t hole_ns;               // between two readings: what is further apart tells nothing of the time between
	size_t charts_room;
};

// axis.c
int axis_make(struct chart_work *work, size_t most_buckets); // -ENOMEM

// The charts of a kind; each adds none where there is nothing to show. -ENOMEM.
int chart_power(struct chart_work *work);
int chart_cpu(struct chart_work *work);
int chart_memory(struct chart_work *work);
int chart_gpus(struct chart_work *work); // utilization, memory, temperature, clocks: of whatever device tells them
int chart_processes(struct chart_work *work);
int chart_metrics(struct chart_work *work);
int chart_bands(struct chart_work *work);
int chart_marks(struct chart_work *work);
int chart_tints(struct chart_work *work);
int chart_lanes(struct chart_work *chart, const struct chart_limits *limits);

/* ---- for those who make one ---- */

// A chart with room for so many series, not yet one of the charts. False: no memory.
bool chart_begin(struct chart_work *work, struct chart *chart, size_t most_series);
// The next series, all of it unknown. NULL: no memory.
struct chart_series *chart_add(struct chart_work *work, struct chart *chart, const struct chart_series *like);
// What people know it by: "gpu-0 (NVIDIA H100)" and the suffix. NULL: no memory.
const char *chart_device_label(const struct chart_work *work, const struct run_device *device, const char *suffix);
// Joins the charts if anything in it is known.
int chart_end(struct chart_work *work, struct chart *chart); // -ENOMEM

/* Puts values that hold for a stretch of time into the buckets that it touches. Stretches come in ascending order of their
 * beginnings; what one has of a pause between segments goes nowhere. */
struct chart_pen {
	const struct chart_work *work;
	struct chart_series *series;
	double *weight_s; // of what is in the mean of each bucket; mean is a sum until the end
	size_t bucket;    // the first one that a later stretch may touch
};
int pen_begin(struct chart_pen *pen, const struct chart_work *work, struct chart_series *series); // -ENOMEM
void pen_hold(struct chart_pen *pen, int64_t from_ns, int64_t to_ns, double value);               // mean, low and high
void pen_touch(struct chart_pen *pen, int64_t from_ns, int64_t to_ns, double value);              // low and high only
// An instant, whose mean is over instants; before and after the run, and in a pause, as chart_axis_s has it. No other calls on this pen.
void pen_dot(struct chart_pen *pen, int64_t t_ns, double value);
void pen_end(struct chart_pen *pen); // sums become means

/* Readings of a gauge, one after the other: each tells of the time since the one before, the last one also of the time to the end of
 * the segment. Over a hole nothing is told. */
struct chart_gauge {
	const int64_t *t_ns;
	struct run_values values;
	size_t n;
	double scale;
	const struct run_device *device; // whose quick looks at counters are passed over; NULL: a run's samples
};
int pen_gauge(const struct chart_work *work, struct chart_series *series, const struct chart_gauge *gauge); // -ENOMEM

/* Whether the energy of a stretch of time is known: its line goes there, and something was read around it or the counter has
 * bridged the time since. Stretches come in ascending order. */
struct chart_meter {
	const struct run_device *device;
	const struct curve *curve;
	int64_t hole_ns;
	size_t next;       // row at or after the latest stretch's end that has a reading; device->n: none
	bool any;          // there is one before it …
	int64_t before_ns; // … at this time
};
bool meter_knows(struct chart_meter *meter, size_t segment, int64_t from_ns, int64_t to_ns, double energy_j);
