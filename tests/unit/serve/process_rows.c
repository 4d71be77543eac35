/* Which processes have series of their own, and that their counters never decrease as processes start and end. */
#include "serve/totals.h"

#include "base/fields.h"
#include "base/util.h"

#include "rows.h"

#include <stdio.h>

enum { MOST = 4, PROCESSES = 400 };

struct machine {
	struct monitor_process processes[PROCESSES];
	struct monitor_sample now;
	struct process_rows table;
	uint64_t sample;
};

static void begin(struct machine *m)
{
	*m = (struct machine){.now = {.dt_s = 1, .processes = m->processes}};
	process_rows_init(&m->table, MOST, MONITOR_ARGUMENTS_ALL);
}

// In ascending order first, then ended ones: as `now` lists them.
static struct monitor_process *use(struct machine *m, pid_t pid, double watts, double joules)
{
	struct monitor_process *process = &m->processes[m->now.n_processes++];
	*process = (struct monitor_process){.pid = pid, .start_ticks = 7, .power_w = watts, .energy_j = joules};
	snprintf(process->command, sizeof(process->command), "burn");
	return process;
}

static void sample(struct machine *m)
{
	m->now.t_ns += NS_PER_S;
	process_rows_update(&m->table, &m->now, ++m->sample);
	m->now.n_processes = 0;
}

static void scraped(struct machine *m)
{
	process_rows_drop_scraped(&m->table, &(struct scraped){m->sample, INT64_MAX});
}

static const struct process_row *row_of(const struct machine *m, pid_t pid)
{
	for (size_t i = 0; i < m->table.n; i++)
		if (m->table.items[i].now.pid == pid)
			return &m->table.items[i];
	return NULL;
}

static size_t count(const struct machine *m, enum series_state state)
{
	size_t n = 0;
	for (size_t i = 0; i < m->table.n; i++)
		n += m->table.items[i].series.state == state;
	return n;
}

static void most_first(void **state)
{
	struct machine m;
	begin(&m);
	for (pid_t pid = 1; pid <= 10; pid++)
		use(&m, pid, pid, pid);
	sample(&m);
	assert_int_equal(count(&m, SERIES_SHOWN), MOST);
	assert_null(row_of(&m, 6));
	assert_int_equal(row_of(&m, 7)->series.state, SERIES_SHOWN);
	process_rows_finish(&m.table);
}

static void rows_pass_on_rarely(void **state)
{
	struct machine m;
	begin(&m);
	size_t changes = 0;
	for (int s = 0; s < 600; s++) {
		for (pid_t pid = 1; pid <= 10; pid++) // each poll other processes are first, by a small margin
			use(&m, pid, 10 + (pid + s) % 10 * 0.5, s);
		size_t before = count(&m, SERIES_LEAVING);
		sample(&m);
		changes += count(&m, SERIES_LEAVING) - before;
		scraped(&m);
	}
	assert_int_equal(changes, 0);
	for (int s = 0; s < 300; s++) {
		for (pid_t pid = 1; pid <= 11; pid++)
			use(&m, pid, pid == 11 ? 100 : 10, s);
		sample(&m);
		scraped(&m);
	}
	assert_int_equal(row_of(&m, 11)->series.state, SERIES_SHOWN);
	process_rows_finish(&m.table);
}

static void shown_until_scraped(void **state)
{
	struct machine m;
	begin(&m);
	use(&m, 1, 5, 10);
	sample(&m);
	use(&m, 1, (double)NAN, 12)->is_gone = true;
	sample(&m);
	assert_int_equal(row_of(&m, 1)->series.state, SERIES_LEAVING);
	assert_true(row_of(&m, 1)->now.energy_j == 12);
	use(&m, 1, 3, 1)->start_ticks = 9; // its pid was reused by another of that name: that would be the same series
	sample(&m);
	assert_int_equal(m.table.n, 1);
	process_rows_drop_scraped(&m.table, &(struct scraped){1, INT64_MAX}); // the previous poll was scraped
	assert_non_null(row_of(&m, 1));
	scraped(&m);
	assert_null(row_of(&m, 1));
	process_rows_finish(&m.table);
}

