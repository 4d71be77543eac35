#include "monitor/monitor.h"

#include "machine_fixture.h"

#include <errno.h>

// After a second in which the package used 100 J and the machine was busy on one core.
static void begin_busy(struct made_machine *m, pid_t target)
{
	made_begin(m);
	made_energy(m, "intel-rapl:0", "package-0", 5000000);
	made_process(m, &(struct made_process){1, 0, "init", .cpu_ms = 100});
	made_process(m, &(struct made_process){50, 1, "shell", .cpu_ms = 1000, .rss_mib = 10});
	made_process(m, &(struct made_process){60, 50, "train", .cpu_ms = 2000, .rss_mib = 200});
	made_process(m, &(struct made_process){70, 1, "daemon", .cpu_ms = 300, .rss_mib = 50});
	made_open(m, target, 0);
}

static void second(struct made_machine *m)
{
	made_load(m, m->busy_ms + 1000, 500);
	made_look(m, 1000);
}

static void the_first_look_has_no_powers(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	second(&m); // monitor_open made the first sample
	assert_near(m.now->dt_s, 1);
	m.now = NULL;
	made_finish(&m);
	made_begin(&m);
	made_energy(&m, "intel-rapl:0", "package-0", 1);
	made_open(&m, 0, 0);
	assert_non_null(m.state);
	made_finish(&m);
}

static void watts_follow_cpu_time(void **state)
{
	struct made_machine m;
	begin_busy(&m, 60);
	made_energy(&m, "intel-rapl:0", "package-0", 105000000);
	made_process(&m, &(struct made_process){60, 50, "train", .cpu_ms = 2600, .rss_mib = 200});
	made_process(&m, &(struct made_process){70, 1, "daemon", .cpu_ms = 600, .rss_mib = 50});
	second(&m);
	assert_near(m.now->total_w, 100);
	assert_int_equal(m.now->total_energy_uj, 100000000);
	assert_near(m.now->busy_cores, 1);
	assert_near(made_find(&m, 60, false)->cpu_cores, 0.6);
	assert_near(made_find(&m, 60, false)->power_w, 60);
	assert_near(made_find(&m, 60, false)->energy_j, 60);
	assert_near(made_find(&m, 70, false)->power_w, 30);
	assert_near(made_find(&m, 50, false)->power_w, 0);
	// 10 of 100 W belong to no listed process: interrupts, or processes that started and ended
	assert_near(m.now->sum.target_w, 60);
	assert_near(m.now->sum.others_w, 40);
	assert_near(m.now->sum.idle_w, (double)NAN); // unknown, and attributed to the busy processes
	assert_near(m.now->domains[0].target_w, 60);
	assert_int_equal(m.now->domains[0].in_total, true);
	made_finish(&m);
}

static void watts_of_an_idle_machine_are_nobodys(void **state)
{
	struct made_machine m;
	begin_busy(&m, 60);
	made_energy(&m, "intel-rapl:0", "package-0", 15000000);
	made_look(&m, 1000);
	assert_near(m.now->total_w, 10);
	assert_near(m.now->sum.idle_w, 10);
	assert_near(m.now->sum.target_w, 0);
	assert_near(made_find(&m, 60, false)->power_w, 0);
	made_finish(&m);
}

static void memory_divides_dram(void **state)
{
	struct made_machine m;
	made_begin(&m);
	made_energy(&m, "intel-rapl:0", "package-0", 0);
	made_energy(&m, "intel-rapl:0:0", "dram", 0);
	made_process(&m, &(struct made_process){60, 1, "train", .rss_mib = 200});
	made_open(&m, 60, 0);
	made_energy(&m, "intel-rapl:0:0", "dram", 5000000);
	made_energy(&m, "intel-rapl:0", "package-0", 20000000);
	second(&m);
	assert_near(made_find(&m, 60, false)->dram_w, 2); // 200 of the 500 MiB in use
	assert_near(m.now->sum.target_w, 2);
	assert_near(m.now->total_w, 25);
	made_finish(&m);
}

static void shared_pages_give_nobody_more_than_there_is(void **state)
{
	struct made_machine m;
	made_begin(&m);
	made_energy(&m, "intel-rapl:0", "package-0", 0);
	made_energy(&m, "intel-rapl:0:0", "dram", 0);
	made_process(&m, &(struct made_process){60, 1, "a", .rss_mib = 600});
	made_process(&m, &(struct made_process){61, 1, "b", .rss_mib = 400});
	made_open(&m, 0, 0);
	made_energy(&m, "intel-rapl:0:0", "dram", 5000000);
	made_energy(&m, "intel-rapl:0", "package-0", 1000000);
	second(&m);
	assert_near(made_find(&m, 60, false)->dram_w, 3);
	assert_near(made_find(&m, 61, false)->dram_w, 2);
	made_finish(&m);
}

