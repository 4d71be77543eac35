#include "store/sub_tracking.h"

#include "fixture.h"

#include <sqlite3.h>

/* Files as text, and the resulting calls: "pid name begin end", "-" for never stopped. */
#define COLUMNS "process_id,code_block_name,position,timestamp\n"
static const struct row {
	const char *teaches, *text, *calls;
	size_t strays;
} table[] = {
	{"start and stop: one call", COLUMNS "7,load,0,10.5\n7,load,1,11.25\n", "7 load 10.5 11.25\n", 0},
	{"file as written by Python's csv module",
		"process_id,code_block_name,position,timestamp\r\n7,load,0,10.5\r\n7,load,1,11\r\n", "7 load 10.5 11\n",
		0},
	{"calls of one name nest: last in, first out", COLUMNS "7,f,0,1\n7,f,0,2\n7,f,1,3\n7,f,1,4\n",
		"7 f 1 4\n7 f 2 3\n", 0},
	{"calls of different names are independent", COLUMNS "7,a,0,1\n7,b,0,2\n7,a,1,3\n7,b,1,4\n",
		"7 a 1 3\n7 b 2 4\n", 0},
	{"calls of different processes are independent", COLUMNS "8,a,0,1\n7,a,0,2\n8,a,1,3\n7,a,1,4\n",
		"7 a 2 4\n8 a 1 3\n", 0},
	{"rows in any order", COLUMNS "7,a,1,3\n7,a,0,1\n", "7 a 1 3\n", 0},
	{"called again at the same time", COLUMNS "7,a,0,1\n7,a,1,2\n7,a,0,2\n7,a,1,3\n", "7 a 1 2\n7 a 2 3\n", 0},
	{"zero duration", COLUMNS "7,a,0,1\n7,a,1,1\n", "7 a 1 1\n", 0},
	{"zero duration, rows in any order", COLUMNS "7,a,1,1\n7,a,0,1\n", "7 a 1 1\n", 0},
	{"additional columns: ignored", "timestamp,more,process_id,position,code_block_name\n1,x,7,0,a\n2,y,7,1,a\n",
		"7 a 1 2\n", 0},
	{"block that was never stopped", COLUMNS "7,a,0,1\n7,b,0,2\n7,b,1,3\n", "7 a 1 -\n7 b 2 3\n", 0},
	{"stop without a start: counted as stray", COLUMNS "7,a,1,1\n7,a,0,2\n7,a,1,3\n", "7 a 2 3\n", 1},
	{"names with any characters", COLUMNS "7,\"a, \"\"b\"\"\nc\",0,1\n7,\"a, \"\"b\"\"\nc\",1,2\n",
		"7 a, \"b\"\nc 1 2\n", 0},
	{"no rows: no calls", COLUMNS, "", 0},
};

