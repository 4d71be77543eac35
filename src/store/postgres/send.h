/* Run files on their way into PostgreSQL. */
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

/* A run file on its way into PostgreSQL, batch by batch, each row exactly once: what has been sent stands on the server, in the same
 * transaction as the rows, and is asked for again whenever a connection is new. So it does not matter who sends, how often, or where
 * they were cut off; two who send one run at a time follow each other. */

struct send;

struct send_count {
	int64_t rows;    // sent by this sender: of samples, spans, metrics and events
	int64_t batches; // transactions that brought some
	int64_t bytes;   // of COPY
};

// No connection yet, and the file need not be there. `path` and `url` are borrowed. NULL: no memory.
struct send *send_new(const char *path, const char *url);
void send_free(struct send *send);

/* One batch. A server that says nothing for a minute has gone. is_live: the file's recorder may go on, so that what is not final is left for later.
 * 1: there is more; 0: all that there is to send has been sent; -EBUSY: the file can't be read now; what pq.h says of servers
 * (after pg_may_pass the next call connects again); else the file's own trouble. */
int send_batch(struct send *send, bool is_live, struct wattle_error *reterr);
/* After send_batch said 0 with a file that is over: processes, and that the server has as many rows as the file; waits until all of it
 * is on the server's disk. -EPROTO: they differ. */
int send_rest(struct send *send, struct wattle_error *reterr);
/* Whether the report of this state of the file is still to be sent (send_report): after send_rest. */
bool send_wants_report(const struct send *send);
// JSON for wattle_put, of findings: "recording" and "block".
int send_report(struct send *send, const char *json, struct wattle_error *reterr);

struct send_count send_count(const struct send *send);
const char *send_where(const struct send *send);  // pg_where; "" while not connected
const char *send_run_id(const struct send *send); // "" until the file was open

/* Rows in the binary format of COPY, one after the other in memory: no text is made and none is parsed. */

enum pg_type { // of the columns that COPY fills
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
	size_t header_size; // size of one without rows
	int64_t n_rows;
	bool failed; // no memory; sticky
};

void copy_init(struct copy *copy);
void copy_finish(struct copy *copy);
void copy_clear(struct copy *copy);                // keeps the memory; what begins the format stands there again
void copy_row(struct copy *copy, size_t n_fields); // that many fields follow
void copy_end(struct copy *copy);                  // after the last row

void copy_null(struct copy *copy);
void copy_i64(struct copy *copy, enum pg_type type,
	int64_t value); // INT2, INT4, INT8, FLOAT8; null where it does not fit
void copy_double(struct copy *copy, double value);
// Text of so many bytes; what is no UTF-8 becomes U+FFFD, as does NUL, which PostgreSQL refuses.
void copy_text(struct copy *copy, const char *text, size_t size);
void copy_uuid(struct copy *copy, const unsigned char uuid[16]);
void copy_time(struct copy *copy, int64_t unix_ns); // to whole microseconds, towards the past

// "xxxxxxxx-xxxx-…": false if it is none.
bool copy_parse_uuid(const char *text, unsigned char ret_uuid[16]);

/* How rows of one table of the run file become rows of the server's table: the columns that both have, by name, and those that only
 * the server's has (run_id, time, level). A server of another version may have more or fewer metrics than we. */

enum layout_table {
	LAYOUT_SAMPLE,
	LAYOUT_DEVICE_SAMPLE,
	LAYOUT_PROCESS_SAMPLE,
	LAYOUT_SPAN,
	LAYOUT_USER_METRIC,
	LAYOUT_EVENT,
	LAYOUT_TABLES
};

// What the rows that have been sent are told by.
enum layout_key {
	LAYOUT_BY_TIME,  // t_ns of the last one
	LAYOUT_BY_ROWID, // rowid of the last one
	LAYOUT_BY_ID,    // the set of ids
};

struct layout_names {
	const char *name; // of the table, in both
	enum layout_key key;
	const char *key_column, *time_column;
	const char *device; // whose samples have levels: a column, or a constant
};
extern const struct layout_names layout_names[LAYOUT_TABLES];

enum { LAYOUT_FIELDS_MOST = 128, LAYOUT_NAME_SIZE = 64 };

struct layout_column { // of the server
	char name[LAYOUT_NAME_SIZE];
	enum pg_type type;
};

struct layout_server { // the columns of one of its tables, of types that we know
	struct layout_column columns[LAYOUT_FIELDS_MOST];
	size_t n;
};

enum layout_source { LAYOUT_RUN_ID, LAYOUT_TIME, LAYOUT_LEVEL, LAYOUT_VALUE };

