#include "builder.h"

#include "analysis/energy/attribute.h"
#include "analysis/stats.h"

static const double none = NAN;

/* Windows: times of samples (ms) and the resulting windows (ms). */
static const struct window_row {
	const char *teaches;
	int64_t samples_ms[12];
	int64_t edges_ms[8]; // of the windows, ascending
} window_rows[] = {
	{"10 Hz: each sample ends a window", {0, 100, 200, 300}, {0, 100, 200, 300}},
	{"10 Hz with jitter: each sample ends a window", {0, 99, 200, 298}, {0, 99, 200, 298}},
	{"faster samples: merged up to 100 ms", {0, 25, 50, 75, 100, 125, 150, 175, 200}, {0, 100, 200}},
	{"remainder: joined to the window before it", {0, 50, 100, 150}, {0, 150}},
	{"run shorter than 100 ms: one window", {0, 3}, {0, 3}},
	{"slow sampling: windows of the interval", {0, 5000, 10000}, {0, 5000, 10000}},
};

static void check_windows(void **state)
{
	const struct window_row *row = *state;
	struct run run;
	struct windows windows;
	size_t n = 1, edges = 1;
	while (n < 12 && row->samples_ms[n] > 0)
		n++;
	while (edges < 8 && row->edges_ms[edges] > 0)
		edges++;
	build_run(&run, n);
	for (size_t i = 0; i < n; i++)
		run.t_ns[i] = build_start_ns + row->samples_ms[i] * NS_PER_MS;
	build_segment(&run, 0, (double)row->samples_ms[n - 1] / 1e3);
	build_cpu(&run, 1, 0, 0, 1);
	assert_int_equal(windows_make(&run, run.arena, &windows), 0);
	assert_int_equal(windows.n, edges - 1);
	for (size_t i = 0; i < windows.n; i++) {
		assert_int_equal(windows_at(&windows, i).begin_ns, build_start_ns + row->edges_ms[i] * NS_PER_MS);
		assert_int_equal(windows_at(&windows, i).end_ns, build_start_ns + row->edges_ms[i + 1] * NS_PER_MS);
		assert_int_equal(windows_find(&windows, windows_at(&windows, i).begin_ns), i);
	}
	assert_int_equal(windows_at(&windows, 0).from_ns, INT64_MIN);
	assert_int_equal(windows_at(&windows, windows.n - 1).to_ns, INT64_MAX);
	build_finish(&run);
}

/* Footers: figures of two segments and the result. -1: the recorder died before it was known. */
static const struct footer_row {
	const char *teaches;
	int64_t cpu_s[2], peak_mb[2], read_mb[2], self_mb[2];
	double cpu, peak_mb_expected, read_mb_expected, self_mb_expected, self_cpu;
} footer_rows[] = {
	{"two segments: sums, and the larger peak", {3, 4}, {100, 200}, {1, 2}, {8, 9}, 7, 200, 3, 9, 0.5},
	{"recorder died: the last sample is used; I/O is unknown", {3, -1}, {100, -1}, {1, -1}, {8, -1},
		4, 300, NAN, 12, 0.26},
};

static int64_t scaled(int64_t value, int64_t scale)
{
	return value >= 0 ? value * scale : VALUE_MISSING;
}

