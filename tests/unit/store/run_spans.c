/* Spans in the run file: written directly into the tables and through the spool, and read back from both. */
#include "fixture.h"

#include "store/run_write.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

static const char *const names[] = {"outer", "inner", "tokens", "here", "io"};
enum { OUTER, INNER, TOKENS, HERE, IO, NAMES };

static struct span_row span_of(int64_t id, int64_t parent, uint32_t name, int64_t begin, int64_t end)
{
	return (struct span_row){.id = id,
		.parent = parent,
		.begin_ns = fixture_mono_ns + begin,
		.end_ns = value_ok(end) ? fixture_mono_ns + end : VALUE_MISSING,
		.cpu_ns = VALUE_MISSING,
		.pid = 10,
		.tid = 11,
		.name = name,
		.category = SPAN_NO_NAME,
		.close = value_ok(end) ? SPAN_ENDED : SPAN_OPEN};
}

static struct store_spans rows_of(const struct span_row *ended, size_t n)
{
	return (struct store_spans){.names = names, .n_names = NAMES, .ended = ended, .n_ended = n};
}

static void write_spans(void *store, struct store_spans spans)
{
	struct wattle_error error = {0};
	if (store_run_file.write(store, &(struct store_delivery){.spans = spans}, &error) < 0)
		fail_msg("%s", error.text);
}

static void spill_spans(void *store, struct store_spans spans)
{
	struct wattle_error error = {0};
	if (store_run_file.spill(store, &spans, &error) < 0)
		fail_msg("%s", error.text);
}

static void *open_store(struct fixture *f, bool append)
{
	return fixture_open(&store_run_file, &(struct store_open_options){.path = f->path, .append = append},
		&f->header);
}

static void finish(void *store)
{
	struct store_footer footer = fixture_footer(3);
	struct wattle_error error = {0};
	if (store_run_file.finish(store, &footer, &error) < 0)
		fail_msg("%s", error.text);
	fixture_close(&store_run_file, store, false);
}

static struct run load(const struct fixture *f)
{
	struct run run;
	struct wattle_error error = {0};
	if (run_load(f->path, &run, &error) < 0)
		fail_msg("%s", error.text);
	return run;
}

static bool has_spool(const struct fixture *f)
{
	char path[200];
	spool_path(f->path, path, sizeof(path));
	return fixture_exists(path);
}

/* ---- the tables ---- */

static void every_column_comes_back(void **state)
{
	struct fixture *f = *state;
	void *store = open_store(f, false);
	struct span_row rows[] = {span_of(1, VALUE_MISSING, OUTER, 5, 50), span_of(2, 1, INNER, 7, 30)};
	rows[1].cpu_ns = 12;
	rows[1].category = IO;
	rows[1].kind = SPAN_RANGE;
	rows[1].close = SPAN_AT_DEATH;
	const struct span_metric_row metric =
		{.t_ns = fixture_mono_ns + 8, .span = 2, .value = 2.5, .pid = 10, .tid = 11, .name = TOKENS};
	const struct span_mark_row mark = {.t_ns = fixture_mono_ns + 9, .name = HERE, .category = SPAN_NO_NAME};
	struct store_spans spans = rows_of(rows, 2);
	spans.metrics = &metric;
	spans.marks = &mark;
	spans.n_metrics = spans.n_marks = 1;
	write_spans(store, spans);
	finish(store);
	struct run run = load(f);
	assert_int_equal(run.n_spans, 2);
	const struct run_span *inner = &run.spans[1];
	assert_string_equal(inner->name, "inner");
	assert_string_equal(inner->category, "io");
	assert_null(run.spans[0].category);
	assert_int_equal(inner->parent, 1);
	assert_int_equal(inner->begin_ns, fixture_mono_ns + 7);
	assert_int_equal(inner->end_ns, fixture_mono_ns + 30);
	assert_int_equal(inner->cpu_ns, 12);
	assert_false(value_ok(run.spans[0].cpu_ns));
	assert_int_equal(inner->pid, 10);
	assert_int_equal(inner->tid, 11);
	assert_int_equal(inner->kind, SPAN_RANGE);
	assert_int_equal(inner->close, SPAN_AT_DEATH);
	assert_int_equal(run.n_user_metrics, 1);
	assert_int_equal(run.user_metrics[0].span, 2);
	assert_float_equal(run.user_metrics[0].value, 2.5, 0);
	assert_int_equal(run.n_events, 1);
	assert_string_equal(run.events[0].kind_name, "mark");
	assert_string_equal(run.events[0].text, "here");
	run_finish(&run);
}