/* ---- processes that start and end ---- */

static void a_child_between_two_looks_is_its_parents(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	made_energy(&m, "intel-rapl:0", "package-0", 105000000);
	made_process(&m, &(struct made_process){50, 1, "shell", .cpu_ms = 1000, .children_ms = 500, .rss_mib = 10});
	second(&m);
	assert_near(made_find(&m, 50, false)->cpu_cores, 0.5);
	assert_near(made_find(&m, 50, false)->power_w, 50);
	made_finish(&m);
}

static void what_was_counted_of_a_child_is_not_counted_again(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	made_energy(&m, "intel-rapl:0", "package-0", 105000000);
	made_end(&m, 60); // had 2000 ms at the last sample, and used 200 more
	made_process(&m, &(struct made_process){50, 1, "shell", .cpu_ms = 1000, .children_ms = 2200, .rss_mib = 10});
	second(&m);
	assert_near(made_find(&m, 50, false)->cpu_cores, 0.2);
	assert_null(made_find(&m, 60, false));
	made_finish(&m);
}

static void one_that_ended_is_shown_once(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	made_energy(&m, "intel-rapl:0", "package-0", 105000000);
	made_process(&m, &(struct made_process){60, 50, "train", .cpu_ms = 2500, .rss_mib = 200});
	second(&m);
	made_end(&m, 60);
	second(&m);
	const struct monitor_process *gone = made_find(&m, 60, true);
	assert_non_null(gone);
	assert_near(gone->energy_j, 50);
	assert_near(gone->power_w, (double)NAN);
	assert_int_equal(m.now->processes_seen, 3);
	second(&m);
	assert_null(made_find(&m, 60, true));
	made_finish(&m);
}

// The orphan ran for long and init reaps it: its time is more than the machine had in a second.
static void an_orphans_life_is_not_inits_second(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	made_energy(&m, "intel-rapl:0", "package-0", 105000000);
	made_end(&m, 50);
	made_end(&m, 60);
	made_process(&m, &(struct made_process){1, 0, "init", .cpu_ms = 100, .children_ms = 1000000});
	made_process(&m, &(struct made_process){70, 1, "daemon", .cpu_ms = 900, .rss_mib = 50});
	second(&m);
	assert_near(made_find(&m, 70, false)->power_w, 60);
	assert_near(made_find(&m, 1, false)->power_w, 40);
	made_finish(&m);
}

static void a_number_that_went_to_another_is_another(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	made_energy(&m, "intel-rapl:0", "package-0", 105000000);
	made_process(&m, &(struct made_process){60, 1, "newcomer", .cpu_ms = 100, .start_ms = 1000500});
	second(&m);
	assert_non_null(made_find(&m, 60, true));
	assert_string_equal(made_find(&m, 60, false)->command, "[newcomer]");
	assert_near(made_find(&m, 60, false)->cpu_cores, 0.1); // all of it in this second
	assert_near(made_find(&m, 60, false)->energy_j, 10);
	made_finish(&m);
}

static void one_that_was_hidden_is_not_charged_for_its_past(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	made_energy(&m, "intel-rapl:0", "package-0", 105000000);
	made_process(&m, &(struct made_process){80, 1, "old", .cpu_ms = 900000, .start_ms = 5000});
	second(&m);
	assert_near(made_find(&m, 80, false)->cpu_cores, (double)NAN);
	assert_near(made_find(&m, 80, false)->energy_j, 0);
	made_finish(&m);
}

/* ---- the target ---- */

static void the_tree_keeps_its_orphans(void **state)
{
	struct made_machine m;
	begin_busy(&m, 50);
	second(&m);
	assert_true(made_find(&m, 50, false)->is_target);
	assert_true(made_find(&m, 60, false)->is_target);
	assert_false(made_find(&m, 70, false)->is_target);
	made_process(&m, &(struct made_process){60, 1, "train", .cpu_ms = 2500}); // its parent has ended
	made_process(&m, &(struct made_process){61, 60, "worker", .start_ms = 1001500});
	made_end(&m, 50);
	second(&m);
	assert_true(m.now->target_is_gone);
	assert_true(m.now->target_is_gone);
	assert_true(made_find(&m, 60, false)->is_target);
	assert_true(made_find(&m, 61, false)->is_target);
	made_finish(&m);
}

