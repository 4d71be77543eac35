/* Writes a new sub-tracking file row by row, CSV or SQLite by its ending; it appears when it is whole. Between
 * room-mates. */
#pragma once

#include "store/export_out.h"
#include "store/sql.h"
#include "store/sub_tracking_rows.h"

struct calls_writer {
	const char *path; // borrowed
	bool is_csv;
	struct export_out text; // CSV
	struct place place;     // SQLite
	sqlite3 *db;
	sqlite3_stmt *insert;
};

// Close it in any case.
int calls_writer_open(struct calls_writer *writer, const char *path, struct wattle_error *reterr);
int calls_writer_add(struct calls_writer *writer, const struct sub_tracking_row *row, struct wattle_error *reterr);
// r: how it went until here; below 0 nothing is left behind, and *reterr stays. Returns how it went in the end.
int calls_writer_close(struct calls_writer *writer, int r, struct wattle_error *reterr);