/* Names of equal size and last letter, names that go on after a NUL, and kinds that follow one another. */
static void names_and_kinds_of_many_rows(void **state)
{
	struct fixture *f = *state;
	finish(open_store(f, false));
	static const struct {
		const char *sql, *name;
		enum span_kind kind;
	} rows[] = {
		{"'load', 'nested'", "load", SPAN_NESTED},
		{"'read', 'range'", "read", SPAN_RANGE},
		{"'load', 'range'", "load", SPAN_RANGE},
		{"CAST(x'6c6f0064' AS TEXT), 'nested'", "lo", SPAN_NESTED},
		{"'lo', NULL", "lo", SPAN_NESTED},
		{"'load', 'range'", "load", SPAN_RANGE},
		{"'', 'ranges of a later wattle'", "", SPAN_NESTED},
		{"CAST(x'6c6f0078' AS TEXT), 'range'", "lo", SPAN_RANGE},
		{"'lo', 'nested'", "lo", SPAN_NESTED},
	};
	sqlite3 *db;
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char sql[200];
		snprintf(sql, sizeof(sql), "INSERT INTO span (id, begin_ns, end_ns, close, name, kind) VALUES (%zu, %zu, 99, "
			"'ended', %s)", i + 1, i + 1, rows[i].sql);
		assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	}
	sqlite3_close(db);
	struct run run = load(f);
	assert_int_equal(run.n_spans, ARRAY_SIZE(rows));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_string_equal(run.spans[i].name, rows[i].name);
		assert_int_equal(run.spans[i].kind, rows[i].kind);
		assert_int_equal(run.spans[i].close, SPAN_ENDED);
	}
	run_finish(&run);
}

static void an_open_span_is_replaced_when_it_ends(void **state)
{
	struct fixture *f = *state;
	void *store = open_store(f, false);
	const struct span_row open = span_of(1, VALUE_MISSING, OUTER, 5, VALUE_MISSING);
	struct store_spans spans = rows_of(NULL, 0);
	spans.open = &open;
	spans.n_open = 1;
	write_spans(store, spans);
	struct run run = load(f);
	assert_int_equal(run.spans[0].close, SPAN_OPEN);
	assert_false(value_ok(run.spans[0].end_ns));
	run_finish(&run);
	const struct span_row ended = span_of(1, VALUE_MISSING, OUTER, 5, 50);
	write_spans(store, rows_of(&ended, 1));
	finish(store);
	run = load(f);
	assert_int_equal(run.n_spans, 1);
	assert_int_equal(run.spans[0].close, SPAN_ENDED);
	run_finish(&run);
}

static void ids_of_an_appended_segment_go_on(void **state)
{
	struct fixture *f = *state;
	const struct span_row rows[] = {span_of(1, VALUE_MISSING, OUTER, 5, 50), span_of(2, 1, INNER, 7, 30)};
	void *store = open_store(f, false);
	write_spans(store, rows_of(rows, 2));
	finish(store);
	store = open_store(f, true);
	write_spans(store, rows_of(rows, 1));
	spill_spans(store, rows_of(rows + 1, 1)); // its parent is in the table
	finish(store);
	struct run run = load(f);
	assert_int_equal(run.n_spans, 4);
	assert_int_equal(run.spans[3].id, 4);
	assert_int_equal(run.spans[3].parent, 3);
	assert_true(run.spans[2].begin_ns > run.spans[1].begin_ns);
	run_finish(&run);
}

