/* The tables of the run file (docs/run-file.md), derived from the metric table and one list of columns. Table `metric` of every
 * file documents the same columns. */
#pragma once

#include "base/buf.h"
#include "metric/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SCHEMA_APPLICATION_ID = 0x57544c31, // "WTL1"
	SCHEMA_VERSION = 1,                 // user_version: increased when old versions would misread the file
};

// A figure of a recording's end: its column of table segment and its offsets in the two structs.
struct schema_figure {
	const char *column;
	size_t in_footer;  // offset of an int64_t in struct store_footer
	size_t in_segment; // offset of an int64_t in struct run_segment
	bool is_time;      // on the run's clock; shifted in an appended segment
};
const struct schema_figure *schema_figures(size_t *ret_count);

// A column that is not a metric. unit is "" for columns without a unit.
struct schema_column {
	const char *table, *name, *type, *unit, *meaning;
	const char *fact; // of table recording in PostgreSQL: key in table run of the value; NULL: none
};
const struct schema_column *schema_columns(size_t *ret_count);

const char *schema_sample_table(enum metric_scope scope); // "sample", "device_sample", "process_sample"

// CREATE TABLE statements of all tables, application_id and user_version.
void schema_create(struct buf *out);
// INSERT of n_rows rows INTO a sample table. Each row: its keys (t_ns; t_ns, device; t_ns, pid, start_ns), then its first
// n_metrics metrics in order.
void schema_insert_samples(struct buf *out, enum metric_scope scope, size_t n_metrics, size_t n_rows);
int schema_key_count(enum metric_scope scope);
/* The columns of a sample table in the order of its records, if its SQL text is one that schema_create of any version wrote:
 * the keys, then any number of integer columns. The names point into the text and end at a blank. */
enum { SCHEMA_STORED_COLUMNS = 80 };
struct schema_stored {
	const char *names[SCHEMA_STORED_COLUMNS];
	size_t n;
};
bool schema_stored_columns(enum metric_scope scope, const char *sql, struct schema_stored *ret_stored);
// UPDATE segment SET all figures: ?1, ?2 … in the order of schema_figures, WHERE id is the parameter after the last.
void schema_update_figures(struct buf *out);
