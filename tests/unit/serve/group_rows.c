/* Which groups have series, and that no energy is lost or counted twice as groups start and end. */
#include "serve/totals.h"

#include "base/fields.h"
#include "base/util.h"

#include "rows.h"

#include <stdio.h>

enum { MOST = 4, GROUPS = 40 };

static void assert_near(double value, double expected)
{
	assert_true(fabs(value - expected) < 1e-9);
}

struct machine {
	struct monitor_group groups[GROUPS];
	struct monitor_sample now;
	struct group_rows table;
	uint64_t sample;
	double given_j;
};

static void begin(struct machine *m, enum monitor_grouping grouping)
{
	*m = (struct machine){.now = {.dt_s = 1, .busy_cores = 0, .exists = {true}}};
	m->now.groups[grouping] = m->groups;
	m->now.n_groups[grouping] = GROUPS;
	group_rows_init(&m->table, grouping, MOST);
}

static void use(struct machine *m, size_t i, double joules)
{
	snprintf(m->groups[i].name, sizeof(m->groups[i].name), "/%zu", i);
	m->groups[i].uid = 65534;
	m->groups[i].processes = 1;
	m->groups[i].added_j[MONITOR_CPU] = joules;
	m->now.added[MONITOR_CPU].total_j += joules;
	m->given_j += joules;
}

static void sample(struct machine *m)
{
	m->now.t_ns += NS_PER_S;
	group_rows_update(&m->table, &m->now, ++m->sample);
	memset(m->groups, 0, sizeof(m->groups));
	m->now.added[MONITOR_CPU] = (struct monitor_added){0};
}

static size_t count(const struct machine *m, enum series_state state)
{
	size_t n = 0;
	for (size_t i = 0; i < m->table.n; i++)
		n += m->table.items[i].series.state == state;
	return n;
}

static double sum_j(const struct machine *m)
{
	double sum = m->table.other_j[MONITOR_CPU] + m->table.rest_j[MONITOR_CPU];
	for (size_t i = 0; i < m->table.n; i++)
		sum += m->table.items[i].energy_j[MONITOR_CPU];
	return sum;
}

static struct group_row *row_of(struct machine *m, size_t i)
{
	char name[16];
	snprintf(name, sizeof(name), "/%zu", i);
	return group_rows_add(&m->table, name);
}

static void no_more_than_allowed(void **state)
{
	struct machine m;
	begin(&m, MONITOR_CGROUPS);
	for (size_t i = 0; i < GROUPS; i++)
		use(&m, i, 1);
	sample(&m);
	assert_int_equal(count(&m, SERIES_SHOWN), MOST);
	assert_near(m.table.other_j[MONITOR_CPU], GROUPS - MOST);
	assert_near(sum_j(&m), m.given_j);
	group_rows_finish(&m.table);
}

static void a_storm_of_short_ones(void **state)
{
	enum { SECONDS = 300 };
	struct machine m;
	size_t told = 0;
	begin(&m, MONITOR_CGROUPS);
	for (size_t s = 0; s < SECONDS; s++) {
		for (size_t i = 0; i < GROUPS; i++) { // each second all groups are new
			use(&m, i, 1);
			snprintf(m.groups[i].name, sizeof(m.groups[i].name), "/run-%zu.scope", s * GROUPS + i);
		}
		sample(&m);
		told += count(&m, SERIES_SHOWN);
		group_rows_drop_scraped(&m.table, &(struct scraped){m.sample, INT64_MAX});
		assert_near(m.table.other_j[MONITOR_CPU],
			m.given_j - (double)told); // each reported group had 1 J
	}
	assert_true(told >= SERIES_NEW_MIN && told <= (SECONDS / 60 + 1) * SERIES_NEW_MIN);
	group_rows_finish(&m.table);
}

static void who_uses_more_gets_a_row(void **state)
{
	struct machine m;
	begin(&m, MONITOR_CGROUPS);
	for (int s = 0; s < 200; s++) {
		for (size_t i = 0; i < 6; i++)
			use(&m, i, i == 5 ? 100 : 1); // the last to arrive, with no series left
		sample(&m);
		group_rows_drop_scraped(&m.table, &(struct scraped){m.sample, INT64_MAX});
	}
	assert_int_equal(row_of(&m, 5)->series.state, SERIES_SHOWN);
	assert_int_equal(count(&m, SERIES_SHOWN), MOST);
	assert_near(sum_j(&m), m.given_j);
	group_rows_finish(&m.table);
}

