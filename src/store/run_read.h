/* Reading tables into arrays of the arena, out of a run file (run_load.c) or of PostgreSQL (postgres/load.c), which have the same
 * tables. Between room-mates. */
#pragma once

#include "base/arena.h"
#include "metric/event.h"
#include "metric/metric.h"
#include "store/follow.h"
#include "store/run.h"
#include "store/sql.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- rows ---- */

/* A row while it is looked at. Columns are numbered from 0. */
struct cells {
	const struct cells_ops *ops;
	const void *row;
};
struct cells_ops {
	int64_t (*i64)(const void *row, int column); // VALUE_MISSING unless it holds an integer
	double (*real)(const void *row, int column); // NaN unless it holds a number
	// Until the next row; no NUL behind them. NULL for null.
	const char *(*bytes)(const void *row, int column, size_t *ret_size);
	void (*i64s)(const void *row, int first, size_t n, int64_t *ret_values);
};
static inline int64_t cells_i64(const struct cells *cells, int column)
{
	return cells->ops->i64(cells->row, column);
}
static inline double cells_double(const struct cells *cells, int column)
{
	return cells->ops->real(cells->row, column);
}
const char *cells_text(const struct cells *cells, int column,
	struct arena *arena);                                                   // copied; NULL for null, or no memory
void cells_copy(const struct cells *cells, int column, char *out, size_t size); // cut where it is too long; "" for null

/* No machine runs for 36 years, and what a damaged file says beyond that must not make differences and sums of two that are no numbers. */
#define RUN_CLOCK_MAX_NS (INT64_C(1) << 60)
static inline int64_t run_clock_ns(int64_t t_ns) // one without a value comes before all others
{
	return t_ns < -RUN_CLOCK_MAX_NS ? -RUN_CLOCK_MAX_NS : t_ns > RUN_CLOCK_MAX_NS ? RUN_CLOCK_MAX_NS : t_ns;
}

/* ---- sources ---- */

struct run_question {
	const char *table, *columns;
	const char *where, *order; // NULL: all; as they lie
	const char *group;         // NULL: none
	bool in_time;              // of a table of samples: only the times, or the levels, that are wanted
};
typedef int run_take(void *data, const struct cells *row);
run_take run_take_sum; // of a count, added to a size_t

struct run_reader;
struct run_source {
	bool (*has_column)(struct run_reader *reader, const char *table, const char *column);
	// Hands over all rows. What `take` returns when it is not 0 ends the reading and is returned.
	int (*read)(struct run_reader *reader, const struct run_question *question, run_take *take, void *data);
	int (*most_spans)(struct run_reader *reader, size_t *ret_n); // at least as many as there are
	struct run_question sample_count, device_counts;             // one row or several to be added up: n; device, n
};
extern const struct run_source run_source_file;

struct run_range { // of time, both ends included
	int64_t from_ns, to_ns;
};

struct run_reader {
	const struct run_source *source;
	struct arena *arena;
	// Samples of these times are read, in order.
	const struct run_range *ranges;
	size_t n_ranges;

	// of a run file
	sqlite3 *db;       // inside one read transaction: a writer may go on, we see one instant
	size_t most_bytes; // of the arena: what no file of this size can need, unless its pages are told again and again
	int spool_fd; // opened before the transaction began: what became rows meanwhile is told by segment.spool_bytes; -1: none
	struct spool_header spool;

	struct pg_run *server; // of PostgreSQL
};

// All return 0, SQLITE_NOMEM, or what the source says.
int run_read_facts(struct run_reader *reader, struct run *run);
int run_read_segments(struct run_reader *reader, struct run *run); // after the samples
int run_read_devices(struct run_reader *reader, struct run *run);  // without their samples
int run_read_processes(struct run_reader *reader, struct run *run);
int run_read_events(struct run_reader *reader, struct run *run);
int run_read_spans(struct run_reader *reader, struct run *run); // and metrics, and more events; after the events

int run_read_samples(struct run_reader *reader, struct run *run);
int run_read_device_samples(struct run_reader *reader, struct run *run); // after the devices
int run_read_process_samples(struct run_reader *reader, struct run *run);

/* Values row after row into the chunks of columns. */
struct value_packer {
	struct arena *arena;
	size_t room, n_values; // rows that the columns have room for; values of a row
	int64_t *rows;         // of the chunk that is being filled; owned
};
// Where the values of row n go. NULL: no memory.
int64_t *value_packer_row(struct value_packer *packer, size_t n_values, size_t n);
/* Packs what is there of the latest chunk, once n rows are: at the end of each chunk, and of the rows. Value i goes into
 * packed[columns[i]], which gets memory with its first value. False: no memory. */
bool value_packer_flush(struct value_packer *packer, const size_t *columns, const struct value_chunk ***packed,
	size_t n);

// Which samples of a run file to read, so that about one is left in every_ns: fills ranges.
int run_thin(struct run_reader *reader, int64_t every_ns);

/* Rows of a table of samples, read from the pages of a run file without SQL. Of a day at 10 Hz SQLite decodes 3.5 million rows of up to 25 columns,
 * value by value: most of what a report takes. https://www.sqlite.org/fileformat.html describes pages, cells and records.
 *
 * The file is anybody's: each page is visited a bounded number of times, and every offset is checked. */

enum { TABLE_PAGES_OTHER = -1 };

// n values of a row in the order of the columns asked for; VALUE_MISSING where a column holds no integer within 2^62.
typedef int table_pages_take(void *data, const int64_t *values);

/* Hands over all rows in the order of the primary key. `columns`: names separated by ", ", at most SCHEMA_STORED_COLUMNS; "1" is the number.
 * TABLE_PAGES_OTHER before any row was handed over: the table, or the file, is not as wattle makes it, or has a log; SQL can read it. Else 0,
 * SQLITE_CORRUPT, SQLITE_NOMEM, what the file system says, or what `take` returned when that was not 0.
 * The connection is inside a read transaction that has read something, so that nobody changes the file. */
int table_pages_read(sqlite3 *db, enum metric_scope scope, const char *columns, table_pages_take *take, void *data);

/* Events of run files that were recorded before table event had columns: their sentences into fields. The only place that reads them. */

/* Fields of event (kind and t_ns are there already) from its sentence, as far as they can be told. Texts in `arena`; -ENOMEM. A sentence
 * that no version of wattle wrote leaves the type EVENT_OTHER, with the domain that it begins with, if there is one. */
int event_of_text(struct event *event, const char *text, struct arena *arena);

/* Puts rows into the order of a time in them, then of an id. Made for rows that nearly are: what some threads did, each in
 * order, side by side. Between room-mates. */

enum { SORT_NO_ID = -1 };

/* Rows of `size` bytes with an int64_t at each of the two offsets; SORT_NO_ID: rows of one time stay as they are. -ENOMEM,
 * and nothing was changed. */
int sort_rows(void *rows, size_t size, size_t n, size_t time_at, ptrdiff_t id_at);
