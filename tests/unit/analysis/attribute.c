#include "builder.h"

#include "analysis/ledger.h"

/* 10 s at 10 Hz under 100 W. CPU: in cores of 4. */
static const struct cpu_row {
	const char *teaches;
	double main, descendants, wattle, busy;
	double target_w, others_w, wattle_w, idle_w, unattributed_w;
} cpu_rows[] = {
	{"the target alone is busy: all is its", 1, 1, 0, 2, 100, 0, 0, 0, 0},
	{"a quarter of the busy time is the target's", 0.5, 0, 0, 2, 25, 75, 0, 0, 0},
	{"main and descendants are one target", 0.5, 0.5, 0, 2, 50, 50, 0, 0, 0},
	{"wattle pays for itself", 1, 0, 0.5, 2, 50, 25, 25, 0, 0},
	{"nobody busy: idle", 0, 0, 0, 0, 0, 0, 0, 100, 0},
	{"finer clocks than the machine's ticks: never more than all", 2, 1, 1, 2, 75, 0, 25, 0, 0},
	{"/proc/stat unknown: unattributed", 1, 0, 0, NAN, 0, 0, 0, 0, 100},
};

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
	assert_close(findings.ledger.idle_j, row->idle_w * 10);
	assert_close(findings.ledger.unattributed_j, row->unattributed_w * 10);
	assert_close(findings.self_energy_j, row->wattle_w * 10);
	findings_finish(&findings);
	build_finish(&run);
}

// The target works in the first half, others in the second, at twice the power: 10 W and 20 W over 5 s each.
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

// At 1 kHz /proc/stat is read each 10 ms only; the samples between have no value.
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

// CPU counters known from 2 s to 8 s only: the shares there speak for the time before and after.
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

/* DRAM: MB of the target by RSS, another figure from 4 s on, and by PSS, read once at the start (-1: never); of 4,000
 * MB in use. */
static const struct memory_row {
	const char *teaches;
	int64_t rss_mb, later_rss_mb, pss_mb;
	double target_share;
	const char *attribution;
} memory_rows[] = {
	{"PSS read once still holds while RSS does", 1000, 1000, 400, 0.1, "pss"},
	{"RSS has moved by more than a tenth: PSS is stale for the last 6 s", 400, 2000, 400, 0.34, "rss"},
	{"PSS never read: RSS", 1000, 1000, -1, 0.25, "rss"},
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
} gpu_rows[] = {
	{"SM time divides", 90, 60, 20, 1, 9, 1, 1, 0.75, 0.25, 0, "sm time"},
	{"without SM time, memory divides", 90, -1, -1, 1, 9, 1, 1, 0.1, 0.9, 0, "gpu memory"},
	{"without both, who is alone has it all", 90, -1, -1, -1, -1, 2, 0, 1, 0, 0, "exclusive"},
	{"only others are there: theirs", 90, -1, -1, -1, -1, 0, 1, 0, 1, 0, "exclusive"},
	{"both there and nothing else known: unattributed", 90, -1, -1, -1, -1, 1, 1, 0, 0, 0, "none"},
	{"nobody there: idle", -1, -1, -1, -1, -1, 0, 0, 0, 0, 1, "idle"},
	{"no kernel ran: idle", 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, "idle"},
	{"nothing known: unattributed", -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, "none"},
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
		{DEVICE_OTHERS_PROCESSES, row->others_processes}};
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
	assert_close(findings.ledger.idle_j, 1000 * row->idle_share);
	assert_close(findings.ledger.unattributed_j,
		1000 * (1 - row->target_share - row->others_share - row->idle_share));
	assert_string_equal(findings.domains[0].attribution, row->attribution);
	findings_finish(&findings);
	build_finish(&run);
}

/* Histories at random: whatever is known or not, each joule stands in one row. */

static uint64_t next_random(uint64_t *state) // xorshift64*
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static double uniform(uint64_t *state)
{
	return (double)(next_random(state) >> 11) / 9007199254740992.0;
}

static void random_counter(int64_t *values, size_t n, double mean_step, double missing, uint64_t *state)
{
	double value = 0;
	for (size_t i = 0; i < n; i++) {
		value += uniform(state) < 0.2 ? 0 : mean_step * 2 * uniform(state);
		values[i] = uniform(state) < missing ? VALUE_MISSING : (int64_t)value;
	}
}

static void random_gauge(int64_t *values, size_t n, double most, double missing, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		values[i] = uniform(state) < missing ? VALUE_MISSING : (int64_t)(most * uniform(state));
}

