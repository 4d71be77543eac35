#include "report/report.h"

#include "fixture.h"
#include "report/format_helpers.h"

#include <jansson.h>
#include <time.h>

/* The contract, key by key: i integer, n number, s string, b boolean, o object, a array, 0 null. The first letter is
 * the type in a complete run, the second in a run in which nothing was readable. */
static const struct key_row {
	const char *teaches; // the path; [] is the first of an array
	const char *full, *poor;
} key_rows[] = {
	{"schema", "s", "s"},
	{"run.id", "s", "s"},
	{"run.command", "a", "a"},
	{"run.pid", "i", "i"},
	{"run.exit_code", "i", "i"},
	{"run.start", "s", "s"},
	{"run.duration_s", "n", "n"},
	{"run.host", "s", "s"},
	{"run.interval_s", "n", "n"},
	{"run.samples", "i", "i"},
	{"run.lost_samples", "i", "0"},
	{"run.complete", "b", "b"},
	{"run.segments", "i", "i"},
	{"run.labels", "o", "o"},
	{"run.labels.batch", "s", NULL},
	{"energy.total_j", "n", "0"},
	{"energy.error_j", "n", "0"},
	{"energy.provenance", "s", "0"},
	{"energy.ledger.target_j", "n", "0"},
	{"energy.ledger.others_j", "n", "0"},
	{"energy.ledger.wattle_j", "n", "0"},
	{"energy.ledger.idle_j", "0", "0"}, // unknown with attribution "busy"
	{"energy.ledger.unattributed_j", "n", "0"},
	{"energy.target_error_j", "n", "0"},
	{"energy.carbon_g", "n", "0"},
	{"energy.domains", "a", "a"},
	{"energy.domains.[].domain", "s", NULL},
	{"energy.domains.[].kind", "s", NULL},
	{"energy.domains.[].device", "s", NULL},
	{"energy.domains.[].inside", "s", NULL},
	{"energy.domains.[].source", "s", NULL},
	{"energy.domains.[].provenance", "s", NULL},
	{"energy.domains.[].energy_j", "n", NULL},
	{"energy.domains.[].error_j", "n", NULL},
	{"energy.domains.[].mean_w", "n", NULL},
	{"energy.domains.[].max_w", "n", NULL},
	{"energy.domains.[].target_j", "n", NULL},
	{"energy.domains.[].target_error_j", "n", NULL},
	{"energy.domains.[].attribution", "s", NULL},
	{"energy.domains.[].integrated_j", "0", NULL},
	{"energy.domains.[].integrated_error_j", "0", NULL},
	{"energy.domains.[].update_jitter_s", "n", NULL},
	{"energy.domains.[].idle_w", "n", NULL},
	{"energy.domains.[].max_temperature_c", "n", NULL},
	{"energy.domains.[].max_memory_temperature_c", "0", NULL},
	{"energy.domains.[].update_period_s", "n", NULL},
	{"energy.domains.[].wraps", "i", NULL},
	{"energy.domains.[].gaps", "i", NULL},
	{"cpu.target_cpu_s", "n", "0"},
	{"cpu.method", "s", "0"},
	{"cpu.main_cpu_s", "n", "0"},
	{"cpu.descendants_cpu_s", "n", "0"},
	{"cpu.processes_seen", "i", "0"},
	{"cpu.processes_sampled", "i", "0"},
	{"memory.peak_rss_bytes", "i", "0"},
	{"memory.main_peak_rss_bytes", "i", "0"},
	{"memory.read_bytes", "i", "0"},
	{"memory.written_bytes", "i", "0"},
	{"memory.major_faults", "i", "0"},
	{"gpus", "a", "a"},
	{"gpus.[].index", "i", NULL},
	{"gpus.[].uuid", "s", NULL},
	{"gpus.[].name", "s", NULL},
	{"gpus.[].energy_j", "n", NULL},
	{"gpus.[].mean_w", "n", NULL},
	{"gpus.[].max_w", "n", NULL},
	{"gpus.[].max_memory_bytes", "i", NULL},
	{"gpus.[].target_max_memory_bytes", "i", NULL},
	{"gpus.[].mean_utilization_percent", "n", NULL},
	{"gpus.[].target_mean_utilization_percent", "n", NULL},
	{"gpus.[].max_temperature_c", "n", NULL},
	{"gpus.[].max_memory_temperature_c", "0", NULL},
	{"gpus.[].throttled_s", "n", NULL},
	{"gpus.[].cap_w", "n", NULL},
	{"resource_usage.max_ram.unit", "s", "s"},
	{"resource_usage.max_ram.system_capacity", "n", "n"},
	{"resource_usage.max_ram.system", "n", "0"},
	{"resource_usage.max_ram.main.total_rss", "n", "0"},
	{"resource_usage.max_ram.main.private_rss", "n", "0"},
	{"resource_usage.max_ram.main.shared_rss", "n", "0"},
	{"resource_usage.max_ram.descendants.total_rss", "n", "0"},
	{"resource_usage.max_ram.combined.shared_rss", "n", "0"},
	{"resource_usage.max_gpu_ram.unit", "s", "s"},
	{"resource_usage.max_gpu_ram.system_capacity", "n", "n"},
	{"resource_usage.max_gpu_ram.system", "n", "n"},
	{"resource_usage.max_gpu_ram.main", "n", "n"},
	{"resource_usage.max_gpu_ram.descendants", "n", "n"},
	{"resource_usage.max_gpu_ram.combined", "n", "n"},
	{"resource_usage.cpu_utilization.system_core_count", "i", "i"},
	{"resource_usage.cpu_utilization.n_expected_cores", "i", "i"},
	{"resource_usage.cpu_utilization.system.max_sum_percent", "n", "0"},
	{"resource_usage.cpu_utilization.main.max_hardware_percent", "n", "0"},
	{"resource_usage.cpu_utilization.descendants.mean_sum_percent", "n", "0"},
	{"resource_usage.cpu_utilization.combined.mean_hardware_percent", "n", "0"},
	{"resource_usage.cpu_utilization.main_n_threads", "i", "0"},
	{"resource_usage.cpu_utilization.descendants_n_threads", "i", "0"},
	{"resource_usage.cpu_utilization.combined_n_threads", "i", "0"},
	{"resource_usage.gpu_utilization.system_gpu_count", "i", "i"},
	{"resource_usage.gpu_utilization.n_expected_gpus", "i", "i"},
	{"resource_usage.gpu_utilization.gpu_percentages.max_sum_percent", "n", "n"},
	{"resource_usage.compute_time.unit", "s", "s"},
	{"resource_usage.compute_time.time", "n", "n"},
	{"blocks", "a", "a"},
	{"blocks.[].name", "s", NULL},
	{"blocks.[].num_timepoints", "i", NULL},
	{"blocks.[].num_calls", "i", NULL},
	{"blocks.[].num_non_empty_calls", "i", NULL},
	{"blocks.[].unwound", "i", NULL},
	{"blocks.[].cut", "i", NULL},
	{"blocks.[].active_s", "n", NULL},
	{"blocks.[].self_time_s", "n", NULL},
	{"blocks.[].cpu_s", "n", NULL},
	{"blocks.[].thread_cpu_s", "0", NULL},
	{"blocks.[].compute_time.min", "n", NULL},
	{"blocks.[].compute_time.std", "n", NULL},
	{"blocks.[].compute_time.total", "n", NULL},
	{"blocks.[].resource_usage.main_ram.max", "n", NULL},
	{"blocks.[].resource_usage.cpu_combined_hardware_utilization_percent.mean", "n", NULL},
	{"blocks.[].energy.total_j", "n", NULL},
	{"blocks.[].energy.error_j", "n", NULL},
	{"blocks.[].energy.mean_j", "n", NULL},
	{"blocks.[].energy.mean_w", "n", NULL},
	{"blocks.[].energy.self_j", "n", NULL},
	{"blocks.[].energy.self_error_j", "n", NULL},
	{"blocks.[].energy.method", "s", NULL},
	{"blocks.[].energy.resolved", "b", NULL},
	{"blocks.[].energy.domains.gpu-0", "n", NULL},
	{"blocks.[].units", "a", NULL},
	{"blocks.[].units.[].name", "s", NULL},
	{"blocks.[].units.[].count", "i", NULL},
	{"blocks.[].units.[].sum", "n", NULL},
	{"blocks.[].units.[].j_per_unit", "0", NULL},
	{"blocks.[].units.[].error_j_per_unit", "0", NULL},
	{"energy.outside_blocks_j", "n", "0"},
	{"energy.outside_blocks_error_j", "n", "0"},
	{"metrics", "a", "a"},
	{"metrics.[].name", "s", "s"},
	{"metrics.[].last", "n", "0"},
	{"metrics.[].min", "n", "0"},
	{"metrics.[].max", "n", "0"},
	{"metrics.[].mean", "n", "0"},
	{"metrics.[].count", "i", "i"},
	{"self.cpu_s", "n", "0"},
	{"self.cpu_percent", "n", "0"},
	{"self.max_rss_bytes", "i", "0"},
	{"self.energy_j", "n", "0"},
	{"self.wakeups", "i", "0"},
};

