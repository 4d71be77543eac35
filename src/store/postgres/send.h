/* Sends run files to PostgreSQL. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "store/postgres/pq.h"
#include "store/postgres/tables.h"
#include "store/run.h"
#include "store/sql.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sends a run file to PostgreSQL in batches, each row exactly once. The marks of what has been sent are stored on the server in
 * the same transaction as the rows, and are read again on each new connection. So sending may be interrupted and resumed by any
 * sender; two senders of one run take turns. */

struct send;

struct send_count {
	int64_t rows;    // rows sent by this sender: samples, spans, metrics and events
	int64_t batches; // transactions with rows
	int64_t bytes;   // COPY data
};

// Does not connect; the file need not exist yet. `path` and `url` are borrowed. NULL: out of memory.
struct send *send_new(const char *path, const char *url);
void send_free(struct send *send);

/* Sends one batch. A server that is silent for a minute counts as lost. is_live: the file's recorder may be running, so rows
 * that are not final are sent later. 1: there is more; 0: everything has been sent; -EBUSY: the file cannot be read now; errors
 * of pq.h for the server (after pg_may_pass the next call connects again); otherwise errors of the file. */
int send_batch(struct send *send, bool is_live, struct wattle_error *reterr);
/* Call after send_batch returned 0 for an ended run: sends processes, compares the row counts of server and file, and waits
 * until everything is on the server's disk. -EPROTO: the counts differ. */
int send_remaining(struct send *send, struct wattle_error *reterr);
/* Whether the report of this state of the file has not been sent yet (send_report); call after send_remaining. */
bool send_wants_report(const struct send *send);
// JSON for wattle_put, from the findings: "recording" and "block".
int send_report(struct send *send, const char *json, struct wattle_error *reterr);

struct send_count send_count(const struct send *send);
const char *send_where(const struct send *send);  // pg_where; "" while not connected
const char *send_run_id(const struct send *send); // "" before the file was opened

/* Encodes rows in the binary format of COPY into one buffer; avoids formatting and parsing text. */

enum pg_type { // types of the columns that COPY fills
	PG_TYPE_INT2,
	PG_TYPE_INT4,
	PG_TYPE_INT8,
	PG_TYPE_FLOAT8,
	PG_TYPE_TEXT,
	PG_TYPE_UUID,
	PG_TYPE_TIME, // timestamptz
};

struct copy {
	unsigned char *bytes; // owned
	size_t size, capacity;
	size_t header_size; // size of an encoding without rows
	int64_t n_rows;
	bool failed; // out of memory; sticky
};

void copy_init(struct copy *copy);
void copy_finish(struct copy *copy);
void copy_clear(struct copy *copy);                // keeps the memory; writes the header again
void copy_row(struct copy *copy, size_t n_fields); // begins a row; that many fields follow
void copy_end(struct copy *copy);                  // after the last row

void copy_null(struct copy *copy);
void copy_i64(struct copy *copy, enum pg_type type,
	int64_t value); // INT2, INT4, INT8, FLOAT8; null if out of range
void copy_double(struct copy *copy, double value);
// Text of `size` bytes; invalid UTF-8 and NUL, which PostgreSQL refuses, become U+FFFD.
void copy_text(struct copy *copy, const char *text, size_t size);
void copy_uuid(struct copy *copy, const unsigned char uuid[16]);
void copy_time(struct copy *copy, int64_t unix_ns); // rounded down to whole microseconds

// Parses "xxxxxxxx-xxxx-…"; false: not a UUID.
bool copy_parse_uuid(const char *text, unsigned char ret_uuid[16]);

/* Maps rows of a run file's table to rows of the server's table: the columns that both have, by name, and the columns that only
 * the server has (run_id, time, level). A server of another version may have more or fewer metrics. */

enum layout_table {
	LAYOUT_SAMPLE,
	LAYOUT_DEVICE_SAMPLE,
	LAYOUT_PROCESS_SAMPLE,
	LAYOUT_SPAN,
	LAYOUT_USER_METRIC,
	LAYOUT_EVENT,
	LAYOUT_TABLES
};

// How sent rows are identified.
enum layout_key {
	LAYOUT_BY_TIME,  // t_ns of the last row
	LAYOUT_BY_ROWID, // rowid of the last row
	LAYOUT_BY_ID,    // the set of ids
};

struct layout_names {
	const char *name; // table name, on both sides
	enum layout_key key;
	const char *key_column, *time_column;
	const char *device; // for tables with levels: the device column, or a constant
};
extern const struct layout_names layout_names[LAYOUT_TABLES];

enum { LAYOUT_FIELDS_MAX = 128, LAYOUT_NAME_SIZE = 64 };

struct layout_column { // a column on the server
	char name[LAYOUT_NAME_SIZE];
	enum pg_type type;
};