static void check_footer(void **state)
{
	const struct footer_row *row = *state;
	struct run run;
	struct findings findings;
	build_run(&run, 22);
	build_times(&run, 0, 11, 0, 0.1);
	build_times(&run, 11, 22, 100, 0.1);
	for (int s = 0; s < 2; s++) {
		struct run_segment *segment = build_segment(&run, s * 100, s * 100 + 1);
		segment->main_cpu_ns = scaled(row->cpu_s[s], NS_PER_S);
		segment->descendants_cpu_ns = scaled(row->cpu_s[s] >= 0 ? 0 : -1, 1);
		segment->peak_rss_bytes = scaled(row->peak_mb[s], 1000000);
		segment->read_bytes = scaled(row->read_mb[s], 1000000);
		segment->self_max_rss_bytes = scaled(row->self_mb[s], 1000000);
		segment->self_cpu_ns = scaled(row->self_mb[s] >= 0 ? 250 : -1, NS_PER_MS);
		segment->complete = row->cpu_s[s] >= 0;
	}
	build_gauge(&run, RUN_MAIN_RSS, 250000000);
	build_gauge(&run, RUN_DESCENDANTS_RSS, 50000000);
	build_cpu(&run, 1, 0, 0.01, 1); // 1 s in the second segment
	for (size_t i = 0; i < run.n; i++) {
		run.values[RUN_SELF_CPU][i] = (int64_t)(i % 11) * NS_PER_MS; // each recorder starts at 0
		run.values[RUN_SELF_RSS][i] = i % 5 == 0 ? 7000000 + (int64_t)i * 250000 : VALUE_MISSING;
	}
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.target_cpu_s, row->cpu);
	assert_close(value_to_double(findings.peak_rss_bytes, 1e-6), row->peak_mb_expected);
	assert_close(value_to_double(findings.read_bytes, 1e-6), row->read_mb_expected);
	assert_close(value_to_double(findings.self_max_rss_bytes, 1e-6), row->self_mb_expected);
	assert_close(findings.self_cpu_s, row->self_cpu);
	assert_close(findings.duration_s, 2);
	assert_int_equal(findings.complete, row->cpu_s[1] >= 0);
	assert_int_equal(findings.samples, 22);
	findings_finish(&findings);
	build_finish(&run);
}

/* gpu_tracker's figures by its definitions: each maximum independently. */
static void usage(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 31);
	build_cpu(&run, 1, 0.5, 0, 2);
	// Private memory is largest at one sample, shared memory at another; nothing was read between them.
	const int64_t read[][4] = {{10, 900, 100, 50}, {20, 500, 400, 60}};
	for (size_t k = 0; k < 2; k++) {
		size_t i = (size_t)read[k][0];
		run.values[RUN_MAIN_PRIVATE][i] = read[k][1];
		run.values[RUN_MAIN_SHARED][i] = read[k][2];
		run.values[RUN_DESCENDANTS_PRIVATE][i] = read[k][3];
		run.values[RUN_DESCENDANTS_SHARED][i] = 0;
		run.values[RUN_COMBINED_SHARED][i] = read[k][2];
	}
	for (size_t i = 0; i < run.n; i++)
		run.values[RUN_MAIN_THREADS][i] = i == 5 ? 8 : 1;
	build_gauge(&run, RUN_DESCENDANTS_THREADS, 2);
	run.values[RUN_DESCENDANTS_THREADS][5] = 0;
	assert_int_equal(findings_make(&run, &findings), 0);
	const struct resource_usage *u = &findings.usage;
	assert_close(u->main.total_bytes, 1000);
	assert_close(u->main.private_bytes, 900);
	assert_close(u->main.shared_bytes, 400);
	assert_close(u->combined.total_bytes, 1050);
	assert_close(u->combined.private_bytes, 950);
	assert_close(u->cpu_main.max_sum, 100);
	assert_close(u->cpu_combined.mean_sum, 150);
	assert_close(u->cpu_combined.mean_hardware, 37.5);
	assert_close(u->cpu_system.max_hardware, 50);
	assert_int_equal(u->main_threads, 8);
	assert_int_equal(u->descendants_threads, 2);
	assert_int_equal(u->combined_threads, 8);
	assert_close(u->gpu_ram_combined_bytes, 0); // no GPU: known to be 0
	assert_close(u->gpu.max_sum, 0);
	assert_close(u->ram_system_bytes, none); // never read: unknown
	findings_finish(&findings);
	build_finish(&run);
}

// MB: one reading of smaps at 0.1 s with RSS 110; then 150 at a sample; and the kernel's own peak of 200.
static void peaks_between_samples(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 21);
	build_gauge(&run, RUN_DESCENDANTS_RSS, 0);
	build_gauge(&run, RUN_MAIN_RSS, 110);
	run.values[RUN_MAIN_RSS][10] = 150;
	run.values[RUN_MAIN_PRIVATE][1] = 90;
	run.values[RUN_MAIN_SHARED][1] = 5;
	run.segments[0].main_peak_rss_bytes = 200;
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.usage.main.shared_bytes, 5);
	assert_close(findings.usage.main.private_bytes, 90 + 40 + 50);
	assert_close(findings.usage.main.total_bytes, 95 + 40 + 50);
	findings_finish(&findings);
	build_finish(&run);
}