static json_t *report(void (*build)(struct run *run))
{
	struct run run;
	struct findings findings;
	struct buf out;
	build(&run);
	assert_int_equal(findings_make(&run, &findings), 0);
	buf_init(&out, 1 << 20);
	report_json(&findings, &out);
	findings_finish(&findings);
	build_finish(&run);
	json_error_t error;
	json_t *root = json_loads(out.data, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL)
		fail_msg("line %d: %s", error.line, error.text);
	buf_finish(&out);
	return root;
}

// Borrowed; NULL if there is no such key.
static json_t *at(json_t *value, const char *path)
{
	char key[128];
	while (value != NULL && *path != '\0') {
		size_t length = strcspn(path, ".");
		snprintf(key, sizeof(key), "%.*s", (int)length, path);
		value = strcmp(key, "[]") == 0 ? json_array_get(value, 0) : json_object_get(value, key);
		path += length + (path[length] == '.');
	}
	return value;
}

static bool is_type(const json_t *value, char type)
{
	const bool is[] = {['i'] = json_is_integer(value),
		['n'] = json_is_number(value),
		['s'] = json_is_string(value),
		['b'] = json_is_boolean(value),
		['o'] = json_is_object(value),
		['a'] = json_is_array(value),
		['0'] = json_is_null(value)};
	return is[(unsigned char)type];
}

