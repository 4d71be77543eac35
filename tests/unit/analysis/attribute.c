#include "builder.h"

/* 10 s at 10 Hz at 100 W. CPU: in cores of 4. */
static const struct cpu_row {
	const char *teaches;
	double main, descendants, wattle, busy;
	double target_w, others_w, wattle_w, idle_w, unattributed_w;
} cpu_rows[] = {
	{"only the target is busy: gets all energy", 1, 1, 0, 2, 100, 0, 0, 0, 0},
	{"a quarter of the busy time is the target's: gets a quarter", 0.5, 0, 0, 2, 25, 75, 0, 0, 0},
	{"main process and descendants count as one target", 0.5, 0.5, 0, 2, 50, 50, 0, 0, 0},
	{"wattle's own CPU time: measurement overhead", 1, 0, 0.5, 2, 50, 25, 25, 0, 0},
	{"no program busy: idle", 0, 0, 0, 0, 0, 0, 0, 100, 0},
	{"clocks finer than the machine's ticks: shares never exceed the total", 2, 1, 1, 2, 75, 0, 25, 0, 0},
	{"/proc/stat unknown: unattributed", 1, 0, 0, NAN, 0, 0, 0, 0, 100},
};

// Without an idle power, and without an interval in which no process used the device, its idle energy is unknown, not
// 0.
static double idle_or_unknown(double idle_j)
{
	return idle_j > 0 ? idle_j : (double)NAN;
}

static void check_cpu(void **state)
{
	const struct cpu_row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, row->main, row->descendants, row->wattle, isnan(row->busy) ? 0 : row->busy);
	if (isnan(row->busy))
		build_gauge(&run, RUN_SYSTEM_BUSY, VALUE_MISSING);
	build_metered(&run, "package-0", DOMAIN_PACKAGE, 100);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.ledger.target_j, row->target_w * 10);
	assert_close(findings.ledger.others_j, row->others_w * 10);
	assert_close(findings.ledger.wattle_j, row->wattle_w * 10);
	assert_close(findings.ledger.idle_j, idle_or_unknown(row->idle_w * 10));
	assert_close(findings.ledger.unattributed_j, row->unattributed_w * 10);
	assert_close(findings.self_energy_j, row->wattle_w * 10);
	findings_finish(&findings);
	build_finish(&run);
}

// The target runs in the first half, others in the second, at twice the power: 10 W and 20 W over 5 s each.
static void shares_follow_time(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, 0, 0, 0, 1);
	struct run_device *device = build_metered(&run, "package-0", DOMAIN_PACKAGE, 10);
	build_stamps(device);
	for (size_t i = 0; i < run.n; i++) {
		run.values[RUN_MAIN_CPU][i] = (int64_t)(i < 50 ? i : 50) * 100 * NS_PER_MS;
		device->values[DEVICE_ENERGY][i] += i > 50 ? (int64_t)(i - 50) * 1000000 : 0;
	}
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.ledger.target_j, 50);
	assert_close(findings.ledger.others_j, 100);
	findings_finish(&findings);
	build_finish(&run);
}

// At 1 kHz /proc/stat is read every 10 ms only; the samples between have no value.
static void fast_sampling(void **state)
{
	struct run run;
	struct findings findings;
	build_run(&run, 1001);
	build_segment(&run, 0, 1);
	build_times(&run, 0, 1001, 0, 0.001);
	build_cpu(&run, 0.5, 0, 0, 2);
	for (size_t i = 0; i < run.n; i++)
		if (i % 10 != 0)
			run.values[RUN_SYSTEM_BUSY][i] = run.values[RUN_SYSTEM_IDLE][i] = VALUE_MISSING;
	build_stamps(build_metered(&run, "package-0", DOMAIN_PACKAGE, 100));
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.ledger.target_j, 25);
	assert_close(findings.usage.cpu_system.max_sum, 200);
	assert_close(findings.usage.cpu_main.mean_sum, 50);
	findings_finish(&findings);
	build_finish(&run);
}

// CPU counters known from 2 s to 8 s only: these shares are used for the time before and after.
static void nearest_window(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, 1, 0, 0, 4);
	for (size_t i = 0; i < run.n; i++)
		if (i < 20 || i > 80)
			run.values[RUN_SYSTEM_BUSY][i] = VALUE_MISSING;
	build_metered(&run, "package-0", DOMAIN_PACKAGE, 100);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.ledger.target_j, 250);
	assert_close(findings.ledger.others_j, 750);
	findings_finish(&findings);
	build_finish(&run);
}

