/* Running energy of a run in progress: data that is missing in one poll is read in the next. */
#include "../store/fixture.h"

#include "cli/top.h"

#include <sqlite3.h>

static bool readings_are_away;

static int no_readings(void *data, int action, const char *table, const char *column, const char *database,
	const char *by)
{
	bool is_reading = action == SQLITE_READ && strcmp(table, "device_sample") == 0;
	return readings_are_away && is_reading ? SQLITE_DENY : SQLITE_OK;
}

static int on_open(sqlite3 *db, char **ret_error, const void *api)
{
	return sqlite3_set_authorizer(db, no_readings, NULL);
}

static void add_samples(struct fixture *f, void *store, int64_t begin, int64_t n)
{
	enum { AT_ONCE = 500 };
	for (int64_t i = 0; i < n; i += AT_ONCE)
		assert_int_equal(fixture_write(f, &store_run_file, store, begin + i, AT_ONCE, 0), 0);
	assert_int_equal(f->batch.n_lost, 0);
}

static void look(struct top_run *run, int64_t *now_ns)
{
	*now_ns += NS_PER_S;
	top_run_update(run, *now_ns, false);
}

static void a_failed_look(void **state)
{
	enum { SETTLED = 2000 }; // more steps than one poll adds up
	struct fixture *f = *state;
	struct top_run *run;
	struct wattle_error error = {0};
	int64_t now_ns = fixture_t_ns(SETTLED);
	f->header.pid = getpid();
	f->header.host = f->header.boot_id = "";
	void *store = fixture_open(&store_run_file, &(struct store_open_options){.path = f->path}, &f->header);
	add_samples(f, store, 0, SETTLED);
	if (top_run_open(f->path, &run, &error) < 0)
		fail_msg("%s", error.text);
	const struct live_run *view = top_run_view(run);

	readings_are_away = true;
	look(run, &now_ns);
	assert_true(isnan(view->total_j));
	readings_are_away = false;
	look(run, &now_ns);
	double first_j = view->total_j;
	assert_true(first_j > 0);

	add_samples(f, store, SETTLED, SETTLED);
	readings_are_away = true;
	look(run, &now_ns);
	assert_true(view->total_j == first_j); // restored
	readings_are_away = false;
	look(run, &now_ns);
	assert_true(view->total_j > 1.9 * first_j && view->total_j < 2.1 * first_j);

	top_run_close(run);
	struct store_footer footer = fixture_footer(2 * SETTLED);
	assert_int_equal(store_run_file.finish(store, &footer, NULL), 0);
	fixture_close(&store_run_file, store, false);
}

int main(void)
{
	struct rows tests = {0};
	sqlite3_auto_extension((void (*)(void))on_open);
	fixture_add(&tests, "a look that fails leaves the figures, and the next one has them all", a_failed_look);
	return rows_run(&tests, "top_run");
}
