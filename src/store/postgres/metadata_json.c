#include "store/postgres/send.h"

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { PROCESSES_AT_A_TIME = 2000 };

/* ---- rows as objects ---- */

static void put_value(struct jsonw *j, sqlite3_stmt *s, int column)
{
	switch (sqlite3_column_type(s, column)) {
	case SQLITE_INTEGER:
		jsonw_i64(j, sqlite3_column_int64(s, column));
		return;
	case SQLITE_FLOAT:
		jsonw_double(j, sqlite3_column_double(s, column));
		return;
	case SQLITE_TEXT:
		jsonw_string(j, (const char *)sqlite3_column_text(s, column));
		return;
	default:
		jsonw_null(j);
	}
}

// The members of one object, without its braces.
static void put_members(struct jsonw *j, sqlite3_stmt *s)
{
	for (int i = 0; i < sqlite3_column_count(s); i++) {
		jsonw_key(j, sqlite3_column_name(s, i));
		put_value(j, s, i);
	}
}

static int put_table(struct source *source, const char *name, struct jsonw *j)
{
	char sql[64];
	snprintf(sql, sizeof(sql), "SELECT * FROM %s", name);
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(source->db, sql, -1, &s, NULL);
	jsonw_key(j, name);
	jsonw_begin_array(j);
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW) {
		r = SQLITE_OK;
		jsonw_begin_object(j);
		put_members(j, s);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
	sqlite3_finalize(s);
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

// RFC 3339, to the microsecond.
static void put_time(struct jsonw *j, const char *key, int64_t unix_ns)
{
	time_t seconds = (time_t)(unix_ns / NS_PER_S - (unix_ns % NS_PER_S < 0));
	struct tm tm;
	char text[64] = "";
	if (!value_ok(unix_ns) || gmtime_r(&seconds, &tm) == NULL) {
		jsonw_key_string(j, key, NULL);
		return;
	}
	int64_t rest_us = (unix_ns - (int64_t)seconds * NS_PER_S) / 1000;
	size_t length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + length, sizeof(text) - length, ".%06" PRId64 "Z", rest_us);
	jsonw_key_string(j, key, text);
}

/* ---- the recording ---- */

// The columns of table recording that are facts of the run.
static int put_recorded(struct source *source, struct jsonw *j)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(source->db, "SELECT value, CAST(value AS INTEGER) FROM run WHERE key = ?", -1, &s,
		NULL);
	struct pg_column columns[PG_COLUMNS_MAX];
	size_t n = pg_columns("recording", columns);
	for (size_t i = 0; r == SQLITE_OK && i < n; i++) {
		if (columns[i].fact == NULL)
			continue;
		sqlite3_reset(s);
		sql_bind_text(s, 1, columns[i].fact);
		if (sqlite3_step(s) != SQLITE_ROW)
			continue;
		jsonw_key(j, columns[i].name);
		put_value(j, s, strcmp(columns[i].type, "bigint") == 0);
	}
	sqlite3_finalize(s);
	return r;
}

static int put_segments(struct source *source, struct jsonw *j)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(source->db,
		"SELECT min(start_ns), max(end_ns), count(*), min(complete), sum(samples), count(samples), "
		"(SELECT exit_code FROM segment ORDER BY id DESC LIMIT 1), "
		"(SELECT command FROM segment ORDER BY id LIMIT 1) FROM segment",
		-1, &s, NULL);
	if (r == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW && value_ok(sql_i64(s, 0))) {
		int64_t end_ns = sql_i64(s, 1), segments = sql_i64(s, 2);
		bool is_complete = sql_i64(s, 3) == 1;
		put_time(j, "started", source_wall_ns(source, sql_i64(s, 0)));
		if (is_complete && value_ok(end_ns))
			put_time(j, "ended", source_wall_ns(source, end_ns));
		jsonw_key_i64(j, "segments", segments);
		jsonw_key_bool(j, "complete", is_complete);
		if (sql_i64(s, 5) == segments)
			jsonw_key_i64(j, "samples", sql_i64(s, 4));
		jsonw_key(j, "exit_code");
		put_value(j, s, 6);
		jsonw_key(j, "command");
		put_value(j, s, 7);
	}
	sqlite3_finalize(s);
	return r;
}

int metadata_json_run(struct source *source, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, false);
	jsonw_begin_object(&j);
	int r = put_table(source, "run", &j);
	if (r == SQLITE_OK)
		r = put_table(source, "device", &j);
	if (r == SQLITE_OK)
		r = put_table(source, "segment", &j);
	jsonw_key(&j, "recording");
	jsonw_begin_object(&j);
	if (r == SQLITE_OK)
		r = put_recorded(source, &j);
	if (r == SQLITE_OK)
		r = put_segments(source, &j);
	jsonw_end_object(&j);
	jsonw_end_object(&j);
	return out->failed != 0 ? SQLITE_NOMEM : r;
}

int metadata_json_metrics(struct source *source, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, false);
	jsonw_begin_object(&j);
	int r = put_table(source, "metric", &j);
	jsonw_key(&j, "recording");
	jsonw_begin_object(&j);
	jsonw_key_double(&j, "host_unix_s", (double)clock_wall_ns() / 1e9);
	jsonw_end_object(&j);
	jsonw_end_object(&j);
	return out->failed != 0 ? SQLITE_NOMEM : r;
}

/* ---- processes ---- */

int metadata_json_processes(struct source *source, struct metadata_json_process *at, struct buf *out)
{
	sqlite3_stmt *s = NULL;
	struct jsonw j;
	jsonw_init(&j, out, false);
	jsonw_begin_object(&j);
	jsonw_key(&j, "process");
	jsonw_begin_array(&j);
	at->is_more = false;
	int r = sqlite3_prepare_v2(source->db,
		"SELECT * FROM process WHERE (pid, start_ns) > (?1, ?2) ORDER BY pid, start_ns LIMIT ?3", -1, &s, NULL);
	if (r == SQLITE_OK) {
		sqlite3_bind_int64(s, 1, at->pid); // VALUE_MISSING is smaller than any pid
		sqlite3_bind_int64(s, 2, at->start_ns);
		sqlite3_bind_int(s, 3, PROCESSES_AT_A_TIME);
	}
	int64_t n = 0;
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW) {
		r = SQLITE_OK;
		jsonw_begin_object(&j);
		put_members(&j, s);
		for (int i = 0; i < sqlite3_column_count(s); i++) {
			if (strcmp(sqlite3_column_name(s, i), "pid") == 0)
				at->pid = sql_i64(s, i);
			if (strcmp(sqlite3_column_name(s, i), "start_ns") == 0)
				at->start_ns = sql_i64(s, i);
		}
		put_time(&j, "time", source_wall_ns(source, at->start_ns));
		jsonw_end_object(&j);
		at->is_more = ++n == PROCESSES_AT_A_TIME;
	}
	jsonw_end_array(&j);
	jsonw_end_object(&j);
	sqlite3_finalize(s);
	if (out->failed != 0)
		return SQLITE_NOMEM;
	return r == SQLITE_DONE ? SQLITE_OK : r;
}
