/* The processes that are listed, and their order. */
#include "live/session.h"

#include "base/util.h"
#include "rows.h"

#include <stdio.h>

enum { PROCESSES = 7, WORDS = 256 };

// 1 ── 10 ── 11 (target) └─ 20 ── 21, 22; 30 has a parent that is not listed
static const struct monitor_process machine[PROCESSES] = {
	{.pid = 1,
		.ppid = 0,
		.command = "init",
		.power_w = 0,
		.cpu_cores = 0,
		.rss_bytes = 100,
		.gpu_percent = (double)NAN,
		.gpu_memory_bytes = VALUE_MISSING,
		.energy_j = 0},
	{.pid = 10,
		.ppid = 1,
		.command = "Train.py",
		.power_w = 5,
		.cpu_cores = 1,
		.rss_bytes = 900,
		.gpu_percent = 80,
		.gpu_memory_bytes = 5000,
		.energy_j = 50,
		.is_target = true},
	{.pid = 11,
		.ppid = 10,
		.command = "loader",
		.power_w = 2,
		.cpu_cores = 0.5,
		.rss_bytes = 300,
		.gpu_percent = (double)NAN,
		.gpu_memory_bytes = VALUE_MISSING,
		.energy_j = 90,
		.is_target = true},
	{.pid = 20,
		.ppid = 1,
		.command = "make",
		.power_w = 0.5,
		.cpu_cores = 0.1,
		.rss_bytes = 50,
		.gpu_percent = (double)NAN,
		.gpu_memory_bytes = VALUE_MISSING,
		.energy_j = 1,
		.uid = 7},
	{.pid = 21,
		.ppid = 20,
		.command = "cc1",
		.power_w = 6,
		.cpu_cores = 1.2,
		.rss_bytes = 700,
		.gpu_percent = (double)NAN,
		.gpu_memory_bytes = VALUE_MISSING,
		.energy_j = 3},
	{.pid = 22,
		.ppid = 20,
		.command = "cc1 second",
		.power_w = (double)NAN,
		.cpu_cores = (double)NAN,
		.rss_bytes = VALUE_MISSING,
		.gpu_percent = (double)NAN,
		.gpu_memory_bytes = VALUE_MISSING,
		.energy_j = (double)NAN},
	{.pid = 30,
		.ppid = 29,
		.command = "orphan",
		.power_w = 1,
		.cpu_cores = 0.2,
		.rss_bytes = 10,
		.gpu_percent = 10,
		.gpu_memory_bytes = 100,
		.energy_j = 2},
};

static const char *name_of(void *data, uid_t uid)
{
	return uid == 7 ? "alice" : uid == 0 ? "root" : NULL;
}

static const struct order_row {
	const char *teaches;
	struct live_ui ui;
	const char *pids;
} order_rows[] = {
	{"by power: highest first, unknown last", {.sort = SORT_POWER}, "21 10 11 30 20 1 22"},
	{"in reverse: unknown last as well", {.sort = SORT_POWER, .reverse = true}, "1 20 30 11 10 21 22"},
	{"by energy", {.sort = SORT_ENERGY}, "11 10 21 30 20 1 22"},
	{"by CPU", {.sort = SORT_CPU}, "21 10 11 30 20 1 22"},
	{"by memory", {.sort = SORT_MEMORY}, "10 21 11 1 20 30 22"},
	{"by GPU: processes without a GPU last, more memory first", {.sort = SORT_GPU}, "10 30 21 11 1 20 22"},
	{"by GPU memory", {.sort = SORT_GPU_MEMORY}, "10 30 21 11 1 20 22"},
	{"by process id, from the smallest", {.sort = SORT_PID}, "1 10 11 20 21 22 30"},
	{"by process id in reverse", {.sort = SORT_PID, .reverse = true}, "30 22 21 20 11 10 1"},
	{"target only", {.only_target = true, .has_target = true}, "10 11"},
	{"no target: all processes", {.only_target = true}, "21 10 11 30 20 1 22"},
	{"filter ignores case", {.filter = "train"}, "10"},
	{"filter matches users", {.filter = "ALICE"}, "20"},
	{"filter matches process ids", {.filter = "22"}, "22"},
	{"filter without a match: empty list", {.filter = "nothing"}, ""},
	{"tree: branches ordered by their sum", {.tree = true}, "1 10. 11.. 20. 21.. 22.. 30"},
	{"tree by process id", {.tree = true, .sort = SORT_PID}, "1 10. 11.. 20. 21.. 22.. 30"},
	{"tree by memory", {.tree = true, .sort = SORT_MEMORY}, "1 10. 11.. 20. 21.. 22.. 30"},
	{"tree in reverse", {.tree = true, .reverse = true}, "30 1 20. 21.. 22.. 10. 11.."},
	{"tree of the processes that match the filter", {.tree = true, .filter = "cc1"}, "21 22"},
};