struct layout_server { // columns of a server table with types that we support
	struct layout_column columns[LAYOUT_FIELDS_MAX];
	size_t n;
};

enum layout_source { LAYOUT_RUN_ID, LAYOUT_TIME, LAYOUT_LEVEL, LAYOUT_VALUE };

struct layout_field {
	enum layout_source source;
	enum pg_type type;
	int column; // column index in the SELECT
};

// The first columns of each SELECT.
enum { LAYOUT_COLUMN_KEY, LAYOUT_COLUMN_TIME, LAYOUT_COLUMN_DEVICE, LAYOUT_COLUMN_RAW, LAYOUT_FIRST_VALUE };

struct layout {
	struct layout_field fields[LAYOUT_FIELDS_MAX];
	size_t n;
};

// -ENOENT: the server has no such table; -EACCES and other errors as in pq.h.
int layout_query(struct pg *pg, enum layout_table table, struct layout_server *ret_server, struct wattle_error *reterr);
/* Determines the common fields, the SELECT on the run file (?1, ?2: first and last key, both included), and the COPY. A run
 * file of an older version may lack the table: then ret_layout->n is 0. */
int layout_make(sqlite3 *db, const struct layout_server *server, enum layout_table table, struct layout *ret_layout,
	struct buf *select, struct buf *copy);

/* A set of numbers as ranges, in the text format of PostgreSQL's int8multirange: the ids of sent spans. Spans that end later
 * than spans that began after them leave gaps, so the number of ranges is about the number of open spans. */

struct range {
	int64_t from, to; // both included
};

struct ranges {              // ascending, with gaps between ranges
	struct range *items; // owned
	size_t n, capacity;
};

int ranges_parse(const char *text, struct ranges *ret_ranges); // "{[1,5),[7,9)}"; NULL: empty. -EINVAL, -ENOMEM
void ranges_write(const struct ranges *ranges, struct buf *out);
void ranges_finish(struct ranges *ranges);
int ranges_add(struct ranges *ranges, int64_t number); // fast at the end. -EINVAL: INT64_MAX; -ENOMEM
bool ranges_have(const struct ranges *ranges, int64_t number);

/* Reads the unsent part of a run file as rows for COPY. The file may be growing: it is open only while rows are read from one
 * snapshot into memory, so that a slow server never delays the recorder.
 *
 * Only final rows are sent. While the recorder is running, open spans are not final, nor are samples from the newest tick on:
 * readings between ticks may still add rows after it, and readers who thin samples keep the last sample of a recording. After
 * the recorder has exited everything is final. */

struct source_mark { // position up to which a table has been sent
	int64_t mark; // LAYOUT_BY_TIME, LAYOUT_BY_ROWID; VALUE_MISSING: nothing sent yet
	int64_t n;    // rows
};

struct source_marks {
	struct source_mark tables[LAYOUT_TABLES];
	struct ranges spans;
};

struct source_table {
	bool is_made; // the three fields below are set
	struct layout layout;
	struct buf select, copy_sql;
	struct copy rows;
};

enum { SOURCE_DAYS_MAX = 8 };

struct source {
	const char *path; // borrowed
	char run_id[40];
	unsigned char uuid[16];
	sqlite3 *db; // NULL: the file is not open
	bool is_live;

	struct run clocks; // segments, sleeps and the anchor, as run_wall_ns needs them; owned, without an arena
	int64_t *last_ns;  // owned, per segment: its last tick; INT64_MAX: still recording
	int64_t last_sleep_row;
	int64_t before_ns; // samples at or after this time are not final

	struct source_table tables[LAYOUT_TABLES];
	struct source_marks next;      // marks after these rows have been sent
	bool is_more;                  // the file has more rows than the batch
	int32_t days[SOURCE_DAYS_MAX]; // days (UTC, since 1970) that have rows now
	size_t n_days;

	int64_t wall_from_ns, wall_to_ns, wall_offset_ns; // wall-clock offset, valid from wall_from_ns to wall_to_ns
	int64_t *previous_ns;                             // owned, per device: time of its previous row
	size_t n_previous;
	int64_t previous_mark; // mark up to which previous_ns is valid
};

void source_init(struct source *source, const char *path);
void source_finish(struct source *source);
/* Opens the file and starts a snapshot. is_live: its recorder may be running. -ENOENT, -EINVAL (not a run file), -EBUSY (try
 * again) … */
int source_open(struct source *source, bool is_live, struct wattle_error *reterr);
void source_close(struct source *source);
// Determines the columns for COPY; the file is open.
int source_lay_out(struct source *source, const struct layout_server servers[LAYOUT_TABLES],
	struct wattle_error *reterr);
