/* gpu_tracker's tracking file (seeds.md A3), CSV or SQLite by its ending: written by a recording as it goes
 * (store_tracking_file) and by an export afterwards, through one writer. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "metric/metric.h"
#include "metric/ram.h"
#include "metric/tracking_column.h"
#include "sensor/sensor.h"
#include "store/place.h"
#include "store/sql.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reading CSV (RFC 4180): quoted fields with commas, quotes and line breaks in them, either kind of line end, a byte
 * order mark. The text is cut up in place. */

struct csv {
	char *at;         // next byte; the text is the caller's
	const char *path; // for messages; borrowed
	int line;         // of the record that was read last, from 1
	int next_line;
};

void csv_init(struct csv *csv, char *text, const char *path); // the text is NUL-terminated
/* The fields of the next record that is not an empty line; how many there are, 0 at the end, -EINVAL with a sentence
 * that names the line: more than `max` fields, or a quote that is never closed. */
int csv_next(struct csv *csv, char **fields, int max, struct wattle_error *reterr);

/* A file, read in pieces, so that one of any length takes little memory. */

struct csv_file {
	struct csv csv; // over the whole records in text
	int fd;         // owned
	char *text;     // owned
	size_t size, capacity;
	size_t end; // of the whole records: a NUL stands there instead of `kept`
	char kept;
	bool all_read;
};

// -ENOENT …; close it in any case.
int csv_file_open(struct csv_file *file, const char *path, struct wattle_error *reterr);
// As csv_next; the fields live until the next call. -EINVAL also for bytes that are no text and for endless lines.
int csv_file_next(struct csv_file *file, char **fields, int max, struct wattle_error *reterr);
void csv_file_close(struct csv_file *file);

/* From wattle's samples to the rows of gpu_tracker's tracking file. Pure: no file, no clock.
 *
 * - Memory is private plus shared memory, which wattle reads less often than the rest and carries forward between
 *   readings (metric/ram.h).
 * - CPU percentages are differences of counters since the sample before: 100 is one core. So the first sample of a
 *   recording gives no row of its own, unless it stays the only one; it then shows the mean since the start.
 * - The kernel counts CPU time in ticks, so at the start of a recording there is no difference yet. Rows of that time
 *   wait, and take the first percentages that are known: those are means over a time that contains the row.
 * - What could not be had is NaN. Without a GPU in the machine the GPU columns are 0, as gpu_tracker writes. */

// The file's own header, already in its units.
struct tracking_facts {
	const char *ram_unit, *gpu_ram_unit, *time_unit; // names that base/units knows; borrowed
	double ram_system_capacity, gpu_ram_system_capacity;
	int64_t system_core_count, n_expected_cores, system_gpu_count, n_expected_gpus; // VALUE_MISSING unknown
};

struct tracking_field { // of that header
	const char *name;
	const char *text; // NULL: a number
	double number;    // NaN unknown
	bool is_integer;
};
// The capacities, in the units that the facts name.
void tracking_facts_capacity(struct tracking_facts *facts, double ram_bytes, double gpu_ram_bytes);
enum { TRACKING_STATICS = 9 };
void tracking_statics(const struct tracking_facts *facts, struct tracking_field ret_fields[TRACKING_STATICS]);

struct tracking_row {
	double values[TRACKING_COLUMNS];
};

// The measured GPUs of one sample, summed; NaN as soon as one of them could not say.
struct tracking_gpus {
	size_t n;
	double main_bytes, target_bytes, used_bytes, utilization_percent;
};
void tracking_gpus_add(struct tracking_gpus *gpus, const int64_t *device_values);

struct tracking_counter {
	bool known, compared; // compared: there was a difference, or the counter went back
	int64_t t_ns, value;
	double percent; // of the last difference, of one core; NaN: none yet
};

// Rows that wait for their CPU percentages: at most 50 ms of samples, and /proc is read every 10 ms at most.
enum { TRACKING_HELD_MAX = 16 };

/* What is remembered from sample to sample. A plain value: copy it to be able to go back. */
struct tracking_rows {
	double ram_unit_bytes, gpu_ram_unit_bytes;
	int64_t n_cores, n_expected_cores, n_gpus_system, n_gpus_expected;
	int64_t anchor_mono_ns, anchor_wall_ns;
	struct tracking_counter main, descendants, busy, idle;
	double system_percent;        // of all cores, for samples closer than the kernel's tick
	struct ram_tracker ram;       // carries the readings of smaps forward
	struct tracking_row only_row; // of the first sample, while it has no successor
	bool has_only_row, has_previous;
	struct tracking_row held[TRACKING_HELD_MAX];        // not taken yet, oldest first
	size_t n_held, n_ready;                             // n_ready: those of them that no longer wait
	int64_t last_ns, last_main_ns, last_descendants_ns; // the last sample's time and CPU counters
};

void tracking_rows_init(struct tracking_rows *rows, const struct tracking_facts *facts);
// A recording begins: counters from 0. The anchor is an instant at its start, on both clocks.
void tracking_rows_start(struct tracking_rows *rows, int64_t anchor_mono_ns, int64_t anchor_wall_ns);
/* The next sample. is_row: false for one before the start or after the end of the target, which is only compared with.
 * Each call may complete several rows: take them all. */
void tracking_rows_feed(struct tracking_rows *rows, int64_t t_ns, const int64_t *run_values,
	const struct tracking_gpus *gpus, bool is_row);
// The recording has ended: what still waits becomes ready, and so does its only sample.
void tracking_rows_end(struct tracking_rows *rows);
// The oldest row that is ready; false if there is none.
bool tracking_rows_take(struct tracking_rows *rows, struct tracking_row *ret_row);

/* gpu_tracker's tracking file (seeds.md A3), read back: the static data as it stands there, and its columns. */

struct tracking_table {
	struct tracking_field *statics; // in the order of the file
	size_t n_statics;
	size_t n;                         // timepoints, at least 1
	size_t n_timed;                   // of them those whose time is known; they come first, in its order
	double *values[TRACKING_COLUMNS]; // n each, in the file's own units; NaN unknown
};

/* CSV or SQLite by the ending .csv or .sqlite; columns may stand in any order and beside others. -ENOENT …, -EINVAL with
 * a sentence that names the line or column. The arena owns the result. */
int tracking_table_read(const char *path, struct arena *arena, struct tracking_table *ret_table,
	struct wattle_error *reterr);

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