static void check_type(json_t *root, const char *path, const char *type)
{
	json_t *value = at(root, path);
	if (value == NULL && type != NULL)
		fail_msg("%s is missing", path);
	if (type != NULL && !is_type(value, type[0]))
		fail_msg("%s is not of type %s", path, type);
}

static void check_keys(void **state)
{
	const struct key_row *row = *state;
	json_t *full = report(story_build), *poor = report(story_poor);
	check_type(full, row->teaches, row->full);
	check_type(poor, row->teaches, row->poor);
	json_decref(full);
	json_decref(poor);
}

static const struct value_row {
	const char *teaches, *path;
	double value;
} value_rows[] = {
	{"total: packages, DRAM and the GPU", "energy.total_j", 62.3 * (41.2 + 18.9 + 4.4 + 312.5)},
	{"RAM in the requested unit: gigabytes, decimal", "resource_usage.max_ram.main.total_rss", 1.2},
	{"combined memory: a shared mapping counts once", "resource_usage.max_ram.combined.total_rss", 1.37},
	{"time in the requested unit: hours", "resource_usage.compute_time.time", 62.3 / 3600},
	{"the exit status", "run.exit_code", 0},
	{"seconds", "run.interval_s", 0.1},
	{"a GPU's memory in bytes", "gpus.[].target_max_memory_bytes", 9.1e9},
	{"one segment", "run.segments", 1},
};

static void check_value(void **state)
{
	const struct value_row *row = *state;
	json_t *root = report(story_build);
	assert_close(json_number_value(at(root, row->path)), row->value);
	json_decref(root);
}

