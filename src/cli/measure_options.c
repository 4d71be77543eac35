#include "cli/measure.h"

#include "base/util.h"

#include <math.h>
#include <stddef.h>

static const char memory_units[] = "bytes|kilobytes|megabytes|gigabytes|terabytes";

#define AT(member) .offset = offsetof(struct measure_options, member)

// clang-format off
const struct option measure_option_table[ATTACH_OPTIONS] = {
	{"output", 'o', "FILE", "run file; %j job ID, %s step (distinguishes several srun of a job),\n%r rank, %h host, %p process ID of the command (default\nwattle-YYYYmmdd-HHMMSS-PID.sqlite in this folder; in a job also with job,\nrank and host)", OPTION_TEXT, AT(output)},
	{"no-file", 0, NULL, "keep no run file: it is created in a temporary folder and removed after\nthe summary", OPTION_FLAG, AT(no_file)},
	{"overwrite", 0, NULL, "replace existing files", OPTION_FLAG, AT(overwrite)},
	{"append", 0, NULL, "add a further segment to the run file", OPTION_FLAG, AT(append)},
	{"mode", 0, "OCTAL", "permissions of a new run file and tracking file (default 600: only the\nowner can read them)", OPTION_TEXT, AT(mode)},
	{"hide-command", 0, NULL, "store the program's name without its arguments; values that look like\nsecrets are stored as *** anyway", OPTION_FLAG, AT(hide_command)},
	{"interval", 'i', "DUR", "sampling period, 1ms to 1h (default 100ms)", OPTION_DURATION, AT(interval_ns), .least = 1e6, .most = 3.6e12, .range = "a duration from 1ms to 1h, such as 100ms or 2s"},
	{"flush", 0, "DUR", "interval of writes to the run file, 50ms to 1s (default 1s)", OPTION_DURATION, AT(flush_ns), .least = 5e7, .most = 1e9, .range = "a duration from 50ms to 1s, such as 200ms"},
	{"json", 0, "FILE", "write the report as JSON; - is standard output", OPTION_TEXT, AT(json)},
	{"quiet", 'q', NULL, "no summary at the end", OPTION_FLAG, AT(quiet)},
	{"disable-logs", 0, NULL, "no warnings", OPTION_FLAG, AT(disable_logs)},
	{"tracking-file", 0, "FILE", "also write gpu_tracker's tracking file (.csv or .sqlite)", OPTION_TEXT, AT(tracking_file)},
	{"sub-tracking-file", 0, "FILE", "read the spans that the program writes in gpu_tracker's format", OPTION_TEXT, AT(sub_tracking_file)},
	{"ram-unit", 0, "UNIT", "unit of memory figures (default gigabytes)", OPTION_CHOICE, AT(ram_unit), .choices = memory_units},
	{"gpu-ram-unit", 0, "UNIT", "unit of GPU memory figures (default gigabytes)", OPTION_CHOICE, AT(gpu_ram_unit), .choices = memory_units},
	{"time-unit", 0, "UNIT", "unit of times: seconds, minutes, hours or days (default hours)", OPTION_CHOICE, AT(time_unit), .choices = "seconds|minutes|hours|days"},
	{"expected-cores", 0, "N", "number of cores that counts as 100 % in the target's CPU percentages\n(default: all cores)", OPTION_INTEGER, AT(expected_cores), .least = 1, .most = 1e6, .range = "a number of cores, 1 or more"},
	{"gpus", 0, "LIST", "UUIDs or indices, comma separated\n(default: those visible to the command)", OPTION_TEXT, AT(gpus)},
	{"gpu-brand", 0, "BRAND", "nvidia, amd or intel (default: all found)", OPTION_CHOICE, AT(gpu_brand), .choices = "nvidia|amd|intel"},
	{"gpu-gain", 0, "INDEX=FACTOR±PERCENT", "calibration of a GPU's power sensor: its readings are multiplied by\nFACTOR, with an uncertainty of PERCENT %, such as 0=1.03±2 or\n0=1.03+-2; without ±PERCENT the ± 10 % of uncalibrated GPUs apply\n(repeatable)", OPTION_LIST, AT(gpu_gain)},
	{"wall-meter", 0, "FILE", "CSV file that a wall meter's reader writes (OmegaWatt layout); domain wall", OPTION_TEXT, AT(wall_meter)},
	{"attribution", 0, "METHOD", "busy: divide energy by busy time; active: subtract idle power first\n(default busy)", OPTION_CHOICE, AT(attribution), .choices = "busy|active"},
	{"per-process", 0, NULL, "store a row per process and sample", OPTION_FLAG, AT(per_process)},
	{"budget", 0, "PERCENT", "maximum CPU use for reading private and shared memory, in percent of one\ncore; 0: never read (default 1)", OPTION_NUMBER, AT(budget_percent), .least = 0, .most = 100, .range = "a percentage from 0 to 100"},
	{"carbon-intensity", 0, "G", "grams of CO2e per kWh", OPTION_NUMBER, AT(carbon_intensity), .least = 0, .most = 1e5, .range = "grams of CO2e per kWh, 0 or more"},
	{"carbon-region", 0, "COUNTRY", "take the carbon intensity of this country's electricity, the mean of a year:\nISO 3166 code or name, such as DE, DEU or Germany", OPTION_TEXT, AT(carbon_region)},
	{"pue", 0, "X", "power usage effectiveness: multiplies the carbon figure (default 1)", OPTION_NUMBER, AT(pue), .least = 1, .most = 10, .range = "a factor from 1 to 10"},
	{"meta", 0, "KEY=VALUE", "metadata to store with the run (repeatable)", OPTION_LIST, AT(meta)},
	{"label", 0, "TEXT", "label shown in reports", OPTION_TEXT, AT(label)},
	{"step", 0, "NAME", "count each call of the span NAME as a step", OPTION_TEXT, AT(step)},
	{"steps", 0, "N", "expected number of steps", OPTION_INTEGER, AT(steps), .least = 1, .most = 1e15, .range = "a number of steps, 1 or more"},
	{"progress", 0, NULL, "show a progress line on standard error", OPTION_FLAG, AT(progress)},
	{"span-cpu", 0, NULL, "also record the CPU time of each span's thread; this makes begin and end\nof a span about 10 times as expensive", OPTION_FLAG, AT(span_cpu)},
	{"profile", 0, "HZ", "sample call stacks, HZ times per second of CPU time, 1 to 10000 (default 99),\nfor `wattle functions`", OPTION_INTEGER, AT(profile_hz), .least = 1, .most = 10000, .range = "a rate from 1 to 10000 samples per second", .bare = "99"},
	{"call-graph", 0, "METHOD", "with --profile: callers by frame pointers (fp), or the sampled function\nonly (none); auto is fp (default auto)", OPTION_CHOICE, AT(call_graph), .choices = "auto|fp|none"},
	{"wait-all", 0, NULL, "wait until the last descendant has ended", OPTION_FLAG, AT(wait_all)},
	{"config", 0, "FILE.json", "JSON object of these options by name; the command line takes precedence", OPTION_TEXT, AT(config)},
	{"store", 0, "URL", "send the run to PostgreSQL: postgresql://user@host/database; without -o the\nrun file is removed after all rows were sent", OPTION_TEXT, AT(store)},
	{"store-wait", 0, "DUR", "maximum wait at the end for an unreachable or slow server\n(default 10s); `wattle push` sends the rest", OPTION_DURATION, AT(store_wait_ns), .least = 0, .most = 8.64e13, .range = "a duration up to 24h, such as 30s"},
	{"job", 0, "ID", "ID of the job that this run belongs to (default: from the scheduler)", OPTION_TEXT, AT(job)},
	{"alone", 0, NULL, "read all sensors, including those that another rank of the job reads", OPTION_FLAG, AT(alone)},
	{"nvtx", 0, NULL, "capture the NVTX ranges of an unmodified program as spans (run only)", OPTION_FLAG, AT(nvtx)},
	{"itt", 0, NULL, "capture the ITT tasks of an unmodified program as spans (run only)", OPTION_FLAG, AT(itt)},
	// options of attach only
	{"also", 0, "PID,…", "further processes to measure with their child processes", OPTION_LIST, AT(also)},
	{"cgroup", 0, "PATH", "measure the processes in a cgroup (a Slurm job, a pod, a systemd unit)\nand in the cgroups below it: its folder, or its path from /proc/PID/cgroup", OPTION_TEXT, AT(cgroup)},
};
// clang-format on

struct measure_options measure_defaults(void)
{
	return (struct measure_options){
		.ram_unit = "gigabytes",
		.gpu_ram_unit = "gigabytes",
		.time_unit = "hours",
		.attribution = "busy",
		.mode = "600",
		.interval_ns = 100 * NS_PER_MS,
		.flush_ns = NS_PER_S,
		.store_wait_ns = 10 * NS_PER_S,
		.expected_cores = VALUE_MISSING,
		.steps = VALUE_MISSING,
		.budget_percent = 1,
		.carbon_intensity = (double)NAN,
		.pue = (double)NAN,
	};
}