static void tell(const struct live_rows *rows, char *out)
{
	size_t n = 0;
	out[0] = '\0';
	for (size_t i = 0; i < rows->n; i++) {
		n += (size_t)snprintf(out + n, WORDS - n, "%s%d", i > 0 ? " " : "", rows->rows[i].process->pid);
		for (int d = 0; d < rows->rows[i].depth; d++)
			n += (size_t)snprintf(out + n, WORDS - n, ".");
	}
}

static void check_order(void **state)
{
	const struct order_row *row = *state;
	struct monitor_process processes[PROCESSES];
	memcpy(processes, machine, sizeof(machine));
	const struct monitor_sample now = {.processes = processes, .n_processes = PROCESSES};
	const struct user_names users = {.name_of = name_of};
	struct live_rows rows = {0};
	char words[WORDS];
	assert_int_equal(live_rows_make(&rows, &now, &row->ui, &users), 0);
	tell(&rows, words);
	assert_string_equal(words, row->pids);
	live_rows_finish(&rows);
}

static void a_circle_of_parents_ends(void **state)
{
	struct monitor_process circle[] = {{.pid = 5, .ppid = 6}, {.pid = 6, .ppid = 7}, {.pid = 7, .ppid = 5},
		{.pid = 8, .ppid = 8}};
	const struct monitor_sample now = {.processes = circle, .n_processes = ARRAY_SIZE(circle)};
	const struct live_ui ui = {.tree = true};
	struct live_rows rows = {0};
	assert_int_equal(live_rows_make(&rows, &now, &ui, NULL), 0);
	assert_int_equal(rows.n, 4);
	live_rows_finish(&rows);
}

static void a_long_chain_is_all_there(void **state)
{
	enum { N = 3000 };
	struct monitor_process *chain = calloc(N, sizeof(*chain));
	for (int i = 0; i < N; i++)
		chain[i] = (struct monitor_process){.pid = i + 1, .ppid = i, .power_w = 1};
	const struct monitor_sample now = {.processes = chain, .n_processes = N};
	const struct live_ui ui = {.tree = true};
	struct live_rows rows = {0};
	assert_int_equal(live_rows_make(&rows, &now, &ui, NULL), 0);
	assert_int_equal(rows.n, N);
	for (size_t i = 0; i < rows.n; i++)
		assert_true(rows.rows[i].depth <= TREE_DEPTH_MAX);
	live_rows_finish(&rows);
	free(chain);
}

static const struct select_row {
	const char *teaches;
	struct live_ui before;
	int height, row, first;
} select_rows[] = {
	{"nothing is selected at first", {.first = 0}, 3, -1, 0},
	{"down selects the first visible process", {.moves = 1}, 3, 0, 0},
	{"up selects the last visible process", {.moves = -1}, 3, 2, 0},
	{"the list scrolls with the selection", {.selected = 11, .moves = 1}, 3, 3, 1},
	{"a page down", {.selected = 21, .pages = 1}, 3, 2, 0},
	{"the end", {.selected = 21, .moves = 1 << 24}, 3, 6, 4},
	{"the beginning", {.selected = 1, .first = 4, .moves = -(1 << 24)}, 3, 0, 0},
	{"the selection follows its process", {.selected = 20, .first = 0}, 3, 4, 2},
	{"ended process: selection is cleared", {.selected = 4711, .first = 2}, 3, -1, 2},
	{"list that became short: scrolls back", {.first = 100}, 3, -1, 4},
	{"list that fits: not scrolled", {.first = 2}, 50, -1, 0},
	{"no row visible", {.selected = 20, .moves = 1}, 0, -1, 0},
};

static void check_select(void **state)
{
	const struct select_row *row = *state;
	struct monitor_process processes[PROCESSES];
	memcpy(processes, machine, sizeof(machine));
	const struct monitor_sample now = {.processes = processes, .n_processes = PROCESSES};
	struct live_rows rows = {0};
	struct live_ui ui = row->before;
	assert_int_equal(live_rows_make(&rows, &now, &ui, NULL), 0);
	assert_int_equal(live_rows_select(&rows, &ui, row->height), row->row);
	assert_int_equal(ui.first, row->first);
	assert_int_equal(ui.moves, 0);
	live_rows_finish(&rows);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, order_rows, check_order);
	ROWS_ADD_ONE(&tests, "circular parents, as reused ids may cause: list ends", a_circle_of_parents_ends);
	ROWS_ADD_ONE(&tests, "chain of 3000 processes: all are listed", a_long_chain_is_all_there);
	ROWS_ADD(&tests, select_rows, check_select);
	return rows_run(&tests, "rows");
}
