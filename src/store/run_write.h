/* Shared by the files that write a run file. */
#pragma once

#include "base/buf.h"
#include "store/follow.h"
#include "store/sql.h"
#include "store/store.h"

/* The parts of a run file that are written before the first sample: facts, devices, a segment. Internal to src/store. */

enum { RUN_HEADER_TEXT_CEILING = 1 << 22 }; // a command line can't be longer than 2 MB

// Creates the tables, the metric rows and the facts of table run in an empty database; inside the caller's transaction.
int run_header_create(sqlite3 *db, const struct store_header *header);
/* Prepares an existing run file for another recording: adds missing metric columns, closes dead segments at their last sample,
 * and returns the offset to add to our clock. SQLite result codes. */
int run_header_continue(sqlite3 *db, const struct store_header *header, int64_t *ret_shift_ns);
// Finds or inserts the rows of the devices; ret_ids has space for header->n_devices.
int run_header_devices(sqlite3 *db, const struct store_header *header, int64_t *ret_ids);
// Stores the observed update periods at the end of a recording; ids as run_header_devices returned them.
int run_header_periods(sqlite3 *db, const struct store_footer *footer, const int64_t *ids);

/* In run_segment.c. The offset from our clock to that of an existing file: */
int64_t run_header_shift_ns(sqlite3 *db, const struct store_header *header);
void run_header_command(struct buf *out, const char *const *command); // as a JSON array; command NULL: an empty array
int run_header_segment(sqlite3 *db, const struct store_header *header, int64_t shift_ns, int64_t *ret_id);
// Sets 'complete' in table run: true only if every segment is complete.
int run_header_update_complete(sqlite3 *db);

/* Writes tables span and user_metric of a run file, and the marks in table event. Internal to src/store.
 *
 * Usually rows are inserted directly. Spans that arrive too fast are kept in the spool until the end of the run. All functions
 * except run_spans_spill return SQLite result codes. */

enum run_spans_statement { RUN_SPANS_SPAN, RUN_SPANS_METRIC, RUN_SPANS_MARK, RUN_SPANS_DONE, RUN_SPANS_STATEMENTS };

struct run_spans {
	sqlite3 *db;          // borrowed
	const char *run_path; // borrowed
	sqlite3_stmt *statements[RUN_SPANS_STATEMENTS];
	int64_t segment, shift_ns;
	int64_t id_offset; // added to the recorder's ids, to continue after those of the file
	char run_id[40];
	struct spool spool;
};

// The tables exist. Merges the spool of a dead recorder first.
int run_spans_open(struct run_spans *spans, sqlite3 *db, const char *run_path, int64_t segment, int64_t shift_ns);
int run_spans_write(struct run_spans *spans, const struct store_spans *rows); // inside a transaction
int run_spans_spill(struct run_spans *spans, const struct store_spans *rows); // -errno
// Converts the spool to rows, in several transactions, until footer->must_hurry returns true. Removes the spool, or leaves the
// remaining entries in it.
int run_spans_merge_spool(struct run_spans *spans, const struct store_footer *footer);
void run_spans_close(struct run_spans *spans);

/* Writes the tables of a profile (--profile), which only run files with a profile have. Internal to src/store. */

struct run_profile {
	sqlite3 *db; // borrowed; NULL: nothing was written yet
	sqlite3_stmt *statements[5];
	int64_t segment, shift_ns;
	int64_t module_offset, node_offset; // added to the recorder's numbers, to continue after those of the file
};

// Inside a transaction. SQLite result code.
int run_profile_write(struct run_profile *profile, sqlite3 *db, int64_t segment, int64_t shift_ns,
	const struct store_profile *rows);
void run_profile_close(struct run_profile *profile);
