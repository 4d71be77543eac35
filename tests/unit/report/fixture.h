/* One run with everything in it, used by the tests of this folder. 62.3 s of training on two packages and a GPU. */
#pragma once

#include "unit/analysis/builder.h"

static inline void story_gpu(struct run *run)
{
	struct run_device *gpu = build_metered(run, "gpu-0", DOMAIN_GPU, 312.5);
	text_copy(gpu->device, sizeof(gpu->device), "NVIDIA H100 80GB HBM3");
	text_copy(gpu->uuid, sizeof(gpu->uuid), "GPU-11111111-2222-3333-4444-555555555555");
	gpu->update_period_s = 0.1;
	gpu->resolution_j = 0.001;
	gpu->relative_error = 0.05;
	gpu->memory_total_bytes = 85520809984;
	for (size_t i = 0; i < run->n; i++) {
		gpu->values[DEVICE_POWER][i] = 312500;
		gpu->values[DEVICE_POWER_CAP][i] = 350000;
		gpu->values[DEVICE_UTILIZATION][i] = 87;
		gpu->values[DEVICE_TARGET_UTILIZATION][i] = 60;
		gpu->values[DEVICE_OTHERS_UTILIZATION][i] = 20;
		gpu->values[DEVICE_MEMORY_USED][i] = 12000000000;
		gpu->values[DEVICE_MAIN_MEMORY][i] = 8000000000;
		gpu->values[DEVICE_TARGET_MEMORY][i] = 9100000000;
		gpu->values[DEVICE_OTHERS_MEMORY][i] = 2900000000;
		gpu->values[DEVICE_TARGET_PROCESSES][i] = 2;
		gpu->values[DEVICE_OTHERS_PROCESSES][i] = 1;
		gpu->values[DEVICE_TEMPERATURE][i] = 40 + (int64_t)i / 20;
		gpu->values[DEVICE_THROTTLE_REASONS][i] = i > 600 ? 4 : 0;
	}
}

static inline void story_domains(struct run *run)
{
	static const struct {
		const char *name, *inside, *device;
		enum domain_kind kind;
		double power_w;
	} domains[] = {
		{"psys", "", "intel-rapl:2", DOMAIN_PSYS, 98.7},
		{"package-0", "psys", "intel-rapl:0", DOMAIN_PACKAGE, 41.2},
		{"core-0", "package-0", "intel-rapl:0:0", DOMAIN_CORE, 30.05},
		{"package-1", "psys", "intel-rapl:1", DOMAIN_PACKAGE, 18.9},
		{"dram-0", "psys", "intel-rapl:0:1", DOMAIN_DRAM, 4.4},
	};
	for (size_t i = 0; i < ARRAY_SIZE(domains); i++) {
		struct run_device *device = build_metered(run, domains[i].name, domains[i].kind, domains[i].power_w);
		text_copy(device->inside, sizeof(device->inside), domains[i].inside);
		text_copy(device->device, sizeof(device->device), domains[i].device);
		text_copy(device->source, sizeof(device->source), "powercap");
		device->update_period_s = 0.001;
		device->resolution_j = 0.000061;
		device->update_jitter_s = 0.00002;
		device->idle_w = domains[i].power_w / 4;
		for (size_t k = 0; k < run->n; k++)
			device->values[DEVICE_TEMPERATURE][k] = 55 + (int64_t)i;
	}
}

static inline void story_target(struct run *run)
{
	build_cpu(run, 1, 0.5, 0.002, 2);
	build_gauge(run, RUN_SYSTEM_MEMORY, 6000000000);
	build_gauge(run, RUN_MAIN_RSS, 1200000000);
	build_gauge(run, RUN_DESCENDANTS_RSS, 300000000);
	build_gauge(run, RUN_MAIN_THREADS, 9);
	build_gauge(run, RUN_DESCENDANTS_THREADS, 3);
	for (size_t i = 0; i < run->n; i += 100) {
		run->values[RUN_MAIN_PSS][i] = 1100000000;
		run->values[RUN_DESCENDANTS_PSS][i] = 190000000;
		run->values[RUN_MAIN_PRIVATE][i] = 1000000000;
		run->values[RUN_MAIN_SHARED][i] = 200000000;
		run->values[RUN_DESCENDANTS_PRIVATE][i] = 150000000;
		run->values[RUN_DESCENDANTS_SHARED][i] = 150000000;
		run->values[RUN_COMBINED_SHARED][i] = 220000000;
	}
	static struct run_process processes[] = {
		{.pid = 4711,
			.ppid = 1,
			.cpu_ns = 62300000000,
			.max_rss_bytes = 1200000000,
			.command = "python3",
			.is_main = true,
			.sampled = true},
		{.pid = 4712,
			.ppid = 4711,
			.cpu_ns = 31150000000,
			.max_rss_bytes = 300000000,
			.command = "pt_data_worker",
			.sampled = true},
		{.pid = 4713, .ppid = 4711, .cpu_ns = 2000000, .max_rss_bytes = 3000000, .command = "uname"},
	};
	run->processes = processes;
	run->n_processes = ARRAY_SIZE(processes);
}

