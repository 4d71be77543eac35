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
static void runs_now(struct span_tail *tail, const char *expected)
{
	struct wattle_error error = {0};
	char text[256] = "";
	if (span_tail_poll(tail, &error) < 0)
		fail_msg("%s", error.text);
	for (size_t i = 0; i < tail->n_spans; i++) {
		if (i > 0)
			strcat(text, " ");
		strcat(text, tail->spans[i].name);
	}
	assert_string_equal(text, expected);
}

static void spans_begin_and_end(void **state)
{
	struct fixture *f = *state;
	struct span_tail tail;
	f->header.pid = 4711;
	void *store = open_store(f, false);
	span_tail_init(&tail, f->path);
	runs_now(&tail, "");
	assert_int_equal(tail.segment.pid, 4711); // from the start, for readers that follow its processes
	assert_false(tail.segment.is_over);
	begin_span(store, 1, VALUE_MISSING, TRAIN);
	begin_span(store, 2, 1, STEP);
	runs_now(&tail, "train step");
	assert_int_equal(tail.spans[1].parent, 1);
	assert_int_equal(tail.spans[1].begin_ns, fixture_mono_ns + 2);
	end_span(store, 2, 1, STEP);
	begin_span(store, 3, 1, STEP);
	begin_span(store, 4, 3, INNER);
	runs_now(&tail, "train step inner");
	end_span(store, 1, VALUE_MISSING, TRAIN); // the outermost, whose row is far behind the others
	runs_now(&tail, "step inner");
	finish(store);
	runs_now(&tail, "step inner"); // the ends of these spans were never reported
	assert_true(tail.segment.is_over);
	span_tail_finish(&tail);
}

static void ends_in_the_spool(void **state)
{
	struct fixture *f = *state;
	struct span_tail early, late;
	void *store = open_store(f, false);
	span_tail_init(&early, f->path);
	span_tail_init(&late, f->path);
	begin_span(store, 1, VALUE_MISSING, TRAIN);
	begin_span(store, 2, 1, STEP);
	runs_now(&early, "train step");
	spill_end(store, 2, 1, STEP);
	runs_now(&early, "train"); // the row of the span still has no end
	runs_now(&late, "train");
	begin_span(store, 3, 1, INNER);
	spill_end(store, 3, 1, INNER);
	runs_now(&early, "train");
	runs_now(&late, "train");
	span_tail_finish(&early);
	span_tail_finish(&late);
	finish(store);
}

static void a_further_segment(void **state)
{
	struct fixture *f = *state;
	struct span_tail tail;
	void *store = open_store(f, false);
	span_tail_init(&tail, f->path);
	begin_span(store, 1, VALUE_MISSING, TRAIN);
	runs_now(&tail, "train");
	finish(store);
	f->header.anchor_mono_ns += 60 * NS_PER_S;
	store = open_store(f, true);
	runs_now(&tail, ""); // spans left open by the first recording never end
	assert_false(tail.segment.is_over);
	struct span_row row = span_of(1, VALUE_MISSING, STEP, VALUE_MISSING);
	row.begin_ns += 61 * NS_PER_S;
	write_spans(store, (struct store_spans){.open = &row, .n_open = 1});
	runs_now(&tail, "step");
	finish(store);
	span_tail_finish(&tail);
}

static void long_names_are_cut(void **state)
{
	struct fixture *f = *state;
	struct span_tail tail;
	memset(long_name, 0, sizeof(long_name));
	for (size_t i = 0; i + 3 < sizeof(long_name); i += 3)
		memcpy(long_name + i, "\xe7\x81\xab", 3);
	void *store = open_store(f, false);
	span_tail_init(&tail, f->path);
	begin_span(store, 1, VALUE_MISSING, LONG);
	assert_int_equal(span_tail_poll(&tail, NULL), 0);
	assert_int_equal(tail.n_spans, 1);
	assert_int_equal(strlen(tail.spans[0].name), 255); // each character takes three bytes
	finish(store);
	span_tail_finish(&tail);
}

static void more_than_are_kept(void **state)
{
	enum { N = SPAN_TAIL_SPANS_MAX + 100 };
	struct fixture *f = *state;
	struct span_tail tail;
	struct span_row *rows = calloc(N, sizeof(*rows));
	assert_non_null(rows);
	for (int64_t i = 0; i < N; i++)
		rows[i] = span_of(i + 1, VALUE_MISSING, STEP, VALUE_MISSING);
	void *store = open_store(f, false);
	span_tail_init(&tail, f->path);
	write_spans(store, (struct store_spans){.open = rows, .n_open = N});
	assert_int_equal(span_tail_poll(&tail, NULL), 0);
	assert_int_equal(tail.n_spans, SPAN_TAIL_SPANS_MAX);
	assert_int_equal(tail.more, 100);

	for (int64_t i = 0; i < 30; i++)
		rows[i] = span_of(i + 1, VALUE_MISSING, STEP, 1000);
	write_spans(store, (struct store_spans){.ended = rows, .n_ended = 30});
	assert_int_equal(span_tail_poll(&tail, NULL), 0);
	assert_int_equal(tail.n_spans, SPAN_TAIL_SPANS_MAX); // their slots are used by others
	assert_int_equal(tail.spans[0].id, 31);
	assert_int_equal(tail.more, 70);

	spill_end(store, N, VALUE_MISSING, STEP); // of one that is not kept yet
	assert_int_equal(span_tail_poll(&tail, NULL), 0);
	for (int64_t i = 30; i < 130; i++)
		rows[i] = span_of(i + 1, VALUE_MISSING, STEP, 1000);
	write_spans(store, (struct store_spans){.ended = rows + 30, .n_ended = 100});
	assert_int_equal(span_tail_poll(&tail, NULL), 0);
	assert_int_equal(tail.n_spans, N - 130 - 1);
	assert_int_equal(tail.spans[tail.n_spans - 1].id, N - 1);
	assert_int_equal(tail.more, 0);
	finish(store);
	span_tail_finish(&tail);
	free(rows);
}

static void samples_are_counted(void **state)
{
	struct fixture *f = *state;
	struct span_tail tail;
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, 10);
	span_tail_init(&tail, f->path);
	assert_int_equal(span_tail_poll(&tail, NULL), 0);
	assert_int_equal(span_tail_nth_sample(&tail, tail.stored_ns, 5), tail.stored_ns); // none follows
	assert_int_equal(span_tail_nth_sample(&tail, INT64_MIN, 1000), tail.stored_ns);
	int64_t first_ns = span_tail_nth_sample(&tail, INT64_MIN, 1),
		third_ns = span_tail_nth_sample(&tail, first_ns, 2);
	assert_true(first_ns < third_ns && third_ns < tail.stored_ns);
	span_tail_finish(&tail);
}

static void what_is_no_run_file(void **state)
{
	struct fixture *f = *state;
	struct wattle_error error = {0};
	struct span_tail tail;
	span_tail_init(&tail, f->path);
	assert_int_equal(span_tail_poll(&tail, &error), -ENOENT);
	assert_non_null(strstr(error.text, f->path));
	span_tail_finish(&tail);
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
