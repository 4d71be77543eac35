/* Chart history for pages that are opened later: the values of the last HISTORY_SAMPLES samples. Allocated once. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/fields.h"
#include "monitor/monitor.h"
#include "report/openmetrics.h"
#include "serve/totals.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_SAMPLES = 600 };

enum history_column {
	HISTORY_TOTAL_W,
	HISTORY_TARGET_W,
	HISTORY_OTHERS_W,
	HISTORY_OWN_W,
	HISTORY_IDLE_W,
	HISTORY_UNATTRIBUTED_W,
	HISTORY_BUSY_CORES,
	HISTORY_MEMORY_BYTES,
	HISTORY_COLUMNS
};
enum history_domain_column {
	HISTORY_POWER_W,
#define DEVICE_LIVE(id, ...) HISTORY_##id,
#include "metric/metrics.def"
	HISTORY_DOMAIN_COLUMNS
};

struct history {
	int64_t t_ns[HISTORY_SAMPLES];
	float columns[HISTORY_COLUMNS][HISTORY_SAMPLES];           // NaN: unknown
	float (*domains)[HISTORY_DOMAIN_COLUMNS][HISTORY_SAMPLES]; // owned: n_domains entries
	size_t n_domains, n, next;
};

int history_init(struct history *history, size_t n_domains); // -ENOMEM
void history_finish(struct history *history);
void history_add(struct history *history, const struct monitor_sample *now);
size_t history_index(const struct history *history, size_t i); // array index of the i-th oldest sample, i < n

/* The data of one sample, and the documents made from it. Pure: each document depends on this struct only. */

struct view {
	const struct monitor_sample *now;
	const struct history *history;
	const struct totals *totals;
	const char *node;       // label of this machine in metrics; NULL: none
	uint64_t sample;        // number of samples so far, including this one
	int64_t interval_ns;    // sampling interval
	int64_t up_ns;          // time since the first sample
	const char *host;       // name of this machine
	int64_t opened_wall_ns; // Unix time of the first sample
	bool has_target;        // a target process tree is set
	bool seed_names;        // also export AIPowerMeter's gauges
};

enum { VIEW_PROCESSES = 100 }; // processes listed, those with the highest power

void view_page(const struct view *view, struct buf *out);             // complete HTML document
void view_figures(const struct view *view, struct buf *out);          // the parts that change: HTML fragments
void view_json(const struct view *view, bool history, struct buf *out); // "wattle-now/1", docs/serve.md
void view_metrics(const struct view *view, bool openmetrics, struct buf *out);
void view_textfile(const struct view *view, struct buf *out); // for node_exporter's textfile collector

/* ---- pieces ---- */

/* Processes to list, by power, then CPU time, then memory. NULL: no memory. The caller frees the array. */
const struct monitor_process **view_ranked(const struct monitor_sample *now, size_t *ret_n);
// Chart data of the page as JSON: columns from sample `first` on (0: the oldest stored).
void view_charts(const struct view *view, size_t first, struct buf *out);

/* ---- field tables ---- */

struct view_document {
	const struct view *view;
	const struct monitor_sample *now;  // of view
	const struct history *history;     // of view
	size_t first;                      // first sample of the history to write
	const struct monitor_process **ranked; // n_ranked entries
	size_t n_ranked;
	bool has_history; // include the history in wattle-now/1
};
// Data: struct view_document.
extern const struct object_type now_type, history_type;

/* One sample as Prometheus metrics. docs/metrics.md lists all families. Pure. */

struct metrics_options {
	enum om_format format;
	bool has_target;        // a target process tree is set: export its share
	bool seed_names;        // also export AIPowerMeter's five gauges
	int64_t opened_wall_ns; // Unix time when the server started; VALUE_MISSING: unknown
	const char *node;       // label of all series; NULL: none
	bool is_textfile;       // part of another exporter's output: omit standard process metrics
};

void metrics_write(const struct monitor_sample *now, const struct totals *totals, const struct metrics_options *options,
	struct buf *out);

// metrics_seed.c
void metrics_write_seed(const struct monitor_sample *now, const struct metrics_options *options, struct om *om);
// metrics_processes.c
void metrics_write_processes(const struct process_rows *processes, const struct metrics_options *options,
	struct om *om);
// metrics_groups.c
void metrics_write_groups(const struct monitor_sample *now, const struct totals *totals, struct om *om);

/* Sections of the live page. */

void page_heading(const struct view *view, struct buf *out); // host, time of the sample and problems
void page_tiles(const struct view *view, struct buf *out);   // the headline figures
void page_ledger(const struct view *view, struct buf *out);  // power by consumer, as a bar
void page_domains(const struct view *view, struct buf *out);
void page_processes(const struct view *view, struct buf *out);
void page_about(const struct view *view, struct buf *out); // explanation of estimates, measurement overhead

/* Metrics as a file for node_exporter's textfile collector. Each sample replaces the whole file, so readers always see one
 * complete sample. */

struct textfile {
	const char *path; // borrowed; NULL: not used
	struct buf text;
	int failed;  // negative errno of the last failed write; 0: it succeeded
	int lock_fd; // owned if path is set: of PATH.lock, which only this user can open
	bool is_written;
};

// -EINVAL: the collector ignores that name; -EBUSY: another process writes it. Sets *reterr.
int textfile_open(struct textfile *file, const char *path, struct wattle_error *reterr);
void textfile_write(struct textfile *file, const struct view *view);
// Removes the file if this server wrote it; otherwise the gauges of ended processes would be exported forever.
void textfile_close(struct textfile *file);