static void another_with_the_targets_number_is_not_the_target(void **state)
{
	struct made_machine m;
	begin_busy(&m, 60);
	made_process(&m, &(struct made_process){60, 1, "impostor", .start_ms = 1000500});
	made_process(&m, &(struct made_process){61, 60, "its child", .start_ms = 1000600});
	second(&m);
	assert_true(m.now->target_is_gone);
	assert_true(m.now->target_is_gone);
	assert_false(made_find(&m, 60, false)->is_target);
	assert_false(made_find(&m, 61, false)->is_target);
	made_finish(&m);
}

static void a_zombie_has_ended(void **state)
{
	struct made_machine m;
	begin_busy(&m, 60);
	second(&m);
	assert_false(m.now->target_is_gone);
	made_process(&m, &(struct made_process){60, 50, "train", .state = 'Z', .cpu_ms = 2000});
	second(&m);
	assert_true(m.now->target_is_gone);
	assert_true(m.now->target_is_gone);
	made_finish(&m);
}

static void no_such_process(void **state)
{
	struct made_machine m;
	made_begin(&m);
	struct wattle_error error = {0};
	const struct monitor_options options = {.env = &m.env, .pid = 4711};
	assert_int_equal(monitor_open(&options, &m.state, &error), -ENOENT);
	assert_string_equal(error.text, "there is no process 4711");
	made_finish(&m);
}

static void what_looks_is_told_apart(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	made_process(&m, &(struct made_process){getpid(), 1, "wattle", .cpu_ms = 100});
	made_energy(&m, "intel-rapl:0", "package-0", 6000000);
	second(&m);
	made_energy(&m, "intel-rapl:0", "package-0", 106000000);
	made_process(&m, &(struct made_process){getpid(), 1, "wattle", .cpu_ms = 150});
	second(&m);
	assert_true(made_find(&m, getpid(), false)->is_own);
	assert_near(m.now->sum.own_w, 5);
	assert_near(m.now->sum.others_w, 95);
	made_finish(&m);
}

// In a real /proc with a real clock: ticks of 10 ms are too coarse for so little.
static void our_own_cpu_time_is_finer_than_ticks(void **state)
{
	struct made_machine m = {0};
	struct wattle_error error = {0};
	const struct sensor_options sensors = {0};
	unsetenv("WATTLE_PROCFS");
	unsetenv("WATTLE_SYSFS");
	assert_int_equal(env_open(&m.env, NULL), 0);
	const struct monitor_options options = {.env = &m.env, .sensors = &sensors};
	assert_int_equal(monitor_open(&options, &m.state, &error), 0);
	int finer = 0;
	for (int i = 0; i < 5; i++) { // a sample itself takes some
		m.now = monitor_take_sample(m.state);
		const struct monitor_process *own = made_find(&m, getpid(), false);
		assert_non_null(own);
		assert_true(own->is_own);
		assert_true(own->cpu_cores > 0);
		finer += own->cpu_ns % (TICK_MS * NS_PER_MS) != 0;
	}
	assert_true(finer > 0);
	monitor_close(m.state);
	env_close(&m.env);
}

/* ---- others ---- */

static void without_any_meter_nothing_is_known(void **state)
{
	struct made_machine m;
	made_begin(&m);
	made_process(&m, &(struct made_process){60, 1, "train", .cpu_ms = 100, .rss_mib = 200});
	made_open(&m, 60, 0);
	made_process(&m, &(struct made_process){60, 1, "train", .cpu_ms = 600, .rss_mib = 200});
	second(&m);
	assert_near(m.now->total_w, (double)NAN);
	assert_int_equal(m.now->total_energy_uj, VALUE_MISSING);
	const double sums[] = {m.now->sum.target_w, m.now->sum.others_w, m.now->sum.own_w, m.now->sum.idle_w,
		m.now->sum.unattributed_w};
	for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
		assert_near(sums[i], (double)NAN);
	assert_near(made_find(&m, 60, false)->cpu_cores, 0.5);
	assert_near(made_find(&m, 60, false)->power_w, (double)NAN);
	assert_near(made_find(&m, 60, false)->energy_j, (double)NAN);
	made_finish(&m);
}

static void what_proc_does_not_tell_is_unknown(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	made_file(&m, "proc/70/status", "Name:\tdaemon\nUid:\t99999999999\t0\t0\t0\n");
	second(&m);
	assert_int_equal(made_find(&m, 60, false)->uid, 1000);
	assert_int_equal(made_find(&m, 70, false)->uid, (uid_t)-1);
	assert_int_equal(m.now->cores, 2);
	made_finish(&m);
	made_begin(&m);
	made_file(&m, "proc/stat", "cpu 1 2 3 4\n");
	made_open(&m, 0, 0);
	made_look(&m, 1000);
	assert_int_equal(m.now->cores, VALUE_MISSING);
	made_finish(&m);
}