static void who_rests_has_no_row(void **state)
{
	struct machine m;
	begin(&m);
	for (int s = 0; s < 200; s++) {
		use(&m, 1, s == 0 ? 5 : 0, 10);
		use(&m, 2, s % 30 == 0 ? 5 : 0, 10);
		sample(&m);
		scraped(&m);
	}
	assert_int_equal(row_of(&m, 1)->series.state, SERIES_NONE);
	assert_int_equal(row_of(&m, 2)->series.state, SERIES_SHOWN); // the series has no gaps
	process_rows_finish(&m.table);
}

static void a_fork_storm(void **state)
{
	enum { SECONDS = 300, BIRTHS = 100 };
	struct machine m;
	size_t series = 0, before = 0;
	begin(&m);
	for (int s = 0; s < SECONDS; s++) {
		const pid_t born = 1000 + s * BIRTHS;
		for (pid_t pid = born; pid < born + BIRTHS; pid++)
			use(&m, pid, 1, 1);
		for (pid_t pid = born - BIRTHS; s > 0 && pid < born; pid++)
			use(&m, pid, (double)NAN, 1)->is_gone = true;
		sample(&m);
		assert_true(count(&m, SERIES_SHOWN) <= MOST && count(&m, SERIES_LEAVING) <= MOST);
		assert_true(m.table.n <= MOST * (PROCESS_ROWS_REMEMBERED + 2));
		for (size_t i = 0; i < m.table.n; i++) // processes not reported by any earlier poll
			series += (size_t)m.table.items[i].now.pid > before;
		for (size_t i = 0; i < m.table.n; i++)
			before = (size_t)m.table.items[i].now.pid > before ? (size_t)m.table.items[i].now.pid : before;
		scraped(&m);
	}
	assert_true(series <= (SECONDS / 60 + 1) * SERIES_NEW_MIN);
	assert_true(series >= SERIES_NEW_MIN);
	process_rows_finish(&m.table);
}

static void one_that_renames_itself(void **state)
{
	struct machine m;
	size_t names = 0;
	char told[MONITOR_COMMAND_SIZE] = "";
	begin(&m);
	for (int s = 0; s < 300; s++) {
		snprintf(use(&m, 1, 1, 1)->command, MONITOR_COMMAND_SIZE, "name %d", s);
		sample(&m);
		const struct process_row *row = &m.table.items[0];
		names += strcmp(told, row->now.command) != 0;
		text_copy(told, sizeof(told), row->now.command);
	}
	assert_true(names <= 300 / 60 + 2);
	process_rows_finish(&m.table);
}

static json_t *written(const struct machine *m)
{
	struct buf text;
	buf_init(&text, 1 << 16);
	document_json(&text, &process_rows_type, &m->table, false);
	json_t *array = json_loads(text.data, 0, NULL);
	buf_finish(&text);
	assert_non_null(array);
	return array;
}

