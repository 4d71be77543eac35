/* gpu_tracker's tracking file, CSV or SQLite by its ending: written during a recording (store_tracking_file) and
 * by an export, through one writer. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "metric/metric.h"
#include "metric/ram.h"
#include "metric/tracking_column.h"
#include "sensor/sensor.h"
#include "store/output_file.h"
#include "store/sql.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads CSV (RFC 4180): quoted fields with commas, quotes and line breaks, either line ending, a byte order mark. The text is
 * split in place. */

struct csv {
	char *at;         // next byte; the caller owns the text
	const char *path; // for messages; borrowed
	int line;         // line of the last record, from 1
	int next_line;
};

void csv_init(struct csv *csv, char *text, const char *path); // the text is NUL-terminated
/* Reads the fields of the next non-empty line. Returns their number; 0 at the end; -EINVAL with a message that names the line:
 * more than `max` fields, or an unclosed quote. */
int csv_next(struct csv *csv, char **fields, int max, struct wattle_error *reterr);

/* A CSV file read in pieces, so that a file of any length needs little memory. */

struct csv_file {
	struct csv csv; // reads the whole records in text
	int fd;         // owned
	char *text;     // owned
	size_t size, capacity;
	size_t end; // end of the whole records: `kept` holds the byte that a NUL replaces there
	char kept;
	bool all_read;
};

// -ENOENT …; call csv_file_close in any case.
int csv_file_open(struct csv_file *file, const char *path, struct wattle_error *reterr);
// As csv_next; the fields are valid until the next call. -EINVAL also for bytes that are not text and for endless lines.
int csv_file_next(struct csv_file *file, char **fields, int max, struct wattle_error *reterr);
void csv_file_close(struct csv_file *file);

/* Converts wattle's samples to the rows of gpu_tracker's tracking file. Pure: no file, no clock.
 * - Memory is private plus shared memory, which wattle reads less often than the rest and carries forward between readings
 * (metric/ram.h).
 * - CPU percentages are counter differences to the previous sample; 100 is one core. So the first sample of a recording gives
 * no row, unless it stays the only one; its row then shows the mean since the start.
 * - The kernel counts CPU time in ticks, so at the start of a recording no difference is known. Rows of that time wait for the
 * first known percentages, which are means over a period that contains the row.
 * - Unavailable values are NaN. Without a GPU in the machine the GPU columns are 0, as gpu_tracker writes. */

// Static data of the file, in the file's units.
struct tracking_metadata {
	const char *ram_unit, *gpu_ram_unit, *time_unit; // unit names known to base/units; borrowed
	double ram_system_capacity, gpu_ram_system_capacity;
	int64_t system_core_count, n_expected_cores, system_gpu_count, n_expected_gpus; // VALUE_MISSING unknown
};

struct tracking_field { // a field of the static data
	const char *name;
	const char *text; // NULL: the field is a number
	double number;    // NaN unknown
	bool is_integer;
};
// Sets the capacities, in the units named by the facts.
void tracking_metadata_capacity(struct tracking_metadata *facts, double ram_bytes, double gpu_ram_bytes);
enum { TRACKING_STATICS = 9 };
void tracking_statics(const struct tracking_metadata *facts, struct tracking_field ret_fields[TRACKING_STATICS]);

struct tracking_row {
	double values[TRACKING_COLUMNS];
};

// Sums over the measured GPUs of one sample; NaN if any GPU has no value.
struct tracking_gpus {
	size_t n;
	double main_bytes, target_bytes, used_bytes, utilization_percent;
};
void tracking_gpus_add(struct tracking_gpus *gpus, const int64_t *device_values);

struct tracking_counter {
	bool known, compared; // compared: a difference was computed, or the counter decreased
	int64_t t_ns, value;
	double percent; // latest difference, relative to one core; NaN: none yet
};

// Rows waiting for their CPU percentages: at most 50 ms of samples, with /proc read at most every 10 ms.
enum { TRACKING_HELD_MAX = 16 };

/* State between samples. A plain value: copy it to be able to roll back. */
struct tracking_rows {
	double ram_unit_bytes, gpu_ram_unit_bytes;
	int64_t n_cores, n_expected_cores, n_gpus_system, n_gpus_expected;
	int64_t anchor_mono_ns, anchor_wall_ns;
	struct tracking_counter main, descendants, busy, idle;
	double system_percent;        // of all cores; reused for samples closer than the kernel's tick
	struct ram_tracker ram;       // carries the readings of smaps forward
	struct tracking_row only_row; // row of the first sample, until the second sample
	bool has_only_row, has_previous;
	struct tracking_row held[TRACKING_HELD_MAX];        // rows not taken yet, oldest first
	size_t n_held, n_ready;                             // n_ready: those that no longer wait
	int64_t last_ns, last_main_ns, last_descendants_ns; // the last sample's time and CPU counters
};