static void a_file_of_the_first_issue_is_read_and_continued(void **state)
{
	struct fixture *f = *state;
	const struct span_row row = span_of(1, VALUE_MISSING, OUTER, 5, 50);
	void *store = open_store(f, false);
	write_spans(store, rows_of(&row, 1));
	finish(store);
	sqlite3 *db;
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			"ALTER TABLE span DROP COLUMN cpu_ns; ALTER TABLE span DROP COLUMN category;"
			"ALTER TABLE span DROP COLUMN kind; ALTER TABLE span DROP COLUMN close;"
			"ALTER TABLE user_metric DROP COLUMN span; ALTER TABLE user_metric DROP COLUMN pid;"
			"ALTER TABLE user_metric DROP COLUMN tid; ALTER TABLE segment DROP COLUMN lost_spans;"
			"ALTER TABLE segment DROP COLUMN unwound_spans; ALTER TABLE segment DROP COLUMN spool_bytes",
			NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	struct run run = load(f);
	assert_int_equal(run.n_spans, 1);
	assert_int_equal(run.spans[0].close, SPAN_ENDED);
	assert_false(value_ok(run.segments[0].lost_spans));
	run_finish(&run);
	store = open_store(f, true);
	write_spans(store, rows_of(&row, 1));
	finish(store);
	run = load(f);
	assert_int_equal(run.n_spans, 2);
	assert_int_equal(run.segments[1].lost_spans, 0);
	run_finish(&run);
}

static void rows_are_in_order_of_time(void **state)
{
	struct fixture *f = *state;
	struct span_row rows[200];
	for (int i = 0; i < 200; i++) // two threads, one read after the other
		rows[i] = span_of(i + 1, VALUE_MISSING, i % 3 == 0 ? OUTER : INNER, i < 100 ? 2 * i : 2 * (i - 100) + 1,
			1000);
	void *store = open_store(f, false);
	write_spans(store, rows_of(rows, 200));
	finish(store);
	struct run run = load(f);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(run.spans[i].begin_ns, fixture_mono_ns + i);
		assert_int_equal(run.spans[i].id, i % 2 == 0 ? i / 2 + 1 : 101 + i / 2);
		assert_string_equal(run.spans[i].name, (run.spans[i].id - 1) % 3 == 0 ? "outer" : "inner");
	}
	run_finish(&run);
}

/* ---- the spool ---- */

static struct store_spans many(struct span_row *rows, size_t n, int64_t first_id)
{
	for (size_t i = 0; i < n; i++)
		rows[i] = span_of(first_id + (int64_t)i, VALUE_MISSING, i % 2 == 0 ? OUTER : INNER,
			first_id + (int64_t)i, first_id + (int64_t)i + 5);
	return rows_of(rows, n);
}

static void check_many(const struct run *run, size_t n)
{
	assert_int_equal(run->n_spans, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(run->spans[i].id, i + 1);
		assert_int_equal(run->spans[i].end_ns - run->spans[i].begin_ns, 5);
	}
}

enum { MANY = 10000 };
static struct span_row many_rows[MANY];

static void the_spool_becomes_rows_at_the_end(void **state)
{
	struct fixture *f = *state;
	void *store = open_store(f, false);
	for (int64_t i = 0; i < 3; i++)
		spill_spans(store, many(many_rows, MANY, i * MANY + 1));
	assert_true(has_spool(f));
	struct run run = load(f); // during the run
	check_many(&run, 3 * MANY);
	run_finish(&run);
	finish(store);
	assert_false(has_spool(f));
	run = load(f);
	check_many(&run, 3 * MANY);
	run_finish(&run);
	fixture_assert_only(f, "run.sqlite");
}

static void metrics_and_marks_take_the_same_way(void **state)
{
	struct fixture *f = *state;
	void *store = open_store(f, false);
	const struct span_metric_row metric =
		{.t_ns = fixture_mono_ns + 8, .span = VALUE_MISSING, .value = 3, .pid = 10, .tid = 11, .name = TOKENS};
	const struct span_mark_row mark = {.t_ns = fixture_mono_ns + 9, .name = HERE, .category = SPAN_NO_NAME};
	const struct store_spans spans =
		{.names = names, .n_names = NAMES, .metrics = &metric, .n_metrics = 1, .marks = &mark, .n_marks = 1};
	spill_spans(store, spans);
	for (int pass = 0; pass < 2; pass++) {
		struct run run = load(f);
		assert_int_equal(run.n_user_metrics, 1);
		assert_string_equal(run.user_metrics[0].name, "tokens");
		assert_int_equal(run.n_events, 1);
		assert_string_equal(run.events[0].text, "here");
		run_finish(&run);
		if (pass == 0)
			finish(store);
	}
}

