/* Spans that are open now, read from a run file while it grows: ends in rows and in the spool, further segments,
 * long names. */
#include "fixture.h"

#include "store/follow.h"

static char long_name[20001];
static const char *const names[] = {"train", "step", "inner", long_name};
enum { TRAIN, STEP, INNER, LONG, NAMES };

static struct span_row span_of(int64_t id, int64_t parent, uint32_t name, int64_t end)
{
	return (struct span_row){
		.id = id,
		.parent = parent,
		.begin_ns = fixture_mono_ns + id,
		.end_ns = value_ok(end) ? fixture_mono_ns + end : VALUE_MISSING,
		.cpu_ns = VALUE_MISSING,
		.pid = 10,
		.tid = 11,
		.name = name,
		.category = SPAN_NO_NAME,
		.close = value_ok(end) ? SPAN_ENDED : SPAN_OPEN,
	};
}

static void *open_store(struct fixture *f, bool append)
{
	return fixture_open(&store_run_file, &(struct store_open_options){.path = f->path, .append = append},
		&f->header);
}

static void finish(void *store)
{
	struct store_footer footer = fixture_footer(3);
	assert_int_equal(store_run_file.finish(store, &footer, NULL), 0);
	fixture_close(&store_run_file, store, false);
}

static void write_spans(void *store, struct store_spans spans)
{
	spans.names = names;
	spans.n_names = NAMES;
	assert_int_equal(store_run_file.write(store, &(struct store_delivery){.spans = spans}, NULL), 0);
}

static void begin_span(void *store, int64_t id, int64_t parent, uint32_t name)
{
	struct span_row row = span_of(id, parent, name, VALUE_MISSING);
	write_spans(store, (struct store_spans){.open = &row, .n_open = 1});
}

static void end_span(void *store, int64_t id, int64_t parent, uint32_t name)
{
	struct span_row row = span_of(id, parent, name, 1000);
	write_spans(store, (struct store_spans){.ended = &row, .n_ended = 1});
}

static void spill_end(void *store, int64_t id, int64_t parent, uint32_t name)
{
	struct span_row row = span_of(id, parent, name, 1000);
	const struct store_spans spans = {.names = names, .n_names = NAMES, .ended = &row, .n_ended = 1};
	assert_int_equal(store_run_file.spill(store, &spans, NULL), 0);
}

// Names of the open spans, in order of their begins.
static void runs_now(struct watch *watch, const char *expected)
{
	struct wattle_error error = {0};
	char text[256] = "";
	if (watch_look(watch, &error) < 0)
		fail_msg("%s", error.text);
	for (size_t i = 0; i < watch->n_spans; i++) {
		if (i > 0)
			strcat(text, " ");
		strcat(text, watch->spans[i].name);
	}
	assert_string_equal(text, expected);
}

static void spans_begin_and_end(void **state)
{
	struct fixture *f = *state;
	struct watch watch;
	f->header.pid = 4711;
	void *store = open_store(f, false);
	watch_init(&watch, f->path);
	runs_now(&watch, "");
	assert_int_equal(watch.segment.pid, 4711); // from the start, for readers that follow its processes
	assert_false(watch.segment.is_over);
	begin_span(store, 1, VALUE_MISSING, TRAIN);
	begin_span(store, 2, 1, STEP);
	runs_now(&watch, "train step");
	assert_int_equal(watch.spans[1].parent, 1);
	assert_int_equal(watch.spans[1].begin_ns, fixture_mono_ns + 2);
	end_span(store, 2, 1, STEP);
	begin_span(store, 3, 1, STEP);
	begin_span(store, 4, 3, INNER);
	runs_now(&watch, "train step inner");
	end_span(store, 1, VALUE_MISSING, TRAIN); // the outermost, whose row is far behind the others
	runs_now(&watch, "step inner");
	finish(store);
	runs_now(&watch, "step inner"); // their ends were never reported
	assert_true(watch.segment.is_over);
	watch_finish(&watch);
}

static void ends_in_the_spool(void **state)
{
	struct fixture *f = *state;
	struct watch early, late;
	void *store = open_store(f, false);
	watch_init(&early, f->path);
	watch_init(&late, f->path);
	begin_span(store, 1, VALUE_MISSING, TRAIN);
	begin_span(store, 2, 1, STEP);
	runs_now(&early, "train step");
	spill_end(store, 2, 1, STEP);
	runs_now(&early, "train"); // its row still has no end
	runs_now(&late, "train");
	begin_span(store, 3, 1, INNER);
	spill_end(store, 3, 1, INNER);
	runs_now(&early, "train");
	runs_now(&late, "train");
	watch_finish(&early);
	watch_finish(&late);
	finish(store);
}

