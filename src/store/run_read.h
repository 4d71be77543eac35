/* Reads tables into arrays of the arena, from a run file (run_load.c) or from PostgreSQL (postgres/load.c), which have the same
 * tables. Internal to src/store. */
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

/* Access to one row during reading. Columns are numbered from 0. */
struct cells {
	const struct cells_ops *ops;
	const void *row;
};
struct cells_ops {
	int64_t (*i64)(const void *row, int column); // VALUE_MISSING unless it holds an integer
	double (*real)(const void *row, int column); // NaN unless it holds a number
	// Valid until the next row; not NUL-terminated. NULL for null.
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
	struct arena *arena);                                                   // copied; NULL for null or without memory
void cells_copy(const struct cells *cells, int column, char *out, size_t size); // truncated to size; "" for null

/* Clamps times to ±36 years, far beyond any uptime, so that differences and sums of two values from a damaged file cannot
 * overflow. */
#define RUN_CLOCK_MAX_NS (INT64_C(1) << 60)
static inline int64_t run_clock_ns(int64_t t_ns) // times without a value sort first
{
	return t_ns < -RUN_CLOCK_MAX_NS ? -RUN_CLOCK_MAX_NS : t_ns > RUN_CLOCK_MAX_NS ? RUN_CLOCK_MAX_NS : t_ns;
}

/* ---- sources ---- */

struct run_question {
	const char *table, *columns;
	const char *where, *order; // where NULL: all rows; order NULL: storage order
	const char *group;         // NULL: none
	bool in_time;              // sample tables: only the requested times or levels
};
typedef int run_take(void *data, const struct cells *row);
run_take run_take_sum; // adds a count to a size_t

struct run_reader;
struct run_source {
	bool (*has_column)(struct run_reader *reader, const char *table, const char *column);
	// Passes every row to `take`. A return value of `take` other than 0 ends the reading and is returned.
	int (*read)(struct run_reader *reader, const struct run_question *question, run_take *take, void *data);
	int (*max_spans)(struct run_reader *reader, size_t *ret_n);  // upper limit of the number of spans
	struct run_question sample_count, device_counts;             // one row, or several to be added: n; device, n
};
extern const struct run_source run_source_file;

struct run_range { // time range, both ends included
	int64_t from_ns, to_ns;
};

struct run_reader {
	const struct run_source *source;
	struct arena *arena;
	// Samples in these time ranges are read, in order.
	const struct run_range *ranges;
	size_t n_ranges;

	// run file
	sqlite3 *db;       // inside one read transaction: one snapshot of the file while a writer continues
	size_t max_bytes; // limit of the arena: more than any file of this size needs, unless its pages are visited repeatedly
	int spool_fd; // opened before the transaction; segment.spool_bytes: converted bytes; -1: none
	struct spool_header spool;

	struct pg_run *server; // PostgreSQL
};

// All return 0, SQLITE_NOMEM, or the error of the source.
int run_read_metadata(struct run_reader *reader, struct run *run);
int run_read_segments(struct run_reader *reader, struct run *run); // call after the samples
int run_read_devices(struct run_reader *reader, struct run *run);  // without samples
int run_read_processes(struct run_reader *reader, struct run *run);
int run_read_events(struct run_reader *reader, struct run *run);
int run_read_spans(struct run_reader *reader, struct run *run); // also metrics and further events; call after the events

int run_read_samples(struct run_reader *reader, struct run *run);
int run_read_device_samples(struct run_reader *reader, struct run *run); // call after the devices
int run_read_process_samples(struct run_reader *reader, struct run *run);

/* Collects the values of successive rows into packed chunks of columns. */
struct value_packer {
	struct arena *arena;
	size_t capacity, n_values; // rows that the columns have space for; values per row
	int64_t *rows;         // rows of the current chunk; owned
};
// Returns the array for the values of row n. NULL: out of memory.
int64_t *value_packer_row(struct value_packer *packer, size_t n_values, size_t n);
/* Packs the latest chunk once n rows are complete: at the end of each chunk and of the rows. Value i is stored in
 * packed[columns[i]], which is allocated at its first value. False: out of memory. */
bool value_packer_flush(struct value_packer *packer, const size_t *columns, const struct value_chunk ***packed,
	size_t n);

// Selects the samples of a run file to read, about one per every_ns: fills ranges.
int run_thin(struct run_reader *reader, int64_t every_ns);

/* Reads the rows of a sample table from the pages of a run file without SQL. For a day at 10 Hz, SQLite would decode 3.5
 * million rows of up to 25 columns value by value, which is most of the time of a report.
 * https://www.sqlite.org/fileformat.html describes pages, cells and records.
 *
 * The file is untrusted: each page is visited a bounded number of times, and every offset is checked. */

enum { TABLE_PAGES_OTHER = -1 };

// The values of a row in the order of the requested columns; VALUE_MISSING where a column holds no integer within 2^62.
typedef int table_pages_take(void *data, const int64_t *values);

/* Passes all rows to `take` in the order of the primary key. `columns`: names separated by ", ", at most SCHEMA_STORED_COLUMNS;
 * "1" is the number 1. TABLE_PAGES_OTHER, before any row was passed: the table or the file differs from what wattle writes, or
 * the file has a log; read it with SQL. Otherwise 0, SQLITE_CORRUPT, SQLITE_NOMEM, the error of the file system, or the return
 * value of `take` other than 0. The connection must be inside a read transaction that has read something, so that no other
 * process changes the file. */
int table_pages_read(sqlite3 *db, enum metric_scope scope, const char *columns, table_pages_take *take, void *data);

/* Converts the sentences of events in run files from before table event had columns. Only this module parses them. */

/* Fills the fields of event (kind and t_ns are set already) from its sentence as far as possible. Texts are in `arena`;
 * -ENOMEM. For a sentence that no version of wattle wrote, the type stays EVENT_OTHER; a domain name at the beginning is still
 * read. */
int event_of_text(struct event *event, const char *text, struct arena *arena);

/* Sorts rows by a time and then by an id. Optimised for rows that are nearly sorted: rows of several threads, each in order.
 * Internal to src/store. */

enum { SORT_NO_ID = -1 };

/* Rows of `size` bytes with an int64_t at each of the two offsets; SORT_NO_ID: rows of equal time keep their order. On -ENOMEM
 * nothing is changed. */
int sort_rows(void *rows, size_t size, size_t n, size_t time_at, ptrdiff_t id_at);