void tracking_rows_init(struct tracking_rows *rows, const struct tracking_metadata *facts);
// Starts a recording: counters from 0. The anchor is an instant at its start, on both clocks.
void tracking_rows_start(struct tracking_rows *rows, int64_t anchor_mono_ns, int64_t anchor_wall_ns);
/* Adds the next sample. is_row: false for a sample before the start or after the end of the target, which is used for
 * differences only. Each call may complete several rows: take all of them. */
void tracking_rows_feed(struct tracking_rows *rows, int64_t t_ns, const int64_t *run_values,
	const struct tracking_gpus *gpus, bool is_row);
// Ends the recording: waiting rows become ready, including the row of an only sample.
void tracking_rows_end(struct tracking_rows *rows);
// The oldest row that is ready; false if there is none.
bool tracking_rows_take(struct tracking_rows *rows, struct tracking_row *ret_row);

/* gpu_tracker's tracking file, read back: its static data and its columns. */

struct tracking_table {
	struct tracking_field *statics; // in file order
	size_t n_statics;
	size_t n;                         // timepoints, at least 1
	size_t n_timed;                   // number of rows with a known time; they come first, sorted by time
	double *values[TRACKING_COLUMNS]; // n each, in the file's own units; NaN unknown
};

/* CSV or SQLite by the ending .csv or .sqlite; columns in any order, additional columns are allowed. -ENOENT …, -EINVAL with a
 * message that names the line or column. The arena owns the result. */
int tracking_table_read(const char *path, struct arena *arena, struct tracking_table *ret_table,
	struct wattle_error *reterr);

struct tracking_writer;

/* Operations of one file format. The file is created or resumed through place; rows are written between begin and commit, all
 * or nothing. */
struct tracking_layout {
	const char *ending;
	// Creates a file at place->making with the static data; not renamed yet.
	int (*make)(struct tracking_writer *writer, const struct tracking_metadata *facts, struct wattle_error *reterr);
	// Checks an existing file: refused unless columns and units are the same.
	int (*check)(struct tracking_writer *writer, const struct tracking_metadata *facts,
		struct wattle_error *reterr);
	// Prepares the file for rows; it has its final name.
	int (*resume)(struct tracking_writer *writer, struct wattle_error *reterr);
	int (*begin)(struct tracking_writer *writer, struct wattle_error *reterr);
	int (*add)(struct tracking_writer *writer, const struct tracking_row *row, struct wattle_error *reterr);
	int (*commit)(struct tracking_writer *writer, struct wattle_error *reterr);
	void (*rollback)(struct tracking_writer *writer);
	void (*end)(struct tracking_writer *writer);   // after the last commit
	void (*close)(struct tracking_writer *writer); // in any case
};
extern const struct tracking_layout tracking_csv, tracking_sqlite;

struct tracking_writer {
	const struct tracking_layout *layout; // NULL: not open
	struct output_file output;
	struct tracking_rows rows;
	bool *is_gpu; // by device; owned
	size_t n_devices;

	// The sample under construction.
	bool has_run;
	int64_t t_ns;
	int64_t run_values[RUN_COUNT];
	struct tracking_gpus gpus;

	struct buf text; // tracking_csv: rows of the batch
	off_t end;       // tracking_csv: file offset of the next row
	sqlite3 *db;     // tracking_sqlite
	sqlite3_stmt *insert;
};

// kinds[i] is the kind of device i. -EINVAL for an ending other than .csv and .sqlite; otherwise as output_file_open.
int tracking_open(struct tracking_writer *writer, const struct store_open_options *options,
	const struct tracking_metadata *facts, const enum domain_kind *kinds, size_t n_devices,
	struct wattle_error *reterr);
// Starts a recording (a run file may hold several): sets its clocks; counters from 0.
void tracking_start(struct tracking_writer *writer, int64_t anchor_mono_ns, int64_t anchor_wall_ns);

int tracking_begin(struct tracking_writer *writer, struct wattle_error *reterr);
// Adds a record. The records of a sample have one t_ns and are contiguous; RUN and DEVICE in any order.
int tracking_feed(struct tracking_writer *writer, const struct record *record, struct wattle_error *reterr);
// Completes the sample under construction.
int tracking_flush(struct tracking_writer *writer, struct wattle_error *reterr);
// Ends the recording.
int tracking_stop(struct tracking_writer *writer, struct wattle_error *reterr);
int tracking_commit(struct tracking_writer *writer, struct wattle_error *reterr);
void tracking_rollback(struct tracking_writer *writer);

// Closes the file, merging SQLite's log first; discard: removes what open created.
void tracking_close(struct tracking_writer *writer, bool finished, bool discard);