/* 5 s idle at 40 W, then 5 s of the target at 100 W. */
static void active(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, 0, 0, 0, 0);
	struct run_device *device = build_metered(&run, "package-0", DOMAIN_PACKAGE, 40);
	build_stamps(device);
	for (size_t i = 51; i < run.n; i++) {
		run.values[RUN_MAIN_CPU][i] = (int64_t)(i - 50) * 100 * NS_PER_MS;
		run.values[RUN_SYSTEM_BUSY][i] = run.values[RUN_MAIN_CPU][i];
		run.values[RUN_SYSTEM_IDLE][i] -= run.values[RUN_MAIN_CPU][i];
		device->values[DEVICE_ENERGY][i] += (int64_t)(i - 50) * 6000000;
	}
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.ledger.target_j, 500);
	assert_string_equal(findings.domains[0].attribution, "cpu time");
	findings_finish(&findings);
	build_fact(&run, "attribution", "active");
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.ledger.target_j, 300);
	assert_close(findings.ledger.idle_j, 400);
	assert_string_equal(findings.domains[0].attribution, "cpu time above idle power seen in this run");
	findings_finish(&findings);
	build_finish(&run);
}

/* A stored idle baseline is subtracted, whatever the run itself measured: 100 W, of which 40 W are idle, and a
 * quarter of the rest is the target's. */
static const struct baseline_row {
	const char *teaches;
	enum domain_kind kind;
	double idle_w;
	const char *date;
	double target_j, others_j, idle_j;
	const char *attribution;
} baseline_rows[] = {
	{"stored baseline: named with its date", DOMAIN_PACKAGE, 40, "2026-11-21T10:00:00Z", 150, 450, 400,
		"cpu time above idle power measured 2026-11-21"},
	{"stored baseline of a GPU", DOMAIN_GPU, 40, "2026-11-21T10:00:00Z", 150, 450, 400,
		"sm time above idle power measured 2026-11-21"},
	{"DRAM's too", DOMAIN_DRAM, 40, "2026-11-21T10:00:00Z", 150, 450, 400,
		"rss above idle power measured 2026-11-21"},
	{"baseline above the current power: all energy is idle", DOMAIN_PACKAGE, 120, "", 0, 0, 1000,
		"cpu time above idle power measured"},
	{"baseline of 0: not used", DOMAIN_PACKAGE, 0, "", 250, 750, 0, "cpu time, idle power unknown"},
	{"no baseline: not used", DOMAIN_GPU, NAN, "", 250, 750, 0, "sm time, idle power unknown"},
};

static void check_baseline(void **state)
{
	const struct baseline_row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, 0.5, 0, 0, 2);
	build_gauge(&run, RUN_SYSTEM_MEMORY, 4000000000);
	build_gauge(&run, RUN_MAIN_RSS, 1000000000);
	build_gauge(&run, RUN_DESCENDANTS_RSS, 0);
	build_fact(&run, "attribution", "active");
	struct run_device *device = build_metered(&run, "domain", row->kind, 100);
	build_stamps(device);
	for (size_t i = 0; i < run.n && row->kind == DOMAIN_GPU; i++) {
		device->values[DEVICE_TARGET_UTILIZATION][i] = 20;
		device->values[DEVICE_OTHERS_UTILIZATION][i] = 60;
	}
	device->idle_w = row->idle_w;
	text_copy(device->idle_date, sizeof(device->idle_date), row->date);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.ledger.target_j, row->target_j);
	assert_close(findings.ledger.others_j, row->others_j);
	assert_close(findings.ledger.idle_j, idle_or_unknown(row->idle_j));
	assert_string_equal(findings.domains[0].attribution, row->attribution);
	findings_finish(&findings);
	build_finish(&run);
}

// wattle holds 40 MB of the 4,000 MB in use, and gets that share.
static void wattle_holds_memory(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_gauge(&run, RUN_SYSTEM_MEMORY, 4000000000);
	build_gauge(&run, RUN_MAIN_RSS, 1000000000);
	build_gauge(&run, RUN_DESCENDANTS_RSS, 0);
	build_gauge(&run, RUN_SELF_RSS, 40000000);
	build_metered(&run, "dram-0", DOMAIN_DRAM, 10);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.ledger.target_j, 25);
	assert_close(findings.ledger.wattle_j, 1);
	assert_close(findings.ledger.others_j, 74);
	findings_finish(&findings);
	build_finish(&run);
}

/* One machine, recorded by two runs at once: A uses 1 core, B 2, another program 0.5; each recorder needs a
 * hundredth. Each run sees the other, and its recorder, as another program. */