// A program that ended before the first sample.
static void peak_of_the_unmet(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 2);
	run.segments[0].processes_seen = 1;
	run.segments[0].main_peak_rss_bytes = run.segments[0].peak_rss_bytes = 200;
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.usage.main.total_bytes, 200);
	assert_close(findings.usage.combined.total_bytes, 200);
	assert_close(findings.usage.main.private_bytes, (double)NAN);
	findings_finish(&findings);
	build_finish(&run);
}

// The target's memory was unreadable, as for a process of another user.
static void descendants_of_the_unreadable(void **state)
{
	for (int64_t seen = 1; seen <= 2; seen++) {
		struct run run;
		struct findings findings;
		build_simple(&run, 21);
		build_gauge(&run, RUN_PROCESSES, seen);
		run.segments[0].processes_seen = seen;
		assert_int_equal(findings_make(&run, &findings), 0);
		assert_close(findings.usage.descendants.private_bytes, seen == 1 ? 0 : (double)NAN);
		assert_close(findings.usage.main.private_bytes, (double)NAN);
		findings_finish(&findings);
		build_finish(&run);
	}
}

static void expected_cores(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 31);
	build_cpu(&run, 1, 0, 0, 2);
	for (size_t i = 0; i < run.n_metadata; i++)
		if (strcmp(run.facts[i].key, "expected_cores") == 0)
			run.facts[i].value = "2";
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.usage.cpu_main.max_hardware, 50);
	assert_close(findings.usage.cpu_system.max_hardware, 50); // of all 4
	findings_finish(&findings);
	build_finish(&run);
}

// A quick reading of the counter 90 ms after each sample but the last: 10 ms before the next one, with energy only.
static void add_looks(struct run *run, struct run_device *device)
{
	size_t n = 2 * device->n - 1;
	int64_t *t_ns = arena_alloc(run->arena, n, sizeof(*t_ns));
	for (size_t i = 0; i < n; i++)
		t_ns[i] = device->t_ns[i / 2] + (i % 2 != 0 ? 90 * NS_PER_MS : 0);
	for (size_t m = 0; m < DEVICE_COUNT; m++) {
		int64_t *values = build_unknown(run->arena, n);
		for (size_t i = 0; i < n; i += 2)
			values[i] = device->values[m][i / 2];
		for (size_t i = 1; m == DEVICE_ENERGY && i < n; i += 2)
			values[i] = values[i - 1] + (values[i + 1] - values[i - 1]) / 10 * 9;
		device->values[m] = values;
	}
	device->t_ns = t_ns;
	device->n = n;
}

static const struct gpu_row {
	const char *teaches;
	bool has_looks;
} gpu_rows[] = {
	{"GPU: means over time; throttled by power cap and heat, not by idleness", false},
	{"GPU: quick readings between samples do not count in other metrics", true},
};

// 10 s; reasons: idle for 3 s, the power cap for 2 s, heat for 1 s.
static void gpu(void **state)
{
	const struct gpu_row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	struct run_device *device = build_metered(&run, "gpu-0", DOMAIN_GPU, 250);
	device->memory_total_bytes = 80000000000;
	for (size_t i = 0; i < run.n; i++) {
		device->values[DEVICE_UTILIZATION][i] = i <= 50 ? 100 : 0;
		device->values[DEVICE_MEMORY_USED][i] = 2000 + (int64_t)i;
		device->values[DEVICE_MAIN_MEMORY][i] = 500;
		device->values[DEVICE_TARGET_MEMORY][i] = 800;
		device->values[DEVICE_TEMPERATURE][i] = i == 60 ? 71 : 50;
		device->values[DEVICE_POWER_CAP][i] = i < 50 ? 400000 : 300000;
		device->values[DEVICE_THROTTLE_REASONS][i] = i <= 30 ? 1 : i <= 50 ? 4 : i <= 60 ? 0x20 | 1 : 0;
	}
	if (row->has_looks)
		add_looks(&run, device);
	build_stamps(device);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_int_equal(findings.n_gpus, 1);
	const struct gpu_finding *g = &findings.gpus[0];
	assert_close(g->energy_j, 2500);
	assert_close(g->mean_utilization_percent, 50);
	assert_close(g->target_mean_utilization_percent, none);
	assert_int_equal(g->max_memory_bytes, 2100);
	assert_int_equal(g->target_max_memory_bytes, 800);
	assert_close(g->max_temperature_c, 71);
	assert_close(g->throttled_s, 3);
	assert_close(g->cap_w, 300);
	assert_close(findings.usage.gpu_ram_descendants_bytes, 300);
	assert_close(findings.usage.gpu_ram_capacity_bytes, 80000000000);
	assert_close(findings.usage.gpu.max_hardware, 100);
	findings_finish(&findings);
	build_finish(&run);
}