static void shown_until_scraped(void **state)
{
	struct machine m;
	begin(&m, MONITOR_CGROUPS);
	use(&m, 0, 7);
	sample(&m);
	sample(&m); // it has ended
	assert_int_equal(row_of(&m, 0)->series.state, SERIES_LEAVING);
	group_rows_drop_scraped(&m.table, &(struct scraped){1, INT64_MAX}); // the previous poll was scraped
	assert_int_equal(row_of(&m, 0)->series.state, SERIES_LEAVING);
	group_rows_drop_scraped(&m.table, &(struct scraped){0, INT64_MAX}); // no scrape
	assert_int_equal(row_of(&m, 0)->series.state, SERIES_LEAVING);
	group_rows_drop_scraped(&m.table, &(struct scraped){2, INT64_MAX});
	assert_int_equal(row_of(&m, 0)->series.state, SERIES_NONE);
	use(&m, 0, 3);
	sample(&m); // it is back: its counter continues
	assert_near(row_of(&m, 0)->energy_j[MONITOR_CPU], 10);
	group_rows_finish(&m.table);
}

static void a_job_has_an_owner(void **state)
{
	struct machine m;
	begin(&m, MONITOR_JOBS);
	use(&m, 0, 1);
	m.groups[0].uid = 0; // the daemon that starts it
	sample(&m);
	assert_false(group_row_is_shown(&m.table, row_of(&m, 0)));
	use(&m, 0, 1);
	m.groups[0].uid = 12345678;
	sample(&m);
	assert_true(group_row_is_shown(&m.table, row_of(&m, 0)));
	assert_string_equal(row_of(&m, 0)->user, "12345678");
	assert_near(row_of(&m, 0)->energy_j[MONITOR_CPU], 2); // from its first second on
	group_rows_finish(&m.table);
}

static uint32_t rng(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void any_history(void **state)
{
	struct machine m;
	uint32_t seed = 1;
	begin(&m, MONITOR_CGROUPS);
	for (int s = 0; s < 5000; s++) {
		uint32_t part = rng(&seed) % 5;
		for (size_t i = 0; i < GROUPS; i++)
			if (rng(&seed) % 5 < part)
				use(&m, i, rng(&seed) % 100);
		sample(&m);
		if (rng(&seed) % 3 == 0)
			group_rows_drop_scraped(&m.table, &(struct scraped){m.sample - rng(&seed) % 4, INT64_MAX});
		assert_true(count(&m, SERIES_SHOWN) <= MOST && count(&m, SERIES_LEAVING) <= MOST);
		assert_true(m.table.n <= GROUPS + (size_t)MOST * 4);
	}
	group_rows_finish(&m.table);
}

static void each_joule_once(void **state)
{
	struct machine m;
	uint32_t seed = 7;
	begin(&m, MONITOR_CGROUPS);
	for (int s = 0; s < 2000; s++) {
		for (size_t i = 0; i < MOST * 3; i++) // few enough to remember all
			if (rng(&seed) % 2)
				use(&m, i, rng(&seed) % 100);
		m.now.added[MONITOR_CPU].total_j += 5;
		m.given_j += 5;
		sample(&m);
		if (s % 3 == 0)
			group_rows_drop_scraped(&m.table, &(struct scraped){m.sample, INT64_MAX});
		assert_true(fabs(sum_j(&m) - m.given_j) < 1e-6);
	}
	group_rows_finish(&m.table);
}

static void over_a_restart(void **state)
{
	struct machine m, later;
	struct buf text;
	begin(&m, MONITOR_JOBS);
	for (size_t i = 0; i < 6; i++)
		use(&m, i, 1.0 / 3 + (double)i);
	sample(&m);
	buf_init(&text, 1 << 16);
	document_json(&text, &group_rows_type, &m.table, false);
	begin(&later, MONITOR_JOBS);
	json_t *object = json_loads(text.data, 0, NULL);
	group_rows_read(&later.table, object);
	json_decref(object);
	assert_true(sum_j(&later) == sum_j(&m)); // bit-exact
	assert_int_equal(count(&later, SERIES_LEAVING), MOST);
	group_rows_drop_scraped(&later.table, &(struct scraped){UINT64_MAX, INT64_MAX}); // no scrape since the restart
	use(&later, 5, 1); // one of the four that used most, which had series
	sample(&later);
	assert_int_equal(row_of(&later, 5)->series.state, SERIES_SHOWN);
	assert_int_equal(row_of(&later, 4)->series.state, SERIES_LEAVING); // it ended meanwhile, before any scrape
	assert_near(row_of(&later, 5)->energy_j[MONITOR_CPU], 1.0 / 3 + 6);
	buf_finish(&text);
	group_rows_finish(&m.table);
	group_rows_finish(&later.table);
}

// A state file of another user, or from a larger limit: as few as possible are kept, and no energy is lost.
static void too_many_before_a_restart(void **state)
{
	struct machine m;
	begin(&m, MONITOR_JOBS);
	json_t *rows = json_array(), *object = json_pack("{s:o}", "rows", rows);
	for (int i = 0; i < GROUPS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "/%d", i);
		json_array_append_new(rows,
			json_pack("{s:s, s:s, s:b, s:f}", "name", name, "user", "ada", "told", 1, "cpu_j", 0.5));
	}
	group_rows_read(&m.table, object);
	json_decref(object);
	assert_int_equal(m.table.n, 2 * MOST);
	assert_near(sum_j(&m), GROUPS * 0.5);
	group_rows_finish(&m.table);
}