static inline void story_program(struct run *run)
{
	static struct run_user_metric told[5];
	static struct run_span spans[6];
	told[0] = (struct run_user_metric){at_s(20), "loss", 2.25};
	told[1] = (struct run_user_metric){at_s(40), "loss", 1.5};
	told[2] = (struct run_user_metric){at_s(62), "accuracy", 0.9312};
	told[3] = (struct run_user_metric){at_s(30), "tokens", 512000, .pid = 4711};
	told[4] = (struct run_user_metric){at_s(60), "tokens", 512000, .pid = 4711};
	spans[0] = (struct run_span){.id = 1, .pid = 4711, .begin_ns = at_s(1), .end_ns = at_s(31), .name = "epoch"};
	spans[1] = (struct run_span){.id = 2, .pid = 4711, .begin_ns = at_s(31), .end_ns = at_s(61), .name = "epoch"};
	spans[2] = (struct run_span){.id = 3,
		.pid = 4711,
		.begin_ns = at_s(29),
		.end_ns = at_s(31),
		.name = "validate"};
	spans[3] = (struct run_span){.id = 4,
		.pid = 4711,
		.begin_ns = at_s(61),
		.end_ns = VALUE_MISSING,
		.name = "export"};
	spans[4] = (struct run_span){.id = 5,
		.pid = 4711,
		.begin_ns = at_s(40),
		.end_ns = at_s(40.00005),
		.name = "forward/dnnl::primitive::execute/convolution"};
	spans[5] = (struct run_span){.id = 6,
		.pid = 4712,
		.begin_ns = at_s(50),
		.end_ns = at_s(62.3),
		.close = SPAN_AT_DEATH,
		.name = "loader"};
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
		spans[i].cpu_ns = VALUE_MISSING;
	run->user_metrics = told;
	run->n_user_metrics = ARRAY_SIZE(told);
	run->spans = spans;
	run->n_spans = ARRAY_SIZE(spans);
}

static inline void story_build(struct run *run)
{
	build_simple(run, 624);
	struct run_segment *segment = &run->segments[0];
	segment->command_json = "[\"python3\", \"train.py\", \"--epochs\", \"2\", \"--name\", \"it's \\u00fc\"]";
	segment->pid = 4711;
	segment->exit_code = 0;
	segment->cpu_method = "rusage";
	segment->samples = 624;
	segment->lost_samples = 0;
	segment->main_cpu_ns = 62300000000;
	segment->descendants_cpu_ns = 31152000000;
	segment->referee_cpu_ns = 93500000000;
	segment->processes_seen = 3;
	segment->processes_sampled = 2;
	segment->peak_rss_bytes = 1500000000;
	segment->main_peak_rss_bytes = 1200000000;
	segment->read_bytes = 2150000000;
	segment->written_bytes = 340000000;
	segment->major_faults = 12;
	segment->minor_faults = 54321;
	segment->voluntary_switches = 1000;
	segment->involuntary_switches = 200;
	segment->self_cpu_ns = 124600000;
	segment->self_max_rss_bytes = 4200000;
	segment->self_wakeups = 700;
	for (size_t i = 0; i < run->n_metadata; i++)
		if (strcmp(run->facts[i].key, "n_gpus_system") == 0)
			run->facts[i].value = "1";
	build_fact(run, "label", "first try");
	build_fact(run, "meta.batch", "256");
	build_fact(run, "carbon_intensity_g_per_kwh", "380");
	build_fact(run, "attribution", "busy");
	build_fact(run, "step", "epoch");
	story_target(run);
	story_domains(run);
	story_gpu(run);
	story_program(run);
}

// Result of `wattle run true` where nothing is readable.
static inline void story_poor(struct run *run)
{
	build_run(run, 2);
	build_segment(run, 0, 0.003);
	build_times(run, 0, 2, 0, 0.003);
	run->segments[0].command_json = "[\"true\"]";
	run->segments[0].pid = 99;
	run->segments[0].exit_code = 137;
	run->segments[0].complete = false;
}