static void random_times(struct run *run, uint64_t *state)
{
	size_t n_segments = 1 + next_random(state) % 3, at = 0;
	double t_s = 0;
	for (size_t s = 0; s < n_segments; s++) {
		size_t last = s + 1 == n_segments ? run->n : at + run->n / n_segments;
		double start_s = t_s;
		for (; at < last; at++) {
			run->t_ns[at] = at_s(t_s);
			t_s += uniform(state) < 0.02 ? 3 * uniform(state) : 0.001 + 0.2 * uniform(state);
		}
		build_segment(run, start_s + 0.001, t_s);
		t_s += 10;
	}
}

static void random_run(struct run *run, uint64_t *state)
{
	static const enum run_metric counters[] = {RUN_MAIN_CPU, RUN_DESCENDANTS_CPU, RUN_SELF_CPU, RUN_SYSTEM_BUSY,
		RUN_SYSTEM_IDLE};
	static const enum domain_kind kinds[] = {DOMAIN_PACKAGE, DOMAIN_DRAM, DOMAIN_GPU, DOMAIN_CORE, DOMAIN_PSYS};
	double missing = uniform(state) < 0.3 ? uniform(state) : 0.02;
	build_run(run, 1 + next_random(state) % 60);
	random_times(run, state);
	if (uniform(state) < 0.5)
		build_fact(run, "attribution", "active");
	for (size_t k = 0; k < ARRAY_SIZE(counters); k++)
		random_counter(run->values[counters[k]], run->n, 1e8 * uniform(state), missing, state);
	for (enum run_metric m = RUN_SYSTEM_MEMORY; m <= RUN_DESCENDANTS_PSS; m++)
		random_gauge(run->values[m], run->n, 1e10, missing, state);
	for (size_t d = 0; d < ARRAY_SIZE(kinds); d++) {
		char name[16];
		snprintf(name, sizeof(name), "domain-%zu", d);
		struct run_device *device = build_device(run, name, kinds[d]);
		device->provenance = (enum provenance)(next_random(state) % PROVENANCE_KINDS);
		if (uniform(state) < 0.6)
			random_counter(device->values[DEVICE_ENERGY], run->n, 1e7, missing, state);
		random_gauge(device->values[DEVICE_POWER], run->n, 1e5, missing, state);
		for (enum device_metric m = DEVICE_UTILIZATION; m < DEVICE_COUNT; m++)
			random_gauge(device->values[m], run->n, 3, missing, state);
	}
}

static void assert_closes(const struct ledger *ledger, double energy_j)
{
	assert_close(ledger_sum(ledger), energy_j);
	const double parts[] = {ledger->target_j, ledger->others_j, ledger->wattle_j, ledger->idle_j,
		ledger->unattributed_j};
	for (size_t i = 0; i < ARRAY_SIZE(parts) && !isnan(energy_j); i++)
		assert_true(parts[i] >= 0);
}

static void ledger_closes(void **state)
{
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15);
		struct run run;
		struct findings findings;
		random_run(&run, &random);
		assert_int_equal(findings_make(&run, &findings), 0);
		assert_closes(&findings.ledger, findings.total_j);
		double sum_j = 0;
		for (size_t i = 0; i < findings.n_domains; i++) {
			const struct domain_finding *d = &findings.domains[i];
			assert_closes(&d->ledger, d->energy_j);
			sum_j += d->in_total && !isnan(d->energy_j) ? d->energy_j : 0;
			assert_true(isnan(d->energy_j) || d->error_j >= 0);
		}
		if (!isnan(findings.total_j))
			assert_close(findings.total_j, sum_j);
		findings_finish(&findings);
		build_finish(&run);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, cpu_rows, check_cpu);
	ROWS_ADD(&tests, memory_rows, check_memory);
	ROWS_ADD(&tests, gpu_rows, check_gpu);
	ROWS_ADD_ONE(&tests, "each window has shares of its own", shares_follow_time);
	ROWS_ADD_ONE(&tests, "samples without /proc/stat end no window", fast_sampling);
	ROWS_ADD_ONE(&tests, "energy outside the known windows goes by the nearest one", nearest_window);
	ROWS_ADD_ONE(&tests, "active: the power of the idle machine is taken off first", active);
	ROWS_ADD_ONE(&tests, "1,000 random histories: every ledger adds up to 1e-9", ledger_closes);
	return rows_run(&tests, "attribute");
}