static void years_of_joules(void **state)
{
	struct totals totals;
	struct monitor_sample now = {.dt_s = 1, .busy_cores = 0, .exists = {true}};
	double before_j = 0, told_j = 0;
	uint32_t seed = 3;
	totals_init(&totals, &(struct totals_options){0});
	totals.sums[MONITOR_CPU] = (struct monitor_added){3e11, 1e9 / 3, 1e10 / 7, 1e8 / 9, 0,
		0}; // a year of ten kilowatts
	totals.sums[MONITOR_CPU].idle_j = 3e11 - 1e9 / 3 - 1e10 / 7 - 1e8 / 9;
	for (uint64_t i = 1; i < 10000; i++) {
		const double own_j = rng(&seed) % 1000 * 1e-6, idle_j = 1e4 + rng(&seed) % 1000 * 1e-3;
		const double others_j = i % 10 == 0 ? 0.5 : 0; // in most polls they are idle
		now.added[MONITOR_CPU] = (struct monitor_added){.total_j = own_j + idle_j + others_j,
			.own_j = own_j,
			.idle_j = idle_j,
			.others_j = others_j};
		totals_update(&totals, &now, i);
		told_j = totals_sum(&totals).others_j;
		assert_true(told_j >= before_j);
		before_j = told_j;
	}
	assert_true(fabs(told_j - 1e10 / 7 - 499.5) < 1e-2);
	totals_finish(&totals);
}

static void scrapers_of_a_pair(void **state)
{
	struct scrapers scrapers = {0};
	uint32_t one = scraper_id(NULL, "one"), two = scraper_id(NULL, "two");
	assert_int_equal(scrapers_seen(&scrapers, 0).sample, 0);
	scrapers_note(&scrapers, one, 0, 5, NS_PER_S);
	assert_int_equal(scrapers_seen(&scrapers, NS_PER_S).sample, 5);
	scrapers_note(&scrapers, two, 0, 3, NS_PER_S);
	assert_int_equal(scrapers_seen(&scrapers, NS_PER_S).sample, 3);
	scrapers_note(&scrapers, one, 0, 400, 400 * NS_PER_S); // the other has ended
	assert_int_equal(scrapers_seen(&scrapers, 400 * NS_PER_S).sample, 400);
	// A client that scrapes every ten minutes stays known: another client in between does not replace it.
	scrapers = (struct scrapers){0};
	scrapers_note(&scrapers, one, 0, 1, NS_PER_S);
	scrapers_note(&scrapers, one, 0, 600, 601 * NS_PER_S);
	scrapers_note(&scrapers, two, 0, 1100, 1101 * NS_PER_S);
	assert_int_equal(scrapers_seen(&scrapers, 1102 * NS_PER_S).sample, 600);
	assert_int_equal(scrapers_seen(&scrapers, 2000 * NS_PER_S).sample, 0);
	for (uint32_t id = 0; id < 1000; id++)
		scrapers_note(&scrapers, id, 0, 500, 500 * NS_PER_S);
	assert_int_equal(scrapers.n, SCRAPERS_MAX);
}