static void two_runs(void **state)
{
	static const double cores[2] = {1, 2};
	const double busy = 3.52;
	double found_j = 0;
	for (int i = 0; i < 2; i++) {
		struct run run;
		struct findings findings;
		build_simple(&run, 101);
		build_cpu(&run, cores[i], 0, 0.01, busy);
		build_metered(&run, "package-0", DOMAIN_PACKAGE, 100);
		assert_int_equal(findings_make(&run, &findings), 0);
		assert_close(findings.ledger.target_j, 1000 * cores[i] / busy);
		assert_close(findings.ledger.others_j, 1000 * (busy - cores[i] - 0.01) / busy);
		assert_close(findings.total_j, 1000);
		found_j += findings.ledger.target_j + findings.ledger.wattle_j;
		findings_finish(&findings);
		build_finish(&run);
	}
	assert_close(found_j, 1000 * (1 + 2 + 0.02) / busy); // the rest belongs to the third program
}

/* Error of the target's share of 1,000 J that a counter measures exactly. */
static const struct uncertainty_row {
	const char *teaches;
	enum domain_kind kind;
	double target, others; // cores, SM percent or GB
	double error_j;
} uncertainty_rows[] = {
	{"alone on the CPU: no error", DOMAIN_PACKAGE, 1, 0, 0},
	{"half of the CPU time: error of 11 % of the energy, times the others' share of 50 %", DOMAIN_PACKAGE, 1, 1,
		0.11 * 500 * 0.5},
	{"1 % of the CPU time: error of 11 % of the energy, times the others' share of 99 %", DOMAIN_PACKAGE, 0.02, 1.98,
		0.11 * 10 * 0.99},
	{"alone on the GPU: no error", DOMAIN_GPU, 70, 0, 0},
	{"half of the SM time", DOMAIN_GPU, 40, 40, 0.25 * 500 * 0.5},
	{"a quarter of the memory in use, by RSS", DOMAIN_DRAM, 1, 3, 0.6 * 250 * 0.75},
};

static void check_uncertainty(void **state)
{
	const struct uncertainty_row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, row->target, 0, 0, row->target + row->others);
	build_gauge(&run, RUN_SYSTEM_MEMORY, llround((row->target + row->others) * 1e9));
	build_gauge(&run, RUN_MAIN_RSS, llround(row->target * 1e9));
	build_gauge(&run, RUN_DESCENDANTS_RSS, 0);
	struct run_device *device = build_metered(&run, "domain", row->kind, 100);
	build_stamps(device);
	for (size_t i = 0; i < run.n && row->kind == DOMAIN_GPU; i++) {
		device->values[DEVICE_TARGET_UTILIZATION][i] = llround(row->target);
		device->values[DEVICE_OTHERS_UTILIZATION][i] = llround(row->others);
	}
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.error_j, 0);
	assert_close(findings.domains[0].target_error_j, row->error_j);
	assert_close(findings.target_error_j, row->error_j);
	findings_finish(&findings);
	build_finish(&run);
}

/* DRAM: MB of the target by RSS, another value from 4 s on, and by PSS, read once at the start (-1: never); of 4,000
 * MB in use. */
static const struct memory_row {
	const char *teaches;
	int64_t rss_mb, later_rss_mb, pss_mb;
	double target_share;
	const char *attribution;
} memory_rows[] = {
	{"PSS read once: valid while RSS is constant", 1000, 1000, 400, 0.1, "pss"},
	{"RSS changed by more than a tenth: PSS is stale for the last 6 s", 400, 2000, 400, 0.34, "rss"},
	{"PSS never read: RSS is used", 1000, 1000, -1, 0.25, "rss"},
};

static void check_memory(void **state)
{
	const struct memory_row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_gauge(&run, RUN_SYSTEM_MEMORY, 4000000000);
	build_gauge(&run, RUN_DESCENDANTS_RSS, 0);
	for (size_t i = 0; i < run.n; i++)
		run.values[RUN_MAIN_RSS][i] = (i <= 40 ? row->rss_mb : row->later_rss_mb) * 1000000;
	if (row->pss_mb >= 0) {
		run.values[RUN_MAIN_PSS][0] = row->pss_mb * 1000000;
		run.values[RUN_DESCENDANTS_PSS][0] = 0;
	}
	build_metered(&run, "dram-0", DOMAIN_DRAM, 10);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.ledger.target_j, 100 * row->target_share);
	assert_close(findings.ledger.others_j, 100 * (1 - row->target_share));
	assert_string_equal(findings.domains[0].attribution, row->attribution);
	findings_finish(&findings);
	build_finish(&run);
}

