/* What the files that write a run file share. */
#pragma once

#include "base/buf.h"
#include "store/follow.h"
#include "store/sql.h"
#include "store/store.h"

/* What a run file says before the first sample: facts, devices, a segment. Between room-mates. */

enum { RUN_HEADER_TEXT_CEILING = 1 << 22 }; // a command line can't be longer than 2 MB

// Tables, metric rows and the facts of table run, into an empty database; inside the caller's transaction.
int run_header_create(sqlite3 *db, const struct store_header *header);
/* Makes an existing run file ready for one more recording: columns of metrics that it lacks, its dead segments closed
 * at their last sample; says by how much our clock is to be shifted. SQLite result codes. */
int run_header_continue(sqlite3 *db, const struct store_header *header, int64_t *ret_shift_ns);
// Finds or makes the rows of the devices; ret_ids has room for header->n_devices.
int run_header_devices(sqlite3 *db, const struct store_header *header, int64_t *ret_ids);
// The update periods that were seen, at the end of a recording; ids as run_header_devices gave them.
int run_header_periods(sqlite3 *db, const struct store_footer *footer, const int64_t *ids);

/* In run_segment.c. By how much our clock is behind that of a file which exists already: */
int64_t run_header_shift_ns(sqlite3 *db, const struct store_header *header);
void run_header_command(struct buf *out, const char *const *command); // as a JSON array; NULL: an empty one
int run_header_segment(sqlite3 *db, const struct store_header *header, int64_t shift_ns, int64_t *ret_id);
// 'complete' in table run: true only if every segment is.
int run_header_settle_complete(sqlite3 *db);

/* Tables span and user_metric of a run file that is being written, and the marks in table event. Between room-mates.
 *
 * Usually rows go straight into the tables. What comes too fast lies in the spool until the run is over. All functions but
 * run_spans_spill return SQLite result codes. */

enum run_spans_statement { RUN_SPANS_SPAN, RUN_SPANS_METRIC, RUN_SPANS_MARK, RUN_SPANS_DONE, RUN_SPANS_STATEMENTS };

struct run_spans {
	sqlite3 *db;          // borrowed
	const char *run_path; // borrowed
	sqlite3_stmt *statements[RUN_SPANS_STATEMENTS];
	int64_t segment, shift_ns;
	int64_t id_offset; // added to the recorder's ids: what the file had before
	char run_id[40];
	struct spool spool;
};

// The tables exist. A spool that a dead recorder has left is taken in first.
int run_spans_open(struct run_spans *spans, sqlite3 *db, const char *run_path, int64_t segment, int64_t shift_ns);
int run_spans_write(struct run_spans *spans, const struct store_spans *rows); // inside a transaction
int run_spans_spill(struct run_spans *spans, const struct store_spans *rows); // -errno
// What lies in the spool becomes rows, in some transactions, until footer->is_hurried; the spool goes, or stays with the rest.
int run_spans_gather(struct run_spans *spans, const struct store_footer *footer);
void run_spans_close(struct run_spans *spans);
