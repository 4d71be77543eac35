/* Figures as text for Prometheus and its kin: OpenMetrics 1.0 (github.com/prometheus/OpenMetrics), or the classic text format 0.0.4
 * of the same figures.
 *
 *	om_begin(&om, out, OM_OPENMETRICS);
 *	om_family(&om, &om_families[FAMILY_POWER]);
 *	om_value(&om, NULL, 0, total_w);
 *	om_end(&om);
 *
 * Units are base units (joules, watts, bytes, seconds, celsius, ratio), and a family's name ends in its unit; "_total" of counters and
 * "_info" are added here. What is unknown (NaN) is not told, and a family of which nothing is known has no head. */
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
	const char *name; // without _total and _info
	enum om_type type;
	const char *unit; // last word of the name; NULL: a plain number
	const char *help; // a full sentence
};

// All of openmetrics.def: om_families[FAMILY_POWER].
enum om_id {
#define FAMILY(id, ...) FAMILY_##id,
#include "report/openmetrics.def"
#undef FAMILY
	OM_FAMILIES,
};
extern const struct om_family om_families[OM_FAMILIES];

// Of a metric that has one (metrics.def); its values are to be multiplied by metric->family.scale.
struct om_family om_family_of(const struct metric *metric);

struct om_label {
	const char *name, *value; // value: any text, escaped here; NULL or "": left out
};

struct om {
	struct buf *out; // borrowed
	bool is_rounded; // to what a meter can tell: to a millionth, small gauges to nine digits. Twice as fast; a stored run is told exactly
	struct om_label common; // of all samples, after their own; no value: none
	enum om_format format;
	struct om_family family;
	bool has_head;
};

void om_begin(struct om *om, struct buf *out, enum om_format format);
// What follows belongs to this family. Each stands once in a document.
void om_family(struct om *om, const struct om_family *family);
void om_value(struct om *om, const struct om_label *labels, size_t n_labels, double value);
// The same, but what is unknown has its row, NaN: for names that somebody's dashboards expect.
void om_value_or_nan(struct om *om, const struct om_label *labels, size_t n_labels, double value);
// The same with the time that it is of, Unix time in ms. The samples of one set of labels come one after the other, in time.
void om_value_at(struct om *om, const struct om_label *labels, size_t n_labels, double value, int64_t wall_ms);
void om_end(struct om *om);

/* A stored run as OpenMetrics with the times of its samples, by the names of `wattle serve`, for backfilling:
 * `promtool tsdb create-blocks-from openmetrics FILE DIR`. Each series carries the label `run`. Prometheus knows whole milliseconds:
 * of samples in one of them the first is written. */

// Whether it is known at what time of day the run was; without that there is nothing to write.
bool openmetrics_run_can(const struct run *run);
/* every_ns: at most one sample of a series in so long, and its last one; 0: all. `more` is called now and then, so that `out` may be
 * passed on and cleared. -ENOMEM. */
int openmetrics_run(const struct findings *findings, int64_t every_ns, struct buf *out, void (*more)(void *data),
	void *data);