/* GPU: -1 is unknown. */
static const struct gpu_row {
	const char *teaches;
	int64_t utilization, target_sm, others_sm, target_mb, others_mb, target_processes, others_processes;
	double target_share, others_share, idle_share;
	const char *attribution;
	int64_t target_mig, others_mig; // ppm; 0: unknown
} gpu_rows[] = {
	{"GPU: divided by SM time", 90, 60, 20, 1, 9, 1, 1, 0.75, 0.25, 0, "sm time"},
	{"GPU without SM time: divided by memory", 90, -1, -1, 1, 9, 1, 1, 0.1, 0.9, 0, "gpu memory"},
	{"GPU without either: a single user gets all", 90, -1, -1, -1, -1, 2, 0, 1, 0, 0, "exclusive"},
	{"GPU used by others only: other processes", 90, -1, -1, -1, -1, 0, 1, 0, 1, 0, "exclusive"},
	{"GPU used by both, nothing else known: unattributed", 90, -1, -1, -1, -1, 1, 1, 0, 0, 0, "none"},
	{"GPU without users: idle", -1, -1, -1, -1, -1, 0, 0, 0, 0, 1, "idle"},
	{"GPU busy without visible users, as in a container: unattributed", 90, -1, -1, 0, 0, 0, 0, 0, 0,
		0, "none"},
	{"GPU without a running kernel: idle", 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, "idle"},
	{"GPU, nothing known: unattributed", -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, "none"},
	{"MIG: three of eight slices are the target's, four others', one is idle", -1, -1, -1, 1, 9, 1, 1, 0.375, 0.5,
		0.125, "mig slices", 375000, 500000},
	{"MIG: alone in its instance, the rest is idle", -1, -1, -1, 1, -1, 1, -1, 0.25, 0, 0.75, "mig slices", 250000,
		-1},
	{"MIG: both in one instance of all slices", -1, -1, -1, 1, 1, 1, 1, 0.5, 0.5, 0, "mig slices", 1000000,
		1000000},
};

static void check_gpu(void **state)
{
	const struct gpu_row *row = *state;
	const struct {
		enum device_metric metric;
		int64_t value;
	} values[] = {{DEVICE_UTILIZATION, row->utilization}, {DEVICE_TARGET_UTILIZATION, row->target_sm},
		{DEVICE_OTHERS_UTILIZATION, row->others_sm}, {DEVICE_TARGET_MEMORY, row->target_mb},
		{DEVICE_OTHERS_MEMORY, row->others_mb}, {DEVICE_TARGET_PROCESSES, row->target_processes},
		{DEVICE_OTHERS_PROCESSES, row->others_processes},
		{DEVICE_TARGET_MIG_SHARE, row->target_mig != 0 ? row->target_mig : -1},
		{DEVICE_OTHERS_MIG_SHARE, row->others_mig != 0 ? row->others_mig : -1}};
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	struct run_device *gpu = build_metered(&run, "gpu-0", DOMAIN_GPU, 100);
	for (size_t k = 0; k < ARRAY_SIZE(values); k++)
		for (size_t i = 0; i < run.n; i++)
			gpu->values[values[k].metric][i] = values[k].value >= 0 ? values[k].value : VALUE_MISSING;
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.ledger.target_j, 1000 * row->target_share);
	assert_close(findings.ledger.others_j, 1000 * row->others_share);
	assert_close(findings.ledger.idle_j, idle_or_unknown(1000 * row->idle_share));
	assert_close(findings.ledger.unattributed_j,
		1000 * (1 - row->target_share - row->others_share - row->idle_share));
	assert_string_equal(findings.domains[0].attribution, row->attribution);
	findings_finish(&findings);
	build_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, cpu_rows, check_cpu);
	ROWS_ADD(&tests, memory_rows, check_memory);
	ROWS_ADD(&tests, gpu_rows, check_gpu);
	ROWS_ADD(&tests, baseline_rows, check_baseline);
	ROWS_ADD(&tests, uncertainty_rows, check_uncertainty);
	ROWS_ADD_ONE(&tests, "wattle gets the share of the memory that it holds", wattle_holds_memory);
	ROWS_ADD_ONE(&tests, "two runs at once: each is another program to the other", two_runs);
	ROWS_ADD_ONE(&tests, "each window has its own shares", shares_follow_time);
	ROWS_ADD_ONE(&tests, "samples without /proc/stat end no window", fast_sampling);
	ROWS_ADD_ONE(&tests, "energy outside the known windows: shares of the nearest one", nearest_window);
	ROWS_ADD_ONE(&tests, "attribution active: idle power is subtracted first", active);
	return rows_run(&tests, "attribute");
}
