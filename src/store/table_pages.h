/* Rows of a table of samples, read from the pages of a run file without SQL. Of a day at 10 Hz SQLite decodes 3.5 million rows of up to 25 columns,
 * value by value: most of what a report takes. https://www.sqlite.org/fileformat.html describes pages, cells and records.
 *
 * The file is anybody's: each page is visited a bounded number of times, and every offset is checked. */
#pragma once

#include "metric/metric.h"

#include <sqlite3.h>

enum { TABLE_PAGES_OTHER = -1 };

// n values of a row in the order of the columns asked for; VALUE_MISSING where a column holds no integer within 2^62.
typedef int table_pages_take(void *data, const int64_t *values);

/* Hands over all rows in the order of the primary key. `columns`: names separated by ", ", at most SCHEMA_STORED_COLUMNS; "1" is the number.
 * TABLE_PAGES_OTHER before any row was handed over: the table, or the file, is not as wattle makes it, or has a log; SQL can read it. Else 0,
 * SQLITE_CORRUPT, SQLITE_NOMEM, what the file system says, or what `take` returned when that was not 0.
 * The connection is inside a read transaction that has read something, so that nobody changes the file. */
int table_pages_read(sqlite3 *db, enum metric_scope scope, const char *columns, table_pages_take *take, void *data);