static const struct bad {
	const char *teaches, *text, *says;
} bads[] = {
	{"empty file: refused", "", "line 1: the columns of a sub-tracking file are"},
	{"other columns", "a,b,c,d\n1,2,3,4\n", "line 1: the columns of a sub-tracking file are"},
	{"too few fields: refused", COLUMNS "7,a,0,1\n7,a,1\n", "line 3: 3 fields instead of 4"},
	{"too many fields: refused", COLUMNS "7,a,0,1,9\n", "line 2: more than 4 fields"},
	{"invalid process id: refused", COLUMNS "seven,a,0,1\n", "line 2: process_id 'seven' is not a number"},
	{"invalid position: refused", COLUMNS "7,a,2,1\n", "line 2: position '2' is neither 0 (start) nor 1 (stop)"},
	{"invalid time: refused", COLUMNS "7,a,0,noon\n", "line 2: timestamp 'noon' is not a number"},
	{"infinite time: refused", COLUMNS "7,a,0,nan\n", "line 2: timestamp 'nan' is not a number"},
	{"open quote: refused", COLUMNS "7,\"a,0,1\n7,a,1,2\n", "line 2: a quote is opened and never closed"},
};

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void check(void **state)
{
	const struct row *row = *state;
	void *fixture = NULL;
	assert_int_equal(fixture_setup(&fixture), 0);
	struct fixture *f = fixture;
	char path[160], seen[1024] = "";
	snprintf(path, sizeof(path), "%s/sub.csv", f->folder);
	write_text(path, row->text);
	struct arena *arena = arena_new();
	struct sub_tracking_call *calls;
	size_t n, strays;
	assert_int_equal(sub_tracking_read(path, arena, &calls, &n, &strays, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		size_t at = strlen(seen);
		snprintf(seen + at, sizeof(seen) - at, "%d %s %g %g\n", (int)calls[i].pid, calls[i].name,
			calls[i].begin_s, calls[i].end_s);
		char *unknown = strstr(seen + at, " nan\n");
		if (unknown == NULL)
			unknown = strstr(seen + at, " -nan\n");
		if (unknown != NULL)
			strcpy(unknown, " -\n");
	}
	assert_string_equal(seen, row->calls);
	assert_int_equal(strays, row->strays);
	arena_free(arena);
	fixture_teardown(&fixture);
}

static void check_bad(void **state)
{
	const struct bad *row = *state;
	void *fixture = NULL;
	assert_int_equal(fixture_setup(&fixture), 0);
	struct fixture *f = fixture;
	char path[160];
	snprintf(path, sizeof(path), "%s/sub.csv", f->folder);
	write_text(path, row->text);
	struct arena *arena = arena_new();
	struct sub_tracking_call *calls;
	size_t n, strays;
	struct wattle_error error = {0};
	assert_int_equal(sub_tracking_read(path, arena, &calls, &n, &strays, &error), -EINVAL);
	assert_non_null(strstr(error.text, path));
	assert_non_null(strstr(error.text, row->says));
	arena_free(arena);
	fixture_teardown(&fixture);
}

static void execute(const char *path, const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void from_sqlite(void **state)
{
	struct fixture *f = *state;
	char path[160];
	snprintf(path, sizeof(path), "%s/sub.sqlite", f->folder);
	execute(path,
		"CREATE TABLE data (process_id INTEGER, code_block_name VARCHAR, position INTEGER, timestamp FLOAT); "
		"INSERT INTO data VALUES (7, 'it''s', 0, 1.5), (7, 'it''s', 1, 2.5)");
	struct arena *arena = arena_new();
	struct sub_tracking_call *calls;
	size_t n, strays;
	assert_int_equal(sub_tracking_read(path, arena, &calls, &n, &strays, NULL), 0);
	assert_int_equal(n, 1);
	assert_string_equal(calls[0].name, "it's");
	assert_true(calls[0].end_s == 2.5);
	struct wattle_error error = {0};
	execute(path, "INSERT INTO data VALUES (7, 'x', 5, 1.5)");
	assert_int_equal(sub_tracking_read(path, arena, &calls, &n, &strays, &error), -EINVAL);
	assert_non_null(strstr(error.text, "row 3 of table data"));
	execute(path, "DROP TABLE data");
	assert_int_equal(sub_tracking_read(path, arena, &calls, &n, &strays, &error), -EINVAL);
	assert_non_null(strstr(error.text, "no such table: data"));
	assert_int_equal(sub_tracking_read("sub.txt", arena, &calls, &n, &strays, &error), -EINVAL);
	assert_int_equal(sub_tracking_read("/nowhere/sub.csv", arena, &calls, &n, &strays, &error), -ENOENT);
	arena_free(arena);
}

// As gpu_tracker's analyzer, which refuses these as well: times and processes of the apparent pair.
static const struct stray_row {
	const char *teaches, *text, *says;
} strays[] = {
	{"stop before its start: refused", COLUMNS "7,a,1,9.25\n7,a,0,10.5\n", "pair (9.25, 10.5) of process ID 7"},
	{"stop and the start of another process: refused",
		COLUMNS "7,a,0,1\n7,a,1,2\n7,a,1,13.5\n8,a,0,3.25\n8,a,1,4\n",
		"pair (13.5, 3.25) with differing process IDs: 7 and 8"},
	{"stop without a following row: refused", COLUMNS "7,a,1,2\n8,b,0,3\n",
		"'a' is stopped at 2 in process 7 without a start"},
};

static void check_stray(void **state)
{
	const struct stray_row *row = *state;
	void *fixture = NULL;
	assert_int_equal(fixture_setup(&fixture), 0);
	char path[160];
	snprintf(path, sizeof(path), "%s/sub.csv", ((struct fixture *)fixture)->folder);
	write_text(path, row->text);
	struct arena *arena = arena_new();
	struct sub_tracking_call *calls;
	size_t n;
	struct wattle_error error = {0};
	assert_int_equal(sub_tracking_read(path, arena, &calls, &n, NULL, &error), -EINVAL);
	assert_non_null(strstr(error.text, row->says));
	arena_free(arena);
	fixture_teardown(&fixture);
}

static void into_a_run(void **state)
{
	struct fixture *f = *state;
	char path[160];
	snprintf(path, sizeof(path), "%s/sub.csv", f->folder);
	// The run lasts from 1700000000 (plus a nanosecond) to half a second later.
	write_text(path,
		COLUMNS "7,before,0,1699999999.5\n7,before,1,1700000000.1\n7,in,0,1700000000.125\n"
			"7,in,1,1700000000.25\n7,open,0,1700000000.25\n7,after,0,1700000000.75\n"
			"7,stopped never,0,1700000000.375\n7,stopped never,1,1e300\n");
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, 5);
	size_t n = 99;
	struct wattle_error error = {0};
	if (sub_tracking_import(f->path, path, &n, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(n, 3);
	assert_int_equal(sub_tracking_import(f->path, path, &n, NULL), 0);
	assert_int_equal(n, 0); // once is enough
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n_spans, 3);
	assert_string_equal(run.spans[0].name, "in");
	assert_int_equal(run.spans[0].pid, 7);
	assert_int_equal(run.spans[0].begin_ns, fixture_mono_ns + 125 * NS_PER_MS);
	assert_int_equal(run.spans[0].end_ns, fixture_mono_ns + 250 * NS_PER_MS);
	assert_string_equal(run.spans[1].name, "open");
	assert_int_equal(run.spans[1].end_ns, VALUE_MISSING);
	assert_string_equal(run.spans[2].name, "stopped never"); // at an impossible time
	assert_int_equal(run.spans[2].end_ns, VALUE_MISSING);
	run_finish(&run);
	assert_int_equal(sub_tracking_import(path, path, &n, NULL), -EINVAL); // not a run file
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	ROWS_ADD(&rows, bads, check_bad);
	ROWS_ADD(&rows, strays, check_stray);
	fixture_add(&rows, "SQLite files, good and bad", from_sqlite);
	fixture_add(&rows, "into a run: its own clock, only what lies in it, only once", into_a_run);
	return rows_run(&rows, "sub-tracking files");
}