// A process of unknown power ranks below any known one, however busy it is.
static void the_order_of_use_is_one_order(void **state)
{
	const double none = (double)NAN;
	const struct monitor_process in_order[] = {
		{.pid = 9, .power_w = 2, .cpu_cores = 0.1},
		{.pid = 8, .power_w = 1, .cpu_cores = 0.9},
		{.pid = 7, .power_w = none, .cpu_cores = 1.5, .rss_bytes = 1},
		{.pid = 3, .power_w = none, .cpu_cores = none, .rss_bytes = 2},
		{.pid = 4, .power_w = none, .cpu_cores = none, .rss_bytes = 2},
		{.pid = 1, .power_w = none, .cpu_cores = none, .rss_bytes = VALUE_MISSING},
	};
	for (size_t i = 0; i < ARRAY_SIZE(in_order); i++)
		for (size_t k = 0; k < ARRAY_SIZE(in_order); k++) {
			int order = monitor_compare_use(&in_order[i], &in_order[k]);
			assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
		}
}

static void the_list_may_be_short_and_sums_are_over_all(void **state)
{
	struct made_machine m;
	made_begin(&m);
	made_energy(&m, "intel-rapl:0", "package-0", 5000000);
	for (int pid = 100; pid < 400; pid++)
		made_process(&m, &(struct made_process){pid, 1, "p", .rss_mib = 1});
	made_open(&m, 0, 2);
	made_energy(&m, "intel-rapl:0", "package-0", 105000000);
	made_process(&m, &(struct made_process){300, 1, "p", .cpu_ms = 400, .rss_mib = 1});
	made_process(&m, &(struct made_process){200, 1, "p", .cpu_ms = 500, .rss_mib = 1});
	second(&m);
	assert_int_equal(m.now->n_processes, 2);
	assert_int_equal(m.now->processes[0].pid, 200);
	assert_int_equal(m.now->processes[1].pid, 300);
	assert_int_equal(m.now->processes_seen, 300);
	assert_int_equal(m.now->threads_seen, 600);
	made_finish(&m);
}

static void a_wrap_of_the_counter_is_no_fall(void **state)
{
	struct made_machine m;
	made_begin(&m);
	made_energy(&m, "intel-rapl:0", "package-0", 990000000);
	made_open(&m, 0, 0);
	made_energy(&m, "intel-rapl:0", "package-0", 39999999); // 1000000000 is the last value before 0
	second(&m);
	assert_int_equal(m.now->total_energy_uj, 50000000);
	assert_int_equal(m.now->domains[0].wraps, 1);
	made_finish(&m);
}

static void a_counter_that_goes_away_is_unknown_and_not_0(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	made_energy(&m, "intel-rapl:0", "package-0", 105000000);
	second(&m);
	tree_remove(&m.tree, "sys/class/powercap/intel-rapl:0/energy_uj");
	second(&m);
	assert_near(m.now->total_w, (double)NAN);
	assert_near(made_find(&m, 60, false)->power_w, (double)NAN);
	assert_int_equal(m.now->total_energy_uj, 100000000);
	assert_int_equal(m.now->domains[0].gaps, 1);
	made_energy(&m, "intel-rapl:0", "package-0", 205000000);
	second(&m);
	assert_int_equal(m.now->total_energy_uj, 200000000);
	assert_near(m.now->total_w, 50); // over the time since the last value, the gap included
	made_finish(&m);
}

static void a_packages_limit_is_told_while_it_is_enabled(void **state)
{
	struct made_machine m;
	made_begin(&m);
	made_energy(&m, "intel-rapl:0", "package-0", 5000000);
	made_file(&m, "sys/class/powercap/intel-rapl:0/constraint_0_name", "short_term\n");
	made_file(&m, "sys/class/powercap/intel-rapl:0/constraint_1_name", "long_term\n");
	made_file(&m, "sys/class/powercap/intel-rapl:0/constraint_1_power_limit_uw", "150000000\n");
	made_file(&m, "sys/class/powercap/intel-rapl:0/enabled", "1\n");
	made_open(&m, 0, 0);
	second(&m);
	assert_near(m.now->domains[0].cap_w, 150);
	made_file(&m, "sys/class/powercap/intel-rapl:0/constraint_1_power_limit_uw", "90000000\n");
	second(&m);
	assert_near(m.now->domains[0].cap_w, 90);
	made_file(&m, "sys/class/powercap/intel-rapl:0/enabled", "0\n");
	second(&m);
	assert_near(m.now->domains[0].cap_w, (double)NAN);
	made_finish(&m);
}