static void user_metrics(void **state)
{
	struct run run;
	struct findings findings;
	struct run_user_metric told[] = {{at_s(1), "loss", 4}, {at_s(2), "accuracy", 0.5}, {at_s(3), "loss", 1},
		{at_s(4), "loss", NAN}};
	build_simple(&run, 11);
	run.user_metrics = told;
	run.n_user_metrics = 4;
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_int_equal(findings.n_user_metrics, 2);
	assert_string_equal(findings.user_metrics[1].name, "loss");
	assert_close(findings.user_metrics[1].stats.last, 1);
	assert_close(findings.user_metrics[1].stats.mean, 2.5);
	assert_int_equal(findings.user_metrics[1].stats.count, 2);
	findings_finish(&findings);
	build_finish(&run);
}

static void empty_runs(void **state)
{
	for (int segments = 0; segments < 3; segments++) {
		struct run run;
		struct findings findings;
		build_run(&run, 0);
		for (int s = 0; s < segments; s++)
			build_segment(&run, s * 10, s * 10 + 1);
		build_metered(&run, "package-0", DOMAIN_PACKAGE, 20);
		assert_int_equal(findings_make(&run, &findings), 0);
		assert_close(findings.total_j, none);
		assert_close(findings.usage.cpu_main.max_sum, none);
		assert_close(findings.duration_s, segments);
		findings_finish(&findings);
		build_finish(&run);
	}
}

static void std_far_from_zero(void **state)
{
	struct tally tally = {0};
	const double values[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16, NAN};
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		tally_add(&tally, values[i]);
	assert_close(tally_value_stats(&tally).mean, 1e9 + 10);
	assert_close(tally_value_stats(&tally).std, sqrt(22.5));
	assert_int_equal(tally.n, 4);
}

// It used no memory before it ran on the GPU; afterwards the driver did not report how much.
static void unknown_gpu_memory(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 11);
	struct run_device *device = build_metered(&run, "gpu-0", DOMAIN_GPU, 250);
	for (size_t i = 0; i < run.n; i++) {
		device->values[DEVICE_TARGET_PROCESSES][i] = i < 3 ? 0 : 1;
		device->values[DEVICE_TARGET_MEMORY][i] = i < 3 ? 0 : VALUE_MISSING;
	}
	build_stamps(device);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_int_equal(findings.gpus[0].target_max_memory_bytes, VALUE_MISSING);
	findings_finish(&findings);
	build_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, window_rows, check_windows);
	ROWS_ADD(&tests, footer_rows, check_footer);
	ROWS_ADD_ONE(&tests, "gpu_tracker's maxima and means, each independently", usage);
	ROWS_ADD_ONE(&tests, "RAM: memory allocated between two readings, and between two samples, counts",
		peaks_between_samples);
	ROWS_ADD_ONE(&tests, "RAM of a program that no sample saw: the kernel's peak", peak_of_the_unmet);
	ROWS_ADD_ONE(&tests, "no descendants: 0, even if unreadable; some: unknown",
		descendants_of_the_unreadable);
	ROWS_ADD_ONE(&tests, "--expected-cores divides the target's percentage, not the system's", expected_cores);
	ROWS_ADD(&tests, gpu_rows, gpu);
	ROWS_ADD_ONE(&tests, "the program's own metrics", user_metrics);
	ROWS_ADD_ONE(&tests, "run without samples: no figures, no zeros", empty_runs);
	ROWS_ADD_ONE(&tests, "standard deviation: a large common offset costs no precision", std_far_from_zero);
	ROWS_ADD_ONE(&tests, "GPU: memory not reported by the driver is unknown, not the earlier value",
		unknown_gpu_memory);
	return rows_run(&tests, "figures");
}