static void over_a_restart(void **state)
{
	struct machine m, later;
	size_t n;
	begin(&m);
	use(&m, 1, 5, 1.0 / 3);
	use(&m, 2, 5, 20);
	use(&m, 3, 5, (double)NAN);
	sample(&m);
	json_t *array = written(&m);
	begin(&later);
	process_rows_read(&later.table, array, true);
	struct monitor_kept_process *kept = process_rows_kept(&later.table, &n);
	assert_int_equal(n, 2);
	assert_true(kept[0].pid == 1 && kept[0].energy_j == 1.0 / 3 && kept[1].pid == 2);
	process_rows_drop_scraped(&later.table,
		&(struct scraped){UINT64_MAX, INT64_MAX}); // no scrape since the restart
	use(&later, 1, 0, 1.0 / 3 + 1);
	use(&later, 2, 5, 1)->start_ticks = 8; // another process has its pid
	sample(&later);
	assert_int_equal(row_of(&later, 1)->series.state, SERIES_SHOWN); // idle or not: it was reported
	assert_int_equal(row_of(&later, 2)->series.state, SERIES_LEAVING);
	assert_true(row_of(&later, 2)->now.energy_j == 20 && row_of(&later, 3)->series.state == SERIES_LEAVING);
	free(kept);
	process_rows_finish(&later.table);
	// After a reboot no process is the same.
	begin(&later);
	process_rows_read(&later.table, array, false);
	use(&later, 1, 5, 1);
	sample(&later);
	assert_int_equal(row_of(&later, 1)->series.state, SERIES_LEAVING);
	free(process_rows_kept(&later.table, &n));
	assert_int_equal(n, 0);
	process_rows_finish(&later.table);
	json_decref(array);
	process_rows_finish(&m.table);
}

static void a_file_of_anybody(void **state)
{
	static const char *const texts[] = {"{}", "[null,1,[],{}]",
		"[{\"pid\":-1,\"start_ticks\":1,\"command\":\"x\"}]",
		"[{\"pid\":1,\"start_ticks\":-1,\"command\":\"x\"}]",
		"[{\"pid\":1e99,\"start_ticks\":1,\"command\":\"x\"}]", "[{\"pid\":1,\"start_ticks\":1,\"command\":5}]",
		"[{\"pid\":99999999999,\"start_ticks\":1,\"command\":\"\"}]"};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct process_rows table;
		process_rows_init(&table, MOST, MONITOR_ARGUMENTS_ALL);
		json_t *array = json_loads(texts[i], 0, NULL);
		process_rows_read(&table, array, true);
		assert_int_equal(table.n, 0);
		json_decref(array);
		process_rows_finish(&table);
	}
	struct process_rows table;
	process_rows_init(&table, MOST, MONITOR_ARGUMENTS_ALL);
	json_t *many = json_array();
	for (int i = 1; i < 1000; i++)
		json_array_append_new(many,
			json_pack("{s:i,s:i,s:s,s:f}", "pid", i, "start_ticks", i, "command", "x", "energy_j", -1.0));
	process_rows_read(&table, many, true);
	assert_true(table.n <= MOST * (PROCESS_ROWS_REMEMBERED + 2) && isnan(table.items[0].now.energy_j));
	json_decref(many);
	process_rows_finish(&table);
	// A duplicate series would invalidate the whole scrape.
	process_rows_init(&table, MOST, MONITOR_ARGUMENTS_ALL);
	json_t *twice = json_loads("[{\"pid\":1,\"start_ticks\":1,\"command\":\"x\"},"
				   "{\"pid\":1,\"start_ticks\":2,\"command\":\"x\"}]",
		0, NULL);
	process_rows_read(&table, twice, true);
	assert_int_equal(table.n, 1);
	json_decref(twice);
	process_rows_finish(&table);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "processes that use most have series, within the limit", most_first);
	ROWS_ADD_ONE(&tests, "a series passes to a process that uses much more, without flapping", rows_pass_on_rarely);
	ROWS_ADD_ONE(&tests, "ended process: reported with its last energy until it was scraped", shown_until_scraped);
	ROWS_ADD_ONE(&tests, "long idle process: no series; occasionally active one: keeps it", who_rests_has_no_row);
	ROWS_ADD_ONE(&tests, "fork storm: a bounded number of series a minute", a_fork_storm);
	ROWS_ADD_ONE(&tests, "process that renames itself: no new series each time", one_that_renames_itself);
	ROWS_ADD_ONE(&tests, "restart: the same process continues its counter, another with its pid does not",
		over_a_restart);
	ROWS_ADD_ONE(&tests, "untrusted state file: bounded and harmless", a_file_of_anybody);
	return rows_run(&tests, "pids");
}
