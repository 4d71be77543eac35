/* What pictures of a run show: its quantities along its time, in few enough points to draw and with no peak lost. The page, the
 * static pictures and Python's plots all draw this and compute nothing. Pure: struct run and findings in, no file, no clock.
 *
 * The axis is measured time, in seconds since the start of the run: what lies between two segments takes no room, and the length
 * of the axis is findings.duration_s. It is cut into buckets, none of which reaches over a pause. Where there are fewer samples than
 * buckets may be, each stretch between two samples is a bucket of its own and nothing is lost at all.
 *
 * Unknown is NaN everywhere: a bucket in which nothing was read, or a hole in the readings. */
#pragma once

#include "analysis/findings.h"
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chart_segment {
	double from_s, to_s;   // on the axis
	int64_t start_ns;      // CLOCK_MONOTONIC at from_s
	int64_t wall_start_ns; // Unix time of it; VALUE_MISSING unknown
	double pause_s;        // real time between the segment before and this one; 0 for the first; NaN unknown
};

struct chart_sleep { // the machine was suspended: no measured time, but time on the wall
	double at_s, slept_s;
};

struct chart_axis {
	size_t n;              // buckets
	double *from_s, *to_s; // of each, ascending; to_s[i] is from_s[i + 1] but at the end of a segment
	struct chart_segment *segments;
	size_t n_segments;
	struct chart_sleep *sleeps;
	size_t n_sleeps;
	double length_s;
};

enum chart_look {
	CHART_STACKED, // its series add up: areas on top of each other
	CHART_LINES
};

enum chart_line {     // how a series stands in its chart
	CHART_PART,   // of the sum of a stacked chart, or a line of its own
	CHART_WHOLE,  // a stacked chart: the sum of the parts, with the peaks that the means of the parts do not have
	CHART_TARGET, // the target's part of what else the chart shows
	CHART_BESIDE, // shown, not added: psys, core, node, wall …
	CHART_LIMIT,  // a power cap in force
	CHART_MEAN    // lines of many GPUs: their mean, low and high those of the lowest and the highest of them
};

/* Means keep the quantity's integral: mean power times length is the energy in the bucket. low and high are the smallest and
 * largest of the readings (of power: of the stretches between two updates of the counter) that touch the bucket, so that zooming
 * in on a smaller chart never finds a peak that a larger one did not show. */
struct chart_series {
	const char *name;  // unique in its chart: "package-0", "target", "gpu-1 target", a metric's name
	const char *label; // for people: "target", "whole machine", "gpu-1 (NVIDIA H100 80GB HBM3)"
	enum chart_line line;
	enum provenance provenance;      // of the values; PROVENANCE_MEASURED for what no domain has
	const struct run_device *device; // NULL: none
	double *mean, *low, *high;       // axis.n of each
	double highest, lowest;          // of high and low over all buckets; NaN: nothing is known
};

struct chart {
	const char *
		id; // "power", "cpu", "memory", "gpu_utilization", "gpu_memory", "temperature", "clock", "processes", "metric:NAME"
	const char *title; // "Power"
	const char *
		unit; // as in units of JSON keys: "w", "cores", "bytes", "percent", "c", "mhz", "processes"; "" for metrics
	enum chart_look look;
	double ceiling; // what can't be exceeded and is worth a line: cores, memory of the machine; NaN: none
	struct chart_series *series;
	size_t n_series;
};

struct chart_band { // a stretch of time in which something held, all along or now and then
	double from_s, to_s;
	double covered_s;                // for how long of it: less than all where short ones stand too close to be told apart
	const struct run_device *device; // NULL: of the run
	const char *kind;                // "throttle", "gap"
	const char *text;                // "power cap, thermal slowdown"
};

struct chart_mark { // an instant: events of the run
	double at_s;
	int64_t t_ns;
	const char *kind, *text; // as in struct event
};

/* Spans, as lanes: one for each depth of nesting in each thread, ranges that are no part of a thread's nesting in lanes of their
 * process below. Spans too short to be seen at any sensible zoom are merged with their neighbours of the same lane when there are
 * more than the caller can draw: `count` tells of how many, and the name is that which took most of the time. */
struct chart_item {
	double from_s, to_s;
	uint32_t block;  // index of its name in findings.blocks; UINT32_MAX: merged of several names, or no block
	uint32_t count;  // 1: a single span
	double energy_j; // of the target while it ran (of a merged one: of all its time); NaN unknown
	size_t span;     // index in run.spans; of a merged one that of its longest; SIZE_MAX: it is none of that run
	bool is_open;    // it never ended
};

struct chart_lane {
	int32_t pid, tid;             // tid 0: ranges of a process, or unknown
	uint32_t depth;               // 0: outermost
	const char *process; // its name; NULL unknown
	bool is_range;
	const char *title, *label; // of a job: its node, and its rank; NULL: it is known by process and thread
	struct chart_item *items; // ascending, do not overlap
	size_t n_items;
	size_t n_spans; // how many they stand for
};

enum { CHART_TINTS = 8 };

struct charts {
	const struct findings *findings; // borrowed
	struct chart_axis axis;
	struct chart *charts; // those that have anything to show, in the order to be drawn
	size_t n_charts;
	struct chart_band *bands;
	size_t n_bands;
	struct chart_mark *marks;
	size_t n_marks;
	struct chart_lane *lanes; // by process, thread, depth
	size_t n_lanes;
	size_t n_spans, n_items;
	/* Of each block of the findings a number below CHART_TINTS, for its colour: those of the CHART_TINTS blocks with the most
	 * energy differ, and as far as that many numbers allow a block's from those directly around and inside it. */
	const uint8_t *tints;
	struct arena *arena; // owns all of the above
};

struct chart_limits {   // how much is worth drawing; 0: the default
	size_t buckets; // on the axis, default 4000
	size_t items;   // span items over all lanes, default 100000
	size_t lanes;   // default 200; those with the most time are kept, the rest counted
};

// -ENOMEM only. `findings`, and its run, must outlive the charts.
int charts_make(const struct findings *findings, const struct chart_limits *limits, struct charts *ret_charts);
void charts_finish(struct charts *charts);
const struct chart *charts_find(const struct charts *charts, const char *id); // NULL: there is nothing of the kind

// An instant on the axis, and back. Instants in a pause between segments are at its end; before and after the run at its ends.
double chart_axis_s(const struct chart_axis *axis, int64_t t_ns);
int64_t chart_axis_t_ns(const struct chart_axis *axis, double at_s);
int64_t chart_axis_wall_ns(const struct chart_axis *axis, double at_s); // Unix time; VALUE_MISSING unknown
