/* What was, for the charts of a page that is opened later: the figures of the last looks, as many as there is room
 * for. Made once. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/fields.h"
#include "now/now.h"
#include "report/openmetrics.h"
#include "serve/tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRAIL_LOOKS = 600 };

enum trail_column {
	TRAIL_TOTAL_W,
	TRAIL_TARGET_W,
	TRAIL_OTHERS_W,
	TRAIL_OWN_W,
	TRAIL_IDLE_W,
	TRAIL_UNATTRIBUTED_W,
	TRAIL_BUSY_CORES,
	TRAIL_MEMORY_BYTES,
	TRAIL_COLUMNS
};
enum trail_domain_column {
	TRAIL_POWER_W,
#define DEVICE_LIVE(id, ...) TRAIL_##id,
#include "metric/metrics.def"
	TRAIL_DOMAIN_COLUMNS
};

struct trail {
	int64_t t_ns[TRAIL_LOOKS];
	float columns[TRAIL_COLUMNS][TRAIL_LOOKS];           // NaN unknown
	float (*domains)[TRAIL_DOMAIN_COLUMNS][TRAIL_LOOKS]; // owned: n_domains of them
	size_t n_domains, n, next;
};

int trail_init(struct trail *trail, size_t n_domains); // -ENOMEM
void trail_finish(struct trail *trail);
void trail_add(struct trail *trail, const struct now *now);
size_t trail_place(const struct trail *trail, size_t i); // where the i-th oldest look lies, i < n

/* What there is to be told at one look, and the documents that tell it. Pure: each is made of this struct alone. */

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

/* One look as figures for Prometheus. docs/metrics.md has every family. Pure. */

struct metrics_options {
	enum om_format format;
	bool has_target;        // somebody's tree is marked: its part is told
	bool seed_names;        // AIPowerMeter's five gauges as well
	int64_t opened_wall_ns; // when we started; VALUE_MISSING unknown
	const char *node;       // a label of all; NULL: none
	bool is_textfile;       // stands among another exporter's: no name that is the process's own
};

void metrics_write(const struct now *now, const struct tally *tally, const struct metrics_options *options,
	struct buf *out);

// metrics_seed.c
void metrics_write_seed(const struct now *now, const struct metrics_options *options, struct om *om);
// metrics_processes.c
void metrics_write_processes(const struct process_rows *processes, const struct metrics_options *options, struct om *om);
// metrics_groups.c
void metrics_write_groups(const struct now *now, const struct tally *tally, struct om *om);

/* The parts of the live page. */

void page_heading(const struct view *view, struct buf *out); // whose figures, of when, and what is wrong with them
void page_tiles(const struct view *view, struct buf *out);   // the headline figures
void page_ledger(const struct view *view, struct buf *out);  // whose power it is, as a bar
void page_domains(const struct view *view, struct buf *out);
void page_processes(const struct view *view, struct buf *out);
void page_about(const struct view *view, struct buf *out); // what an estimate is, what looking costs

/* The metrics as a file for the textfile collector of node_exporter, replaced whole at each look: whoever reads it sees the figures of one
 * look or of the next, never half of them. */

struct textfile {
	const char *path; // borrowed; NULL: none is wanted
	struct buf text;
	int failed;  // why the last try failed: negative errno; 0: it did not
	int lock_fd; // owned, where there is a path: of PATH.lock, which only this user can open
	bool is_written;
};

// -EINVAL: no name that is read; -EBUSY: another one writes it. With a sentence.
int textfile_open(struct textfile *file, const char *path, struct wattle_error *reterr);
void textfile_write(struct textfile *file, const struct view *view);
// Takes the file away if we wrote it: gauges of who has ended would be told for ever.
void textfile_close(struct textfile *file);