struct layout_field {
	enum layout_source source;
	enum pg_type type;
	int column; // of the SELECT
};

// The first columns of every SELECT.
enum { LAYOUT_COLUMN_KEY, LAYOUT_COLUMN_TIME, LAYOUT_COLUMN_DEVICE, LAYOUT_COLUMN_RAW, LAYOUT_FIRST_VALUE };

struct layout {
	struct layout_field fields[LAYOUT_FIELDS_MOST];
	size_t n;
};

// -ENOENT: the server has no such table; -EACCES and others as pq.h.
int layout_ask(struct pg *pg, enum layout_table table, struct layout_server *ret_server, struct wattle_error *reterr);
/* Which fields there are, the SELECT over the run file (?1, ?2: keys from and to, both included), and the COPY. A run file of an older
 * version may lack the whole table: then ret_layout->n is 0. */
int layout_make(sqlite3 *db, const struct layout_server *server, enum layout_table table, struct layout *ret_layout,
	struct buf *select, struct buf *copy);

/* A set of numbers as ranges, written as PostgreSQL's int8multirange is: which spans have been sent. Those that end later than
 * others which began later make the holes, so there are about as many ranges as spans that run. */

struct range {
	int64_t from, to; // both belong to it
};

struct ranges {              // ascending, never touching each other
	struct range *items; // owned
	size_t n, capacity;
};

int ranges_parse(const char *text, struct ranges *ret_ranges); // "{[1,5),[7,9)}"; NULL: empty. -EINVAL, -ENOMEM
void ranges_write(const struct ranges *ranges, struct buf *out);
void ranges_finish(struct ranges *ranges);
int ranges_add(struct ranges *ranges, int64_t number); // quick at the end. -EINVAL: the largest one; -ENOMEM
bool ranges_have(const struct ranges *ranges, int64_t number);

/* What of a run file has not been sent yet, as rows for COPY. The file may grow meanwhile: it is open only while rows are read, from
 * one instant of it into memory, so that a slow server never holds up its recorder.
 *
 * What is final is told apart from what is not: while the recorder lives, spans that have not ended are left for later, and so are
 * samples from the newest tick on (looks between ticks may still add rows behind it, and the last sample of a recording is kept by
 * readers who thin them out). Once the recorder is gone everything is final. */

struct source_mark {  // of one table: how far it has been sent
	int64_t mark; // LAYOUT_BY_TIME, _BY_ROWID; VALUE_MISSING: nothing so far
	int64_t n;    // rows
};

struct source_marks {
	struct source_mark tables[LAYOUT_TABLES];
	struct ranges spans;
};

struct source_table {
	bool is_made; // the three below
	struct layout layout;
	struct buf select, copy_sql;
	struct copy rows;
};

enum { SOURCE_DAYS_MOST = 8 };

struct source {
	const char *path; // borrowed
	char run_id[40];
	unsigned char uuid[16];
	sqlite3 *db; // NULL: the file is not open now
	bool is_live;

	struct run clocks; // segments, sleeps and the anchor: all that run_wall_ns asks for. Owned, no arena
	int64_t *last_ns;  // owned, of each segment: its last tick; INT64_MAX: it goes on
	int64_t last_sleep_row;
	int64_t before_ns; // samples from then on are not final

	struct source_table tables[LAYOUT_TABLES];
	struct source_marks next;       // as it will be when these rows have been sent
	bool is_more;                   // there was more than goes into one batch
	int32_t days[SOURCE_DAYS_MOST]; // of UTC since 1970, in which there are rows now
	size_t n_days;

	int64_t wall_from_ns, wall_to_ns, wall_offset_ns; // the wall clock is that much ahead from .. to
	int64_t *previous_ns;                             // owned: of each device, its row before
	size_t n_previous;
	int64_t previous_mark; // they are those up to this mark
};

void source_init(struct source *source, const char *path);
void source_finish(struct source *source);
/* Opens the file at one instant. is_live: its recorder may go on. -ENOENT, -EINVAL (no run file), -EBUSY (look again) … */
int source_open(struct source *source, bool is_live, struct wattle_error *reterr);
void source_close(struct source *source);
// The columns that go into COPY; the file is open.
int source_lay_out(struct source *source, const struct layout_server servers[LAYOUT_TABLES],
	struct wattle_error *reterr);
