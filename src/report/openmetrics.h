/* Writes metrics for Prometheus and compatible readers: OpenMetrics 1.0 (github.com/prometheus/OpenMetrics) or the classic
 * text format 0.0.4.
 *
 *	om_begin(&om, out, OM_OPENMETRICS);
 *	om_family(&om, &om_families[FAMILY_POWER]);
 *	om_value(&om, NULL, 0, total_w);
 *	om_end(&om);
 *
 * Units are base units (joules, watts, bytes, seconds, celsius, ratio), and a family's name ends in its unit. This module
 * adds "_total" to counters and "_info" to infos. Unknown values (NaN) are omitted, and a family without known values has
 * no header. */
#pragma once

#include "analysis/findings.h"
#include "base/buf.h"
#include "metric/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum om_format { OM_OPENMETRICS, OM_CLASSIC };
enum om_type { OM_GAUGE, OM_COUNTER, OM_INFO };

struct om_family {
	const char *name; // without _total or _info
	enum om_type type;
	const char *unit; // last word of the name; NULL: dimensionless
	const char *help; // a full sentence
};

// Families of openmetrics.def: om_families[FAMILY_POWER].
enum om_id {
#define FAMILY(id, ...) FAMILY_##id,
#include "report/openmetrics.def"
#undef FAMILY
	OM_FAMILIES,
};
extern const struct om_family om_families[OM_FAMILIES];

// The family of a metric in metrics.def that has one; the caller multiplies its values by metric->family.scale.
struct om_family om_family_of(const struct metric *metric);

struct om_label {
	const char *name, *value; // value: any text, escaped on output; NULL or "": label omitted
};

struct om {
	struct buf *out; // borrowed
	bool is_rounded; // true: round to the resolution of meters (1e-6; small gauges: nine digits), which halves the cost.
	                 // false: full precision, for stored runs
	struct om_label common; // added to all samples after their own labels; value NULL: none
	enum om_format format;
	struct om_family family;
	bool has_head;
};

void om_begin(struct om *om, struct buf *out, enum om_format format);
// Starts a family; the following samples belong to it. Each family appears once in a document.
void om_family(struct om *om, const struct om_family *family);
void om_value(struct om *om, const struct om_label *labels, size_t n_labels, double value);
// Like om_value, but writes unknown values as NaN, for names that existing dashboards expect.
void om_value_or_nan(struct om *om, const struct om_label *labels, size_t n_labels, double value);
// Like om_value, with a timestamp in Unix ms. Samples with the same labels must be consecutive and in time order.
void om_value_at(struct om *om, const struct om_label *labels, size_t n_labels, double value, int64_t wall_ms);
void om_end(struct om *om);

/* Exports a stored run as OpenMetrics with timestamps, with the names of `wattle serve`, for backfilling: `promtool tsdb
 * create-blocks-from openmetrics FILE DIR`. Each series has the label `run`. Prometheus has a resolution of 1 ms: of
 * several samples in one millisecond, only the first is written. */

// False: the wall-clock time of the run is unknown, so nothing can be written.
bool openmetrics_run_can(const struct run *run);
/* every_ns: minimum distance of the samples of a series, plus its last sample; 0: all samples. `more` is called from time
 * to time, so that the caller can flush and clear `out`. -ENOMEM. */
int openmetrics_run(const struct findings *findings, int64_t every_ns, struct buf *out, void (*more)(void *data),
	void *data);
