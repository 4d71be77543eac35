/* Tables span and user_metric of a run file that is being written, and the marks in table event. Between room-mates.
 *
 * Usually rows go straight into the tables. What comes too fast lies in the spool until the run is over. All functions but
 * run_spans_spill return SQLite result codes. */
#pragma once

#include "store/spool.h"
#include "store/sql.h"

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