static void scrapers_behind_one_address(void **state)
{
	struct scrapers scrapers = {0};
	const uint32_t both = scraper_id(NULL, "Prometheus");
	const uint64_t first_line = 1, second_line = 2;
	scrapers_note(&scrapers, both, first_line, 5, NS_PER_S);
	scrapers_note(&scrapers, both, second_line, 7, NS_PER_S);
	assert_int_equal(scrapers_seen(&scrapers, NS_PER_S).sample, 5);
	scrapers_note(&scrapers, both, first_line, 9, 2 * NS_PER_S);
	assert_int_equal(scrapers_seen(&scrapers, 2 * NS_PER_S).sample, 7);
	// One reconnects: it may be either, and must not be taken for the one that is behind.
	scrapers_hang_up(&scrapers, first_line);
	scrapers_hang_up(&scrapers, second_line);
	scrapers_note(&scrapers, both, 3, 11, 3 * NS_PER_S);
	assert_int_equal(scrapers_seen(&scrapers, 3 * NS_PER_S).sample, 7);
	scrapers_note(&scrapers, both, 4, 12, 4 * NS_PER_S);
	assert_int_equal(scrapers_seen(&scrapers, 4 * NS_PER_S).sample, 11);
	assert_int_equal(scrapers.n, 2);
	// A connection for each scrape is one client.
	scrapers = (struct scrapers){0};
	for (uint64_t line = 1; line < 10; line++) {
		scrapers_note(&scrapers, both, line, line, NS_PER_S);
		scrapers_hang_up(&scrapers, line);
	}
	assert_int_equal(scrapers_seen(&scrapers, NS_PER_S).sample, 9);
}

static void scrapers_over_a_restart(void **state)
{
	struct scrapers before = {0}, after = {0}, after_a_boot = {0};
	struct buf text;
	const uint32_t both = scraper_id(NULL, "Prometheus");
	scrapers_note(&before, both, 1, 5, 100 * NS_PER_S);
	scrapers_note(&before, both, 2, 6, 101 * NS_PER_S);
	buf_init(&text, 1 << 16);
	document_json(&text, &scrapers_type, &before, false);
	json_t *array = json_loads(text.data, 0, NULL);
	scrapers_read(&after, array, true, 102 * NS_PER_S);
	scrapers_note(&after, both, 1, 3, 103 * NS_PER_S); // the first client returns, and the other is waited for
	assert_int_equal(scrapers_seen(&after, 103 * NS_PER_S).sample, 0);
	assert_int_equal(scrapers_seen(&after, 402 * NS_PER_S).sample, 3); // but not forever
	scrapers_note(&after, both, 2, 4, 103 * NS_PER_S);
	assert_int_equal(scrapers_seen(&after, 103 * NS_PER_S).sample, 3);
	scrapers_read(&after_a_boot, array, false, NS_PER_S);
	scrapers_note(&after_a_boot, both, 1, 3, 2 * NS_PER_S);
	assert_int_equal(scrapers_seen(&after_a_boot, 2 * NS_PER_S).sample, 0);
	json_decref(array);
	buf_finish(&text);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "no more series than allowed; the rest is counted in \"other\"",
		no_more_than_allowed);
	ROWS_ADD_ONE(&tests, "many short groups: a bounded number of series a minute, no energy lost",
		a_storm_of_short_ones);
	ROWS_ADD_ONE(&tests, "late group that uses most: gets a series in time", who_uses_more_gets_a_row);
	ROWS_ADD_ONE(&tests, "ended group: kept until it was scraped; a group that returns continues its counter",
		shown_until_scraped);
	ROWS_ADD_ONE(&tests, "job: reported once its owner is known, from its first joule on",
		a_job_has_an_owner);
	ROWS_ADD_ONE(&tests, "groups start and end at random: the limits are kept", any_history);
	ROWS_ADD_ONE(&tests, "groups start and end at random: each joule is in one series", each_joule_once);
	ROWS_ADD_ONE(&tests, "restart: counters are bit-identical and continue", over_a_restart);
	ROWS_ADD_ONE(&tests, "restart with too many series: as few as possible are dropped, with no energy lost",
		too_many_before_a_restart);
	ROWS_ADD_ONE(&tests, "years of energy: the counter of the rest never decreases by rounding", years_of_joules);
	ROWS_ADD_ONE(&tests, "two scrapers: an ended group is dropped when both have scraped it; a client that left "
		"does not count", scrapers_of_a_pair);
	ROWS_ADD_ONE(&tests, "two scrapers behind one address: distinguished by their connections",
		scrapers_behind_one_address);
	ROWS_ADD_ONE(&tests, "restart: all earlier scrapers are waited for", scrapers_over_a_restart);
	return rows_run(&tests, "told");
}
