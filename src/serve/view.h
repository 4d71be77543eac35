/* What there is to be told at one look, and the documents that tell it. Pure: each is made of this struct alone. */
#pragma once

#include "base/buf.h"
#include "base/fields.h"
#include "now/now.h"
#include "serve/tally.h"
#include "serve/trail.h"

struct view {
	const struct now *now;
	const struct trail *trail;
	const struct tally *tally;
	const char *node;       // what this machine is called in metrics; NULL: nothing
	uint64_t look;          // how many looks there were, this one included
	int64_t interval_ns;    // between two looks
	int64_t up_ns;          // since the first
	const char *host;       // this machine's name
	int64_t opened_wall_ns; // Unix time of the first
	bool has_target;        // somebody's tree is marked
	bool seed_names;        // AIPowerMeter's gauges among the metrics as well
};

enum { VIEW_PROCESSES = 100 }; // as many are told of, those with the most power

void view_page(const struct view *view, struct buf *out);             // HTML, whole
void view_figures(const struct view *view, struct buf *out);          // what of it changes: HTML without a frame
void view_json(const struct view *view, bool trail, struct buf *out); // "wattle-now/1", docs/serve.md
void view_metrics(const struct view *view, bool openmetrics, struct buf *out);
void view_textfile(const struct view *view, struct buf *out); // among another exporter's figures

/* ---- pieces ---- */

/* The processes to tell of: those with the most power, then CPU time, then memory. NULL: no memory. The caller frees
 * the array. */
const struct now_process **view_ranked(const struct now *now, size_t *ret_n);
// Data of the page's charts, the columns from sample `first` on (0: the oldest there is), as JSON.
void view_charts(const struct view *view, size_t first, struct buf *out);

/* ---- field tables ---- */

struct view_document {
	const struct view *view;
	const struct now *now;             // of view
	const struct trail *trail;         // of view
	size_t first;                      // sample of the trail to begin with
	const struct now_process **ranked; // n_ranked of them
	size_t n_ranked;
	bool has_trail; // wattle-now/1 with the trail
};
// Data: struct view_document.
extern const struct object_type now_type, trail_type;
