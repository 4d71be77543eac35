/* Data of a run's charts: its quantities over time, with few enough points to draw and without losing a peak. The HTML
 * page, the static pictures and Python's plots draw this data and compute nothing. Pure: struct run and findings in, no
 * file, no clock.
 *
 * The axis is measured time, in seconds since the start of the run. Pauses between segments are left out, so the length
 * of the axis is findings.duration_s. It is divided into buckets, none of which extends over a pause. If there are
 * fewer samples than allowed buckets, each interval between two samples is a bucket of its own and no detail is lost.
 *
 * Unknown values are NaN: a bucket without a reading, or a hole in the readings. */
#pragma once

#include "analysis/findings.h"
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chart_segment {
	double from_s, to_s;   // on the axis
	int64_t start_ns;      // CLOCK_MONOTONIC at from_s
	int64_t wall_start_ns; // Unix time at from_s; VALUE_MISSING unknown
	double pause_s;        // wall-clock time between the previous segment and this one; 0 for the first; NaN unknown
};

struct chart_sleep { // the machine was suspended: wall-clock time without measured time
	double at_s, slept_s;
};

struct chart_axis {
	size_t n;              // number of buckets
	double *from_s, *to_s; // of each bucket, ascending; to_s[i] is from_s[i + 1] except at the end of a segment
	struct chart_segment *segments;
	size_t n_segments;
	struct chart_sleep *sleeps;
	size_t n_sleeps;
	double length_s;
};

enum chart_style {
	CHART_STACKED, // the series add up: stacked areas
	CHART_LINES
};

enum chart_line {     // role of a series in its chart
	CHART_PART,   // a part of a stacked chart, or an ordinary line
	CHART_WHOLE,  // a stacked chart: the sum of the parts, with peaks that the means of the parts do not have
	CHART_TARGET, // the target's part of the chart's quantity
	CHART_BESIDE, // shown but not added: psys, core, node, wall …
	CHART_LIMIT,  // a power limit in force
	CHART_MEAN    // lines of many GPUs: their mean; low and high are those of the lowest and the highest GPU
};

/* Means keep the quantity's integral: mean power times length is the energy in the bucket. low and high are the
 * smallest and largest reading that touches the bucket (for power: intervals between two counter updates), so that
 * zooming in never shows a peak that the whole chart does not show. */
struct chart_series {
	const char *name;  // unique in its chart: "package-0", "target", "gpu-1 target", a metric's name
	const char *label; // label shown in reports: "target", "whole machine", "gpu-1 (NVIDIA H100 80GB HBM3)"
	enum chart_line line;
	enum provenance provenance;      // of the values; PROVENANCE_MEASURED for quantities without a domain
	const struct run_device *device; // NULL: none
	double *mean, *low, *high;       // axis.n values each
	double highest, lowest;          // of high and low over all buckets; NaN: no known value
};

struct chart {
	const char *
		id; // "power", "cpu", "memory", "gpu_utilization", "gpu_memory", "temperature", "clock", "processes", "metric:NAME"
	const char *title; // "Power"
	const char *
		unit; // as in units of JSON keys: "w", "cores", "bytes", "percent", "c", "mhz", "processes"; "" for metrics
	enum chart_style style;
	double ceiling; // upper limit to draw: cores, memory of the machine; NaN: none
	struct chart_series *series;
	size_t n_series;
};

struct chart_band { // an interval in which a condition held, permanently or repeatedly
	double from_s, to_s;
	double covered_s;                // duration of the condition; less than the interval if short occurrences were merged
	const struct run_device *device; // NULL: the run
	const char *kind;                // "throttle", "gap"
	const char *text;                // "power cap, thermal slowdown"
};

struct chart_mark { // an instant: an event of the run
	double at_s;
	int64_t t_ns;
	const char *kind, *text; // as in struct event
};

/* Spans as lanes: one for each nesting depth in each thread; ranges outside of a thread's nesting are in lanes of their
 * process below. If there are more spans than the caller can draw, spans too short to be visible at a sensible zoom are
 * merged with their neighbours in the lane: `count` is their number, and the name is the one with most of the time. */
struct chart_item {
	double from_s, to_s;
	uint32_t block;  // index in findings.blocks; UINT32_MAX: merged from several names, or no block
	uint32_t count;  // 1: a single span
	double energy_j; // target's energy while it ran (a merged item: over all its time); NaN unknown
	size_t span;     // index in run.spans; for a merged item its longest span; SIZE_MAX: not a span of that run
	bool is_open;    // the span has not ended
};

struct chart_lane {
	int32_t pid, tid;             // tid 0: ranges of a process, or unknown
	uint32_t depth;               // 0: outermost
	const char *process; // name of the process; NULL unknown
	bool is_range;
	const char *title, *label; // for a job: node and rank; NULL: identified by process and thread
	struct chart_item *items; // ascending, without overlap
	size_t n_items;
	size_t n_spans; // number of spans in the items
};

enum { CHART_BLOCK_COLORS = 8 };

struct charts {
	const struct findings *findings; // borrowed
	struct chart_axis axis;
	struct chart *charts; // only charts with data, in drawing order
	size_t n_charts;
	struct chart_band *bands;
	size_t n_bands;
	struct chart_mark *marks;
	size_t n_marks;
	struct chart_lane *lanes; // sorted by process, thread, depth
	size_t n_lanes;
	size_t n_spans, n_items;
	/* Colour index of each block, below CHART_BLOCK_COLORS. The CHART_BLOCK_COLORS blocks with the most energy have different
	 * ones; as far as possible, a block's colour differs from those of the blocks directly around and inside it. */
	const uint8_t *block_colors;
	struct arena *arena; // owns all of the above
};

struct chart_limits {   // limits of the amount of data; 0: the default
	size_t buckets; // on the axis, default 4000
	size_t items;   // span items over all lanes, default 100000
	size_t lanes;   // default 200; the lanes with the most time are kept, the rest is counted
};

// -ENOMEM only. `findings`, and its run, must outlive the charts.
int charts_make(const struct findings *findings, const struct chart_limits *limits, struct charts *ret_charts);
void charts_finish(struct charts *charts);
const struct chart *charts_find(const struct charts *charts, const char *id); // NULL: no such chart

// Converts an instant to the axis, and back. Instants in a pause map to its end; instants before and after the run to
// its ends.
double chart_axis_s(const struct chart_axis *axis, int64_t t_ns);
int64_t chart_axis_t_ns(const struct chart_axis *axis, double at_s);
int64_t chart_axis_wall_ns(const struct chart_axis *axis, double at_s); // Unix time; VALUE_MISSING unknown
