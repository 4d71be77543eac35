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
	view_metrics(view, view->look % 2 == 0, out);
	assert_int_equal(out->failed, 0);
}

static void look(struct now_state *state, struct view *view, struct trail *trail, struct tally *tally)
{
	view->now = now_look(state);
	view->look++;
	tally_look(tally, view->now, view->look);
	if (trail->domains == NULL)
		assert_int_equal(trail_init(trail, view->now->n_domains), 0);
	trail_add(trail, view->now);
}

static void thousands_of_looks(void **state_)
{
	struct wattle_error error = {0};
	struct wattle_env env;
	struct now_state *state;
	struct trail trail = {0};
	struct tally tally;
	const struct tally_options rows = {.most = {20, 20}, .most_processes = 20};
	struct view view = {.trail = &trail,
		.tally = &tally,
		.interval_ns = NS_PER_S,
		.host = "laptop",
		.seed_names = true};
	struct buf out;
	size_t settled = 0;
	set_tree("WATTLE_SYSFS", "sys");
	set_tree("WATTLE_PROCFS", "proc");
	assert_int_equal(env_open(&env, &error), 0);
	assert_int_equal(now_open(&(struct now_options){.env = &env, .groups = {true, true}}, &state, &error), 0);
	tally_init(&tally, &rows);
	buf_init(&out, 1 << 25);
	for (int i = 0; i < LOOKS; i++) {
		look(state, &view, &trail, &tally);
		if (i % 5 == 0) // every poll is stored, not every one is requested
			make_all(&view, &out);
		if (i == SETTLED)
			settled = mallinfo2().uordblks;
	}
	assert_true(mallinfo2().uordblks <= settled + 4096);
	buf_finish(&out);
	trail_finish(&trail);
	tally_finish(&tally);
	now_close(state);
	env_close(&env);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "thousands of polls and their documents: no more memory than after the first hundreds",
		thousands_of_looks);
	return rows_run(&tests, "growth");
}
