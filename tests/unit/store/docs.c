/* Each SQL example of docs/run-file.md works on a real run file. */
#include "fixture.h"

#include <sqlite3.h>

static char *read_docs(void)
{
	char path[4096];
	const char *tests = getenv("WATTLE_TESTS");
	assert_non_null(tests);
	snprintf(path, sizeof(path), "%s/../docs/run-file.md", tests);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	char *text = calloc(1, 1 << 16);
	assert_true(fread(text, 1, (1 << 16) - 1, file) < (1 << 16) - 1);
	fclose(file);
	return text;
}

// Runs one statement; returns the number of rows and whether its last column is ever not NULL.
static int run_query(sqlite3 *db, const char *sql, int length)
{
	sqlite3_stmt *s;
	if (sqlite3_prepare_v2(db, sql, length, &s, NULL) != SQLITE_OK)
		fail_msg("%s: %.*s", sqlite3_errmsg(db), length, sql);
	int rows = 0;
	bool known = false;
	while (sqlite3_step(s) == SQLITE_ROW) {
		rows++;
		known |= sqlite3_column_type(s, sqlite3_column_count(s) - 1) != SQLITE_NULL;
	}
	assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
	assert_true(known);
	return rows;
}

static void examples_work(void **state)
{
	struct fixture *f = *state;
	const struct store_process process = {.pid = 1, .command = "python3", .cpu_ns = 5, .end_ns = VALUE_MISSING};
	const struct store_event event = {event_make(EVENT_GAP, 5), "package-0", ""};
	void *store = fixture_open(&store_run_file, &(struct store_open_options){.path = f->path}, &f->header);
	assert_int_equal(fixture_write(f, &store_run_file, store, 0, 5, 0), 0);
	static const char *const names[] = {"forward", "tokens"};
	const struct span_row span = {.id = 1,
		.parent = VALUE_MISSING,
		.begin_ns = 5,
		.end_ns = 9,
		.cpu_ns = VALUE_MISSING,
		.category = SPAN_NO_NAME};
	const struct span_metric_row metric = {.t_ns = 7, .span = 1, .value = 128, .name = 1};
	const struct store_delivery delivery = {
		.processes = &process,
		.n_processes = 1,
		.events = &event,
		.n_events = 1,
		.spans = {.names = names,
			.n_names = 2,
			.ended = &span,
			.n_ended = 1,
			.metrics = &metric,
			.n_metrics = 1},
	};
	assert_int_equal(store_run_file.write(store, &delivery, NULL), 0);
	sqlite3 *db; // during the run
	assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	char *docs = read_docs();
	int examples = 0;
	static const char open[] = "```sql\n";
	for (char *at = docs; (at = strstr(at, open)) != NULL; examples++) {
		at += strlen(open);
		const char *end = strstr(at, "```");
		assert_non_null(end);
		assert_true(run_query(db, at, (int)(end - at)) > 0);
	}
	assert_true(examples >= 7);
	free(docs);
	sqlite3_close(db);
	fixture_close(&store_run_file, store, false);
}

int main(void)
{
	struct rows rows = {0};
	fixture_add(&rows, "every SQL example of docs/run-file.md gives an answer", examples_work);
	return rows_run(&rows, "documentation of the run file");
}
