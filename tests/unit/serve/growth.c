/* Hours of a server in seconds: thousands of polls of a recorded machine, with all documents of each. */
#include "base/util.h"
#include "serve/view.h"

#include "rows.h"

#include <malloc.h>
#include <unistd.h>

enum { SETTLED = 700, LOOKS = 3000 };

static void set_tree(const char *variable, const char *part)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/machines/laptop-hybrid/%s", getenv("WATTLE_TESTS"), part);
	assert_int_equal(setenv(variable, path, 1), 0);
}

static void make_all(const struct view *view, struct buf *out)
{
	void (*const documents[])(const struct view *, struct buf *) = {view_page, view_figures};
	for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
		buf_clear(out);
		documents[i](view, out);
		assert_int_equal(out->failed, 0);
	}
	buf_clear(out);
	view_json(view, true, out);
	buf_clear(out);
	view_metrics(view, view->sample % 2 == 0, out);
	assert_int_equal(out->failed, 0);
}

static void sample(struct monitor *state, struct view *view, struct history *history, struct totals *totals)
{
	view->now = monitor_take_sample(state);
	view->sample++;
	totals_update(totals, view->now, view->sample);
	if (history->domains == NULL)
		assert_int_equal(history_init(history, view->now->n_domains), 0);
	history_add(history, view->now);
}

static void thousands_of_looks(void **state_)
{
	struct wattle_error error = {0};
	struct wattle_env env;
	struct monitor *state;
	struct history history = {0};
	struct totals totals;
	const struct totals_options rows = {.most = {20, 20}, .max_processes = 20};
	struct view view = {.history = &history,
		.totals = &totals,
		.interval_ns = NS_PER_S,
		.host = "laptop",
		.seed_names = true};
	struct buf out;
	size_t settled = 0;
	set_tree("WATTLE_SYSFS", "sys");
	set_tree("WATTLE_PROCFS", "proc");
	assert_int_equal(env_open(&env, &error), 0);
	assert_int_equal(monitor_open(&(struct monitor_options){.env = &env, .groups = {true, true}}, &state, &error),
		0);
	totals_init(&totals, &rows);
	buf_init(&out, 1 << 25);
	for (int i = 0; i < LOOKS; i++) {
		sample(state, &view, &history, &totals);
		if (i % 5 == 0) // every poll is stored, not every one is requested
			make_all(&view, &out);
		if (i == SETTLED)
			settled = mallinfo2().uordblks;
	}
	assert_true(mallinfo2().uordblks <= settled + 4096);
	buf_finish(&out);
	history_finish(&history);
	totals_finish(&totals);
	monitor_close(state);
	env_close(&env);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "thousands of polls and their documents: no more memory than after the first hundreds",
		thousands_of_looks);
	return rows_run(&tests, "growth");
}