static void a_further_segment(void **state)
{
	struct fixture *f = *state;
	struct watch watch;
	void *store = open_store(f, false);
	watch_init(&watch, f->path);
	begin_span(store, 1, VALUE_MISSING, TRAIN);
	runs_now(&watch, "train");
	finish(store);
	f->header.anchor_mono_ns += 60 * NS_PER_S;
	store = open_store(f, true);
	runs_now(&watch, ""); // spans left open by the first recording never end
	assert_false(watch.segment.is_over);
	struct span_row row = span_of(1, VALUE_MISSING, STEP, VALUE_MISSING);
	row.begin_ns += 61 * NS_PER_S;
	write_spans(store, (struct store_spans){.open = &row, .n_open = 1});
	runs_now(&watch, "step");
	finish(store);
	watch_finish(&watch);
}

static void long_names_are_cut(void **state)
{
	struct fixture *f = *state;
	struct watch watch;
	memset(long_name, 0, sizeof(long_name));
	for (size_t i = 0; i + 3 < sizeof(long_name); i += 3)
		memcpy(long_name + i, "\xe7\x81\xab", 3);
	void *store = open_store(f, false);
	watch_init(&watch, f->path);
	begin_span(store, 1, VALUE_MISSING, LONG);
	assert_int_equal(watch_look(&watch, NULL), 0);
	assert_int_equal(watch.n_spans, 1);
	assert_int_equal(strlen(watch.spans[0].name), 255); // each character takes three bytes
	finish(store);
	watch_finish(&watch);
}

static void more_than_are_kept(void **state)
{
	enum { N = WATCH_SPANS_MOST + 100 };
	struct fixture *f = *state;
	struct watch watch;
	struct span_row *rows = calloc(N, sizeof(*rows));
	assert_non_null(rows);
	for (int64_t i = 0; i < N; i++)
		rows[i] = span_of(i + 1, VALUE_MISSING, STEP, VALUE_MISSING);
	void *store = open_store(f, false);
	watch_init(&watch, f->path);
	write_spans(store, (struct store_spans){.open = rows, .n_open = N});
	assert_int_equal(watch_look(&watch, NULL), 0);
	assert_int_equal(watch.n_spans, WATCH_SPANS_MOST);
	assert_int_equal(watch.more, 100);

	for (int64_t i = 0; i < 30; i++)
		rows[i] = span_of(i + 1, VALUE_MISSING, STEP, 1000);
	write_spans(store, (struct store_spans){.ended = rows, .n_ended = 30});
	assert_int_equal(watch_look(&watch, NULL), 0);
	assert_int_equal(watch.n_spans, WATCH_SPANS_MOST); // their slots are used by others
	assert_int_equal(watch.spans[0].id, 31);
	assert_int_equal(watch.more, 70);

	spill_end(store, N, VALUE_MISSING, STEP); // of one that is not kept yet
	assert_int_equal(watch_look(&watch, NULL), 0);
	for (int64_t i = 30; i < 130; i++)
		rows[i] = span_of(i + 1, VALUE_MISSING, STEP, 1000);
	write_spans(store, (struct store_spans){.ended = rows + 30, .n_ended = 100});
	assert_int_equal(watch_look(&watch, NULL), 0);
	assert_int_equal(watch.n_spans, N - 130 - 1);
	assert_int_equal(watch.spans[watch.n_spans - 1].id, N - 1);
	assert_int_equal(watch.more, 0);
	finish(store);
	watch_finish(&watch);
	free(rows);
}

static void samples_are_counted(void **state)
{
	struct fixture *f = *state;
	struct watch watch;
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, 10);
	watch_init(&watch, f->path);
	assert_int_equal(watch_look(&watch, NULL), 0);
	assert_int_equal(watch_nth_sample(&watch, watch.stored_ns, 5), watch.stored_ns); // none follows
	assert_int_equal(watch_nth_sample(&watch, INT64_MIN, 1000), watch.stored_ns);
	int64_t first_ns = watch_nth_sample(&watch, INT64_MIN, 1), third_ns = watch_nth_sample(&watch, first_ns, 2);
	assert_true(first_ns < third_ns && third_ns < watch.stored_ns);
	watch_finish(&watch);
}

static void what_is_no_run_file(void **state)
{
	struct fixture *f = *state;
	struct wattle_error error = {0};
	struct watch watch;
	watch_init(&watch, f->path);
	assert_int_equal(watch_look(&watch, &error), -ENOENT);
	assert_non_null(strstr(error.text, f->path));
	watch_finish(&watch);
}

#define ROW(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(spans_begin_and_end),
		ROW(ends_in_the_spool),
		ROW(a_further_segment),
		ROW(long_names_are_cut),
		ROW(more_than_are_kept),
		ROW(samples_are_counted),
		ROW(what_is_no_run_file),
	};
	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