static void a_span_that_was_open_ends_in_the_spool(void **state)
{
	struct fixture *f = *state;
	void *store = open_store(f, false);
	const struct span_row open = span_of(1, VALUE_MISSING, OUTER, 5, VALUE_MISSING);
	struct store_spans spans = rows_of(NULL, 0);
	spans.open = &open;
	spans.n_open = 1;
	write_spans(store, spans);
	const struct span_row ended[] = {span_of(2, 1, INNER, 5, 6), span_of(1, VALUE_MISSING, OUTER, 5, 50)};
	spill_spans(store, rows_of(ended, 2));
	for (int pass = 0; pass < 2; pass++) {
		struct run run = load(f);
		assert_int_equal(run.n_spans, 2);
		assert_int_equal(run.spans[0].close, SPAN_ENDED);
		assert_int_equal(run.spans[0].end_ns, fixture_mono_ns + 50);
		run_finish(&run);
		if (pass == 0)
			finish(store);
	}
}

// The recorder dies: its store is closed without an end.
static void kill_store(void *store)
{
	store_run_file.close(store, false);
	free(store);
}

static void a_dead_recorders_spool_is_taken_in_by_the_next(void **state)
{
	struct fixture *f = *state;
	void *store = open_store(f, false);
	spill_spans(store, many(many_rows, MANY, 1));
	kill_store(store);
	assert_true(has_spool(f));
	struct run run = load(f);
	check_many(&run, MANY);
	run_finish(&run);
	store = open_store(f, true);
	assert_false(has_spool(f));
	const struct span_row row = span_of(1, VALUE_MISSING, OUTER, 5, 50);
	write_spans(store, rows_of(&row, 1));
	finish(store);
	run = load(f);
	assert_int_equal(run.n_spans, MANY + 1);
	int64_t last_id = 0;
	for (size_t i = 0; i < run.n_spans; i++)
		last_id = run.spans[i].id > last_id ? run.spans[i].id : last_id;
	assert_int_equal(last_id, MANY + 1);
	run_finish(&run);
}

static const struct tear {
	const char *teaches;
	int64_t cut;    // bytes off the end
	int64_t noise;  // garbage bytes at the end
	bool all_there; // complete before
} tears[] = {
	{"chunk without its end: not read", 100, 0, false},
	{"chunk without its begin: not read", 60000, 0, false},
	{"data after the last complete chunk: not read", 0, 5000, true},
	{"a few bytes after the last complete chunk: not read", 0, 3, true},
};

static void check_tear(void **state)
{
	const struct tear *tear = *state;
	void *fixture = NULL;
	fixture_setup(&fixture);
	struct fixture *f = fixture;
	void *store = open_store(f, false);
	spill_spans(store, many(many_rows, 1000, 1));
	spill_spans(store, many(many_rows, 1000, 1001));
	kill_store(store);
	char path[200];
	spool_path(f->path, path, sizeof(path));
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - tear->cut), 0);
	int fd = open(path, O_WRONLY | O_APPEND);
	for (int64_t i = 0; i < tear->noise; i++)
		assert_int_equal(write(fd, "\x57", 1), 1);
	close(fd);
	for (int pass = 0; pass < 2; pass++) {
		struct run run = load(f);
		check_many(&run, tear->all_there ? 2000 : 1000);
		run_finish(&run);
		if (pass == 0)
			finish(open_store(f, true));
	}
	fixture_teardown(&fixture);
}

static void the_spool_of_another_run_is_not_read(void **state)
{
	struct fixture *f = *state;
	void *store = open_store(f, false);
	spill_spans(store, many(many_rows, 10, 1));
	kill_store(store);
	unlink(f->path);
	f->header.run_id = "0b3c9f1e-0000-4000-8000-000000000002";
	store = open_store(f, false);
	struct run run = load(f);
	assert_int_equal(run.n_spans, 0);
	run_finish(&run);
	spill_spans(store, many(many_rows, 20, 1)); // at the same path
	run = load(f);
	check_many(&run, 20);
	run_finish(&run);
	finish(store);
}