// Reads what lies behind the marks, a batch of it; the file is open. Returns the number of rows.
int64_t source_read(struct source *source, const struct source_marks *marks, struct wattle_error *reterr);
/* Rows that a file has of a table, all of them: to be compared with what was sent. */
int64_t source_count(struct source *source, enum layout_table table);
/* Of those that lie up to the marks there must be just as many as were sent, or it is another file: an older copy, or one that was
 * recorded further elsewhere. -EPROTO says so. */
int source_check(struct source *source, const struct source_marks *marks, struct wattle_error *reterr);
int64_t source_wall_ns(struct source *source, int64_t t_ns); // VALUE_MISSING: it has no clock

int source_marks_copy(const struct source_marks *from, struct source_marks *ret_to); // -ENOMEM
void source_marks_finish(struct source_marks *marks);

/* The small tables of a run file as JSON, for wattle_put (calls.h): facts, devices, segments, what columns mean, processes. */

/* What can change as a run goes on: "run", "device", "segment", and "recording" as far as the file says it itself. The file is open.
 * SQLite's result code. */
int small_facts(struct source *source, struct buf *out);
int small_metrics(struct source *source,
	struct buf *out); // "metric": what the columns of this file mean; and what time it is here

/* "process", from a key on: so many at a time. *at is moved on, and is_more says whether there are others. */
struct small_process {
	int64_t pid, start_ns; // the last one that was written; pid VALUE_MISSING: none so far
	bool is_more;
};
int small_processes(struct source *source, struct small_process *at, struct buf *out);

// What the files of send.h share. Between room-mates.

enum { SEND_JSON_CEILING = 1 << 28, SEND_KNOWN_DAYS = 64 };

struct send_ahead { // the batch after the one that is on its way
	struct source source;
	int64_t n; // rows of it; not above 0: there is none
	bool is_live, is_laid_out, is_running;
	pthread_t thread;
};

struct send {
	struct source source;
	struct send_ahead ahead;
	const char *url;
	struct pg *pg;                 // owned; NULL: not connected
	struct layout_server *servers; // owned, LAYOUT_TABLES; NULL: not asked yet
	bool is_laid_out, has_marks, has_metrics;
	bool is_checked; // the file is the one that the marks are of
	struct source_marks marks;
	char *span_ids; // owned: of the marks, as the server has them
	struct source_mark processes, report;
	int64_t state;    // of the file: what `processes` and `report` are to be, once they are sent
	struct buf facts; // as last sent
	struct buf text;  // scratch
	int32_t days[SEND_KNOWN_DAYS];
	size_t n_days;
	struct send_count count;
};

/* send_marks.c: how far each table has been sent. Further rows of `sent`, besides those of the tables that COPY fills: */
extern const char send_processes_name[], send_report_name[];
int send_take_marks(struct send *send,
	const struct pg_rows *rows); // what the server says replaces what we thought. -ENOMEM
/* Whether nobody else has sent rows of this run since we looked, and the server has forgotten none (one that dies forgets the last
 * transactions, rows and marks together, because they need not wait for its disk). */
bool send_marks_hold(struct send *send, const struct pg_rows *rows);
bool send_is_new(const struct send *send, size_t table); // the batch has rows of it
// Marks those of the tables that have new rows. *ret_ids: of the spans, as they are then; NULL: no new ones.
int send_mark_rows(struct send *send, char **ret_ids, struct wattle_error *reterr);
int send_mark_one(struct send *send, const char *name, const struct source_mark *mark, struct wattle_error *reterr);

/* send_ahead.c. begin: within a transaction of rows, where there are more behind them; end: at its end, however it went; take: the rows
 * read so are those of `source` now, and their number, or 0. They fit what has been sent as long as nothing fails. */
void send_ahead_begin(struct send *send);
void send_ahead_end(struct send *send, bool is_sent);
int64_t send_ahead_take(struct send *send);

// send.c
int send_lose(struct send *send, int r); // what follows a failure of the server's; returns the error
int send_make_ready(struct send *send, struct wattle_error *reterr); // connected, with marks
/* Begins a transaction, and finds the marks as we think that they are. 1: they are others, which have been taken over, and the
 * transaction is over: read again. */
int send_begin(struct send *send, struct wattle_error *reterr);
int send_put(struct send *send, const char *json, struct wattle_error *reterr);
int send_fail_file(struct send *send, struct wattle_error *reterr);

// What the files of source.h share. Between room-mates.

int source_read_clocks(struct source *source);                 // SQLite's result code
void source_begin_levels(struct source *source, int64_t mark); // rows behind the mark come next, of one table
enum pg_level source_level(struct source *source, enum layout_table table, int64_t device, int64_t t_ns, bool has_raw);