static void history_has_the_last_looks(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	for (int i = 1; i <= 10; i++) {
		made_energy(&m, "intel-rapl:0", "package-0", 5000000 + i * (i + 1) / 2 * 1000000);
		second(&m);
	}
	assert_near(monitor_history_at(&m.now->total_history_w, 0), 10);
	assert_near(monitor_history_at(&m.now->total_history_w, 7), 3);
	assert_near(monitor_history_at(&m.now->total_history_w, 8), (double)NAN);
	assert_near(monitor_history_at(&m.now->cpu_history_cores, 0), 1);
	made_finish(&m);
}

static void names_are_made_fit_to_be_shown(void **state)
{
	struct made_machine m;
	begin_busy(&m, 0);
	static const char words[] = "python3\0-c\0print('\x1b[31m')";
	made_command(&m, 60, words, sizeof(words));
	second(&m); // one sample late: between fork and exec a process has its parent's command line
	assert_string_equal(made_find(&m, 60, false)->command, "python3 -c print('?[31m')");
	assert_int_equal(made_find(&m, 60, false)->uid, 1000);
	made_finish(&m);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "power: over the time between two samples", the_first_look_has_no_powers);
	ROWS_ADD_ONE(&tests, "package power: divided by CPU time; the shares add up", watts_follow_cpu_time);
	ROWS_ADD_ONE(&tests, "idle power: attributed to no process", watts_of_an_idle_machine_are_nobodys);
	ROWS_ADD_ONE(&tests, "DRAM power: divided by resident memory", memory_divides_dram);
	ROWS_ADD_ONE(&tests, "shared pages in several RSS: the shares stay below the total",
		shared_pages_give_nobody_more_than_there_is);
	ROWS_ADD_ONE(&tests, "child never sampled: counts as its parent's", a_child_between_two_looks_is_its_parents);
	ROWS_ADD_ONE(&tests, "child sampled before: only the rest counts as its parent's",
		what_was_counted_of_a_child_is_not_counted_again);
	ROWS_ADD_ONE(&tests, "ended process: shown once more with its energy", one_that_ended_is_shown_once);
	ROWS_ADD_ONE(&tests, "reaped orphan: its lifetime does not count as init's use in one second",
		an_orphans_life_is_not_inits_second);
	ROWS_ADD_ONE(&tests, "reused pid: recognised by its start time",
		a_number_that_went_to_another_is_another);
	ROWS_ADD_ONE(&tests, "process that was hidden before: its past is not charged",
		one_that_was_hidden_is_not_charged_for_its_past);
	ROWS_ADD_ONE(&tests, "orphans stay in the target's tree", the_tree_keeps_its_orphans);
	ROWS_ADD_ONE(&tests, "new process with the target's pid: not the target",
		another_with_the_targets_number_is_not_the_target);
	ROWS_ADD_ONE(&tests, "target is a zombie: ended", a_zombie_has_ended);
	ROWS_ADD_ONE(&tests, "unknown pid: error", no_such_process);
	ROWS_ADD_ONE(&tests, "measurement overhead: a row of its own", what_looks_is_told_apart);
	ROWS_ADD_ONE(&tests, "own CPU time: finer than ticks", our_own_cpu_time_is_finer_than_ticks);
	ROWS_ADD_ONE(&tests, "no sensor: power and energy unknown, not 0",
		without_any_meter_nothing_is_known);
	ROWS_ADD_ONE(&tests, "invalid uid and unreported cores: unknown",
		what_proc_does_not_tell_is_unknown);
	ROWS_ADD_ONE(&tests, "top processes: a total order, also with unknown values", the_order_of_use_is_one_order);
	ROWS_ADD_ONE(&tests, "short list: the processes that use most", the_list_may_be_short_and_sums_are_over_all);
	ROWS_ADD_ONE(&tests, "counter wraps: energy continues", a_wrap_of_the_counter_is_no_fall);
	ROWS_ADD_ONE(&tests, "unreadable counter: unknown, not 0",
		a_counter_that_goes_away_is_unknown_and_not_0);
	ROWS_ADD_ONE(&tests, "package limit: the long-term one, while it is enabled",
		a_packages_limit_is_told_while_it_is_enabled);
	ROWS_ADD_ONE(&tests, "history: the last samples only", history_has_the_last_looks);
	ROWS_ADD_ONE(&tests, "command line: control characters become '?'", names_are_made_fit_to_be_shown);
	return rows_run(&tests, "look");
}
