/* Steps read from a run file while it grows: spans that stay open, the spool, further segments, metrics. */
#include "fixture.h"

#include "store/follow.h"

static const char *const names[] = {"step", "other", "tokens"};
enum { STEP, OTHER, TOKENS, NAMES };

static struct span_row span_of(int64_t id, uint32_t name, int64_t end)
{
	return (struct span_row){
		.id = id,
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

static void write_ended(void *store, struct span_row row)
{
	write_spans(store, (struct store_spans){.ended = &row, .n_ended = 1});
}

static void spill_ended(void *store, struct span_row row)
{
	const struct store_spans spans = {.names = names, .n_names = NAMES, .ended = &row, .n_ended = 1};
	assert_int_equal(store_run_file.spill(store, &spans, NULL), 0);
}

// Ends of steps after the start, in order; each poll returns all that are known.
static void has_steps(struct step_tail *tail, const int64_t *ends, size_t n)
{
	struct wattle_error error = {0};
	if (step_tail_poll(tail, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(tail->n_steps, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(tail->steps[i].t_ns - fixture_mono_ns, ends[i]);
}

#define HAS_STEPS(tail, ...)                                                                                           \
	do {                                                                                                           \
		const int64_t ends[] = {__VA_ARGS__};                                                                  \
		has_steps(tail, ends, ARRAY_SIZE(ends));                                                               \
	} while (0)

static void no_file_yet(void **state)
{
	struct fixture *f = *state;
	struct step_tail tail;
	step_tail_init(&tail, f->path, "step", false);
	assert_int_equal(step_tail_poll(&tail, NULL), -ENOENT);
	step_tail_finish(&tail);
}

static void spans_that_end_later(void **state)
{
	struct fixture *f = *state;
	struct step_tail tail;
	void *store = open_store(f, false);
	step_tail_init(&tail, f->path, "step", false);
	has_steps(&tail, NULL, 0);
	struct span_row open = span_of(1, STEP, VALUE_MISSING), ended[] = {span_of(2, OTHER, 20), span_of(3, STEP, 30)};
	write_spans(store, (struct store_spans){.open = &open, .n_open = 1, .ended = ended, .n_ended = 2});
	HAS_STEPS(&tail, 30);
	HAS_STEPS(&tail, 30); // once, whatever the number of polls
	write_ended(store, span_of(4, STEP, 35));
	HAS_STEPS(&tail, 30, 35);
	write_ended(store, span_of(1, STEP, 40)); // in place of its open row, below the known ones
	HAS_STEPS(&tail, 30, 35, 40);
	struct span_row cut = span_of(5, STEP, 50);
	cut.close = SPAN_UNWOUND;
	write_ended(store, cut);
	HAS_STEPS(&tail, 30, 35, 40);
	step_tail_drop(&tail, fixture_mono_ns + 35);
	HAS_STEPS(&tail, 35, 40);
	step_tail_finish(&tail);
	finish(store);
}

static void steps_in_the_spool(void **state)
{
	struct fixture *f = *state;
	struct step_tail tail;
	void *store = open_store(f, false);
	step_tail_init(&tail, f->path, "step", false);
	spill_ended(store, span_of(1, OTHER, 10));
	has_steps(&tail, NULL, 0);
	spill_ended(store, span_of(2, STEP, 20));
	HAS_STEPS(&tail, 20);
	write_ended(store, span_of(3, STEP, 15)); // both sources at once, in order of time
	spill_ended(store, span_of(4, STEP, 40));
	HAS_STEPS(&tail, 15, 20, 40);
	finish(store); // the spool becomes rows, which were reported before
	HAS_STEPS(&tail, 15, 20, 40);
	step_tail_finish(&tail);
}

// Spans reported from the first recorder's spool are rows when the second one begins.
static void further_segments(void **state)
{
	struct fixture *f = *state;
	struct step_tail tail, late;
	void *store = open_store(f, false);
	step_tail_init(&tail, f->path, "step", false);
	struct span_row open = span_of(1, STEP, VALUE_MISSING);
	write_spans(store, (struct store_spans){.open = &open, .n_open = 1});
	spill_ended(store, span_of(2, STEP, 20));
	HAS_STEPS(&tail, 20);
	finish(store);
	store = open_store(f, true);
	step_tail_init(&late, f->path, "step", false);
	has_steps(&late, NULL, 0); // a later reader gets the steps of its own segment only
	write_ended(store, span_of(1, STEP, 50));
	spill_ended(store, span_of(2, STEP, 60));
	HAS_STEPS(&late, 50, 60);
	HAS_STEPS(&tail, 20, 50, 60);
	step_tail_finish(&late);
	step_tail_finish(&tail);
	finish(store);
}

static void metrics(void **state)
{
	struct fixture *f = *state;
	struct step_tail tail;
	char text[100];
	void *store = open_store(f, false);
	step_tail_init(&tail, f->path, "tokens", true);
	struct span_metric_row row = {.t_ns = fixture_mono_ns + 10, .value = 32, .name = TOKENS, .pid = 10, .tid = 11};
	write_spans(store, (struct store_spans){.metrics = &row, .n_metrics = 1});
	HAS_STEPS(&tail, 10);
	row = (struct span_metric_row){.t_ns = fixture_mono_ns + 20,
		.value = 0.5,
		.name = TOKENS,
		.pid = 10,
		.tid = 11};
	const struct store_spans spans = {.names = names, .n_names = NAMES, .metrics = &row, .n_metrics = 1};
	assert_int_equal(store_run_file.spill(store, &spans, NULL), 0);
	HAS_STEPS(&tail, 10, 20);
	assert_true(tail.steps[0].value == 32 && tail.steps[1].value == 0.5);
	step_tail_names(f->path, true, text, sizeof(text));
	assert_string_equal(text, "tokens");
	step_tail_names(f->path, false, text, sizeof(text));
	assert_string_equal(text, "");
	step_tail_finish(&tail);
	finish(store);
}

static void stored_until(void **state)
{
	struct fixture *f = *state;
	struct step_tail tail;
	void *store = open_store(f, false);
	step_tail_init(&tail, f->path, "step", false);
	has_steps(&tail, NULL, 0);
	assert_false(value_ok(tail.stored_ns));
	assert_int_equal(fixture_write(f, &store_run_file, store, 0, 3, 0), 0);
	has_steps(&tail, NULL, 0);
	assert_int_equal(tail.stored_ns, fixture_t_ns(2));
	step_tail_finish(&tail);
	finish(store);
}

static void what_is_no_run_file(void **state)
{
	struct fixture *f = *state;
	struct wattle_error error = {0};
	struct step_tail tail;
	FILE *file = fopen(f->path, "w");
	fputs("some text that is long enough to be looked at by whoever wants to know what it is\n", file);
	fclose(file);
	step_tail_init(&tail, f->path, "step", false);
	assert_true(step_tail_poll(&tail, &error) < 0);
	assert_non_null(strstr(error.text, f->path));
	step_tail_finish(&tail);
}

#define ROW(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(no_file_yet),
		ROW(spans_that_end_later),
		ROW(steps_in_the_spool),
		ROW(further_segments),
		ROW(metrics),
		ROW(stored_until),
		ROW(what_is_no_run_file),
	};
	return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