// Reads a batch of rows after the marks; the file is open. Returns the number of rows.
int64_t source_read(struct source *source, const struct source_marks *marks, struct wattle_error *reterr);
/* Number of all rows of a table in the file, for comparison with the number sent. */
int64_t source_count(struct source *source, enum layout_table table);
/* Checks that the file has as many rows up to the marks as were sent. If not, -EPROTO: it is a different file: an older copy,
 * or one whose recording was continued elsewhere. */
int source_check(struct source *source, const struct source_marks *marks, struct wattle_error *reterr);
int64_t source_wall_ns(struct source *source, int64_t t_ns); // VALUE_MISSING: no clock anchor

int source_marks_copy(const struct source_marks *from, struct source_marks *ret_to); // -ENOMEM
void source_marks_finish(struct source_marks *marks);

/* The small tables of a run file as JSON for wattle_put (tables.h): facts, devices, segments, column descriptions, processes. */

/* The tables that can change during a run: "run", "device", "segment", and "recording" as far as the file contains it. The file
 * is open. SQLite result code. */
int metadata_json_run(struct source *source, struct buf *out);
int metadata_json_metrics(struct source *source,
	struct buf *out); // "metric": descriptions of the file's columns, and the host's time

/* "process", a limited number of rows per call. *at is the position and is advanced; is_more: there are further rows. */
struct metadata_json_process {
	int64_t pid, start_ns; // last written process; pid VALUE_MISSING: none yet
	bool is_more;
};
int metadata_json_processes(struct source *source, struct metadata_json_process *at, struct buf *out);

// Shared by the files of send.h. Internal to src/store/postgres.

enum { SEND_JSON_CEILING = 1 << 28, SEND_DAYS_CACHED = 64 };

struct send_ahead { // the next batch, read during the current one
	struct source source;
	int64_t n; // number of rows; 0 or negative: no batch
	bool is_live, is_laid_out, is_running;
	pthread_t thread;
};

struct send {
	struct source source;
	struct send_ahead ahead;
	const char *url;
	struct pg *pg;                 // owned; NULL: not connected
	struct layout_server *servers; // owned, LAYOUT_TABLES; NULL: not read yet
	bool is_laid_out, has_marks, has_metrics;
	bool is_checked; // the file has been checked against the marks
	struct source_marks marks;
	char *span_ids; // owned: ids of sent spans, as stored on the server
	struct source_mark processes, report;
	int64_t state;    // state of the file, which marks `processes` and `report` get when they have been sent
	struct buf facts; // as last sent
	struct buf text;  // scratch
	int32_t days[SEND_DAYS_CACHED];
	size_t n_days;
	struct send_count count;
};

/* send_marks.c: how far each table has been sent. Rows of `sent` besides those of the COPY tables: */
extern const char send_processes_name[], send_report_name[];
int send_take_marks(struct send *send,
	const struct pg_rows *rows); // replaces the marks by the server's. -ENOMEM
/* Whether the server's marks equal ours: no other sender has sent rows of this run, and the server has lost none. A server that
 * crashes loses the last transactions, rows and marks together, because their COMMIT does not wait for the disk. */
bool send_marks_hold(struct send *send, const struct pg_rows *rows);
bool send_is_new(const struct send *send, size_t table); // the batch has rows of the table
// Writes the marks of the tables with new rows. *ret_ids: ids of sent spans afterwards; NULL: no new spans.
int send_mark_rows(struct send *send, char **ret_ids, struct wattle_error *reterr);
int send_mark_one(struct send *send, const char *name, const struct source_mark *mark, struct wattle_error *reterr);

/* pipeline.c: reads the next batch ahead. begin: inside a transaction of rows, if the file has more; end: after that
 * transaction, with its result; take: makes the batch that was read ahead the current one of `source` and returns its number of
 * rows, or 0. The batch is valid only if the transaction succeeded. */
void pipeline_begin(struct send *send);
void pipeline_end(struct send *send, bool is_sent);
int64_t pipeline_read_results(struct send *send);

// send.c
int send_abort(struct send *send, int r); // handles a failure of the server; returns the error
int send_make_ready(struct send *send, struct wattle_error *reterr); // connects and reads the marks
/* Begins a transaction and compares the server's marks with ours. 1: they differ; the server's marks are now ours and the
 * transaction has ended: read the batch again. */
int send_begin(struct send *send, struct wattle_error *reterr);
int send_put(struct send *send, const char *json, struct wattle_error *reterr);
int send_fail_file(struct send *send, struct wattle_error *reterr);

// Shared by source.c and source_clock.c. Internal to src/store/postgres.

int source_read_clocks(struct source *source);                 // SQLite result code
void source_begin_levels(struct source *source, int64_t mark); // call before reading the rows of a table after the mark
enum pg_level source_level(struct source *source, enum layout_table table, int64_t device, int64_t t_ns, bool has_raw);
