/* gpu_tracker's tracking file (seeds.md A3), CSV or SQLite by its ending: written by a recording as it goes
 * (store_tracking_file) and by an export afterwards, through one writer. */
#pragma once

#include "base/buf.h"
#include "store/place.h"
#include "store/sql.h"
#include "store/store.h"
#include "store/tracking_row.h"

struct tracking_writer;

/* One layout. The file is made, or resumed, through place; rows go in between begin and commit, all or nothing. */
struct tracking_layout {
	const char *ending;
	// A new file at place->making, with the static data, not settled yet.
	int (*make)(struct tracking_writer *writer, const struct tracking_facts *facts, struct wattle_error *reterr);
	// An existing file: of the same columns and units, or refused.
	int (*check)(struct tracking_writer *writer, const struct tracking_facts *facts, struct wattle_error *reterr);
	// Ready for rows; the file has its name.
	int (*resume)(struct tracking_writer *writer, struct wattle_error *reterr);
	int (*begin)(struct tracking_writer *writer, struct wattle_error *reterr);
	int (*add)(struct tracking_writer *writer, const struct tracking_row *row, struct wattle_error *reterr);
	int (*commit)(struct tracking_writer *writer, struct wattle_error *reterr);
	void (*rollback)(struct tracking_writer *writer);
	void (*end)(struct tracking_writer *writer);   // after the last commit
	void (*close)(struct tracking_writer *writer); // after whatever happened
};
extern const struct tracking_layout tracking_csv, tracking_sqlite;

struct tracking_writer {
	const struct tracking_layout *layout; // NULL: not open
	struct place place;
	struct tracking_rows rows;
	bool *is_gpu; // of the devices; owned
	size_t n_devices;

	// the sample that is being put together from its records
	bool has_run;
	int64_t t_ns;
	int64_t run_values[RUN_COUNT];
	struct tracking_gpus gpus;

	struct buf text; // tracking_csv: rows of the batch
	off_t end;       // tracking_csv: where the next row goes
	sqlite3 *db;     // tracking_sqlite
	sqlite3_stmt *insert;
};

// kinds[i] is that of device i. -EINVAL for an ending that is neither .csv nor .sqlite, and as place_open.
int tracking_open(struct tracking_writer *writer, const struct store_open_options *options,
	const struct tracking_facts *facts, const enum domain_kind *kinds, size_t n_devices,
	struct wattle_error *reterr);
// A recording begins (a run file may hold several): its clocks, counters from 0.
void tracking_start(struct tracking_writer *writer, int64_t anchor_mono_ns, int64_t anchor_wall_ns);

int tracking_begin(struct tracking_writer *writer, struct wattle_error *reterr);
// Records of a sample have one t_ns and stand together; RUN and DEVICE in any order.
int tracking_feed(struct tracking_writer *writer, const struct record *record, struct wattle_error *reterr);
// The sample that is being put together is whole.
int tracking_flush(struct tracking_writer *writer, struct wattle_error *reterr);
// The recording is over.
int tracking_stop(struct tracking_writer *writer, struct wattle_error *reterr);
int tracking_commit(struct tracking_writer *writer, struct wattle_error *reterr);
void tracking_rollback(struct tracking_writer *writer);

// Folds and closes; discard: what open made goes away.
void tracking_close(struct tracking_writer *writer, bool finished, bool discard);