static void ledger_adds_up(void **state)
{
	json_t *root = report(story_build), *ledger = at(root, "energy.ledger"), *value;
	const char *key;
	double sum_j = 0;
	json_object_foreach(ledger, key, value) sum_j += json_number_value(value);
	assert_close(sum_j, json_number_value(at(root, "energy.total_j")));
	json_decref(root);
}

static void words(void **state)
{
	json_t *root = report(story_build);
	assert_string_equal(json_string_value(at(root, "energy.provenance")), "measured");
	assert_string_equal(json_string_value(json_array_get(at(root, "run.command"), 5)), "it's ü");
	assert_string_equal(json_string_value(at(root, "run.labels.label")), "first try");
	assert_string_equal(json_string_value(at(root, "metrics.[].name")), "accuracy");
	assert_string_equal(json_string_value(at(root, "blocks.[].name")), "epoch");
	assert_int_equal(json_array_size(at(root, "blocks")), 5);
	json_decref(root);
}

// Their own memory is freed; ASan detects remaining pointers into it.
static void times_forgotten(void **state)
{
	struct run run;
	struct findings findings;
	struct buf whole, without;
	story_build(&run);
	assert_int_equal(findings_make(&run, &findings), 0);
	buf_init(&whole, 1 << 24);
	buf_init(&without, 1 << 24);
	report_json(&findings, &whole);
	assert_non_null(findings.windows);
	assert_non_null(findings.metering);
	findings_drop_times(&findings);
	assert_null(findings.windows);
	assert_null(findings.metering);
	report_json(&findings, &without);
	assert_string_equal(without.data, whole.data);
	findings_drop_times(&findings); // freeing twice is harmless
	findings_finish(&findings);
	buf_finish(&whole);
	buf_finish(&without);
	build_finish(&run);
}

static const struct time_row {
	const char *teaches, *zone;
	int64_t wall_ns;
	const char *text;
} time_rows[] = {
	{"UTC", "UTC", INT64_C(1700000000123456789), "2023-11-14T22:13:20.123456+00:00"},
	{"time zone: east of Greenwich, with half an hour", "IST-5:30", INT64_C(1700000000000000000),
		"2023-11-15T03:43:20.000000+05:30"},
	{"time zone: west of Greenwich", "EST5", INT64_C(1700000000999999999), "2023-11-14T17:13:20.999999-05:00"},
	{"before 1970", "UTC", -1, "1969-12-31T23:59:59.999999+00:00"},
};

static void check_time(void **state)
{
	const struct time_row *row = *state;
	struct buf out;
	setenv("TZ", row->zone, 1);
	tzset();
	buf_init(&out, 64);
	rfc3339(&out, row->wall_ns);
	assert_string_equal(out.data, row->text);
	buf_finish(&out);
}

static const struct command_row {
	const char *teaches, *json, *text;
} command_rows[] = {
	{"plain words", "[\"make\", \"-j4\"]", "make -j4"},
	{"command: blanks and quotes are quoted for a shell", "[\"sh\", \"-c\", \"echo 'a b'\"]",
		"sh -c 'echo '\\''a b'\\'''"},
	{"command: an empty word", "[\"true\", \"\"]", "true ''"},
	{"command: control characters are shown as ?", "[\"a\\u001b[31mb\\n\"]", "'a?[31mb '"},
	{"command: not an array: none", "{}", ""},
	{"command: not JSON: none", "[\"a", ""},
};

static void check_command(void **state)
{
	const struct command_row *row = *state;
	const struct run_segment segment = {.command_json = row->json};
	struct buf out;
	buf_init(&out, 1000);
	buf_str(&out, "");
	command_text(&out, &segment);
	assert_string_equal(out.data, row->text);
	buf_finish(&out);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, key_rows, check_keys);
	ROWS_ADD(&tests, value_rows, check_value);
	ROWS_ADD_ONE(&tests, "the ledger's rows sum to the total", ledger_adds_up);
	ROWS_ADD_ONE(&tests, "texts, labels, metrics and blocks", words);
	ROWS_ADD_ONE(&tests, "all figures stay when the energy timeline is dropped", times_forgotten);
	ROWS_ADD(&tests, time_rows, check_time);
	ROWS_ADD(&tests, command_rows, check_command);
	return rows_run(&tests, "json");
}