// Half of it is in the tables already, as the stored number of bytes states.
static void a_kill_while_the_spool_becomes_rows_doubles_nothing(void **state)
{
	struct fixture *f = *state;
	void *store = open_store(f, false);
	const struct span_metric_row metric = {.t_ns = fixture_mono_ns,
		.span = VALUE_MISSING,
		.value = 3,
		.name = TOKENS};
	struct store_spans spans = many(many_rows, 1000, 1);
	spans.metrics = &metric;
	spans.n_metrics = 1;
	spill_spans(store, spans);
	char path[200], copy[200], command[500];
	spool_path(f->path, path, sizeof(path));
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	spill_spans(store, many(many_rows, 1000, 1001));
	snprintf(copy, sizeof(copy), "%s/copy", f->folder);
	snprintf(command, sizeof(command), "cp '%s' '%s'", path, copy);
	assert_int_equal(system(command), 0);
	finish(store);
	assert_int_equal(rename(copy, path), 0); // as if the recorder had died before removing it
	sqlite3 *db;
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	snprintf(command, sizeof(command), "DELETE FROM span WHERE id > 1000; UPDATE segment SET spool_bytes = %lld",
		(long long)st.st_size);
	assert_int_equal(sqlite3_exec(db, command, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	for (int pass = 0; pass < 2; pass++) {
		struct run run = load(f);
		check_many(&run, 2000);
		assert_int_equal(run.n_user_metrics, 1);
		run_finish(&run);
		if (pass == 0)
			finish(open_store(f, true));
	}
	assert_false(has_spool(f));
}

static void a_full_disk_leaves_what_was_whole(void **state)
{
	struct fixture *f = *state;
	void *store = open_store(f, false);
	spill_spans(store, many(many_rows, 1000, 1));
	char path[200];
	spool_path(f->path, path, sizeof(path));
	struct stat before, after;
	assert_int_equal(stat(path, &before), 0);
	struct rlimit old, small;
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = (rlim_t)before.st_size + 100000;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	struct wattle_error error = {0};
	const struct store_spans spans = many(many_rows, MANY, 1001);
	assert_true(store_run_file.spill(store, &spans, &error) < 0);
	assert_non_null(strstr(error.text, "run.sqlite-spans: "));
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	spill_spans(store, spans);
	finish(store);
	struct run run = load(f);
	check_many(&run, 1000 + MANY);
	run_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	fixture_add(&tests, "every column comes back", every_column_comes_back);
	fixture_add(&tests, "equal names and kinds in many rows: each row has its own", names_and_kinds_of_many_rows);
	fixture_add(&tests, "an open span is replaced when it ends", an_open_span_is_replaced_when_it_ends);
	fixture_add(&tests, "ids of an appended segment go on", ids_of_an_appended_segment_go_on);
	fixture_add(&tests, "a file of the first issue is read and continued",
		a_file_of_the_first_issue_is_read_and_continued);
	fixture_add(&tests, "rows are in order of time", rows_are_in_order_of_time);
	fixture_add(&tests, "the spool is read, and becomes rows at the end", the_spool_becomes_rows_at_the_end);
	fixture_add(&tests, "metrics and marks take the same way", metrics_and_marks_take_the_same_way);
	fixture_add(&tests, "span open in the tables, ended in the spool: read as ended",
		a_span_that_was_open_ends_in_the_spool);
	fixture_add(&tests, "a dead recorder's spool is taken in by the next",
		a_dead_recorders_spool_is_taken_in_by_the_next);
	ROWS_ADD(&tests, tears, check_tear);
	fixture_add(&tests, "the spool of another run is not read", the_spool_of_another_run_is_not_read);
	fixture_add(&tests, "a kill while the spool becomes rows doubles nothing",
		a_kill_while_the_spool_becomes_rows_doubles_nothing);
	fixture_add(&tests, "a full disk leaves what was whole", a_full_disk_leaves_what_was_whole);
	return rows_run(&tests, "run_spans");
}
