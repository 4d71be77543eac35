/* The sampler on a simulated machine and clock: the rows that a tick writes. */
#include "sampler/sampler.h"

#include "base/util.h"
#include "rows.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct stage { // one package in a folder, this process as the target
	char root[64];
	struct wattle_env env;
	int64_t t_ns, slept_ns;
	struct sensor_set sensors;
	struct tree tree;
	struct sampler sampler;
	struct batch batch;
};

static int64_t monotonic_ns(void *data)
{
	return ((struct stage *)data)->t_ns;
}

static int64_t boottime_ns(void *data)
{
	return ((struct stage *)data)->t_ns + ((struct stage *)data)->slept_ns;
}

static void write_text(const struct stage *stage, const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/class/powercap/intel-rapl:0/%s", stage->root, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void set_energy(const struct stage *stage, const char *text)
{
	write_text(stage, "energy_uj", text);
}

static void make_folders(const struct stage *stage)
{
	static const char *const folders[] = {"/class", "/class/powercap", "/class/powercap/intel-rapl:0"};
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		char path[256];
		snprintf(path, sizeof(path), "%s%s", stage->root, folders[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
}

static void stage_open(struct stage *stage, bool per_process)
{
	*stage = (struct stage){.root = "/tmp/wattle-sampler-XXXXXX", .t_ns = 1000 * NS_PER_S};
	assert_non_null(mkdtemp(stage->root));
	make_folders(stage);
	write_text(stage, "name", "package-0\n");
	write_text(stage, "max_energy_range_uj", "262143328850\n");
	set_energy(stage, "1000000\n");
	stage->env = (struct wattle_env){
		.sysfs_fd = open(stage->root, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
		.nvml = "/nonexistent/libnvidia-ml.so.1",
		.clock = {monotonic_ns, boottime_ns, monotonic_ns, stage},
	};
	const struct sensor_options sensor_options = {0};
	assert_int_equal(sensor_set_open(&stage->sensors, &stage->env, &sensor_options, NULL), 0);
	assert_int_equal(stage->sensors.n_devices, 1);
	assert_int_equal(tree_open(&stage->tree, &stage->env, getpid(), 0), 0);
	const struct sampler_options options = {.interval_ns = 100 * NS_PER_MS,
		.budget_percent = 1,
		.per_process = per_process};
	assert_int_equal(sampler_open(&stage->sampler, &stage->env, &stage->sensors, &stage->tree, &options), 0);
	assert_int_equal(batch_init(&stage->batch, 1 << 20), 0);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void stage_close(struct stage *stage)
{
	batch_finish(&stage->batch);
	sampler_close(&stage->sampler);
	tree_close(&stage->tree);
	sensor_set_close(&stage->sensors);
	close(stage->env.sysfs_fd);
	close(stage->env.procfs_fd);
	nftw(stage->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void tick(struct stage *stage, int64_t dt_ms)
{
	stage->t_ns += dt_ms * NS_PER_MS;
	sampler_tick(&stage->sampler, stage->t_ns, &stage->batch);
}

static const struct record *last_of(const struct batch *batch, uint32_t scope)
{
	const struct record *last = NULL;
	for (const struct record *r = batch_first(batch); r != NULL; r = batch_next(batch, r))
		if (r->scope == scope)
			last = r;
	return last;
}

/* ---- one film for each row: the counter's value at each tick, and the stored energy ---- */

enum { FRAMES = 6 };
static const struct film {
	const char *teaches;
	const char *counter_uj[FRAMES]; // NULL: the file is missing
	int64_t slept_s[FRAMES];        // suspend of this length before this frame
	int64_t energy_uj[FRAMES];      // stored value
	int n;
	const char *event; // kind of the last event; NULL: none
	int begins;        // bit i: counting begins at frame i, and the raw value is stored there
} films[] = {
	{"energy starts at 0 with the first reading", {"1000000\n", "1500000\n", "1500000\n"}, {0}, {0, 500000, 500000},
		3, NULL, 1},
	{"wrap: counting continues", {"262143000000\n", "500000\n"}, {0}, {0, 828851}, 2, "wrap", 1},
	{"unreadable counter: unknown, not 0; counting continues afterwards", {"1000000\n", "garbage", "", "4000000\n"},
		{0}, {0, VALUE_MISSING, VALUE_MISSING, 3000000}, 4, "gap-end", 1 | 8},
	{"decrease that is no wrap: a reset, no energy added",
		{"200000000000\n", "100000000000\n", "100000700000\n"}, {0}, {0, 0, 700000}, 3, "reset", 1 | 2},
	{"decrease after a suspend: a reset, even where a wrap is possible", {"262143000000\n", "500000\n"},
		{0, 60}, {0, 0}, 2, "reset", 1 | 2},
};

static void check_film(void **state)
{
	const struct film *film = *state;
	struct stage stage;
	stage_open(&stage, false);
	for (int i = 0; i < film->n; i++) {
		set_energy(&stage, film->counter_uj[i]);
		stage.slept_ns += film->slept_s[i] * NS_PER_S;
		tick(&stage, 100);
		const int64_t *device = last_of(&stage.batch, METRIC_DEVICE)->values;
		assert_true(device[DEVICE_ENERGY] == film->energy_uj[i]);
		bool begins = (film->begins >> i) % 2 == 1;
		assert_int_equal(device[DEVICE_ENERGY_RAW], begins ? atoll(film->counter_uj[i]) : VALUE_MISSING);
	}
	size_t n = stage.sampler.n_events;
	if (film->event == NULL)
		assert_int_equal(n, 0);
	else
		assert_string_equal(n > 0 ? event_kind_name(stage.sampler.events[n - 1].event.kind) : "none",
			film->event);
	for (size_t i = 0; i < n; i++) {
		const struct event *event = &stage.sampler.events[i].event;
		bool is_suspend = event->kind == EVENT_KIND_SUSPEND;
		assert_true(event->duration_ns == (is_suspend ? stage.slept_ns : VALUE_MISSING));
	}
	stage_close(&stage);
}

static void first_sample(void **state)
{
	struct stage stage;
	stage_open(&stage, true);
	tick(&stage, 100);
	const int64_t *run = last_of(&stage.batch, METRIC_RUN)->values;
	assert_true(run[RUN_MAIN_RSS] > 1000000);
	assert_int_equal(run[RUN_MAIN_THREADS], 1);
	assert_int_equal(run[RUN_PROCESSES], 1);
	assert_int_equal(run[RUN_DESCENDANTS_RSS], 0);
	assert_true(run[RUN_MAIN_PSS] > 0 && run[RUN_MAIN_PSS] <= run[RUN_MAIN_RSS]);
	assert_true(run[RUN_MAIN_PRIVATE] + run[RUN_MAIN_SHARED] > 0);
	assert_int_equal(run[RUN_DESCENDANTS_PRIVATE], 0);
	assert_true(run[RUN_SYSTEM_MEMORY] > run[RUN_MAIN_RSS]);
	assert_true(value_ok(run[RUN_SELF_CPU]));
	const struct record *process = last_of(&stage.batch, METRIC_PROCESS);
	assert_int_equal(process->id, getpid());
	assert_int_equal(process->values[PROCESS_THREADS], 1);
	stage_close(&stage);
}

static const struct pace { // in the 200 ms after the first sample
	const char *teaches;
	int64_t interval_ms;
	int known; // samples with values of /proc
} paces[] = {
	{"interval of 1 ms: counters are read each time, /proc at 50, 100, 150 and 200 ms", 1, 4},
	{"interval of 7 ms: /proc at 49, 98, 147 and 196 ms, so windows of 100 ms keep two readings", 7, 4},
	{"interval of 10 ms, a tick of /proc: everything each time", 10, 20},
	{"interval of 100 ms: everything each time", 100, 2},
};

static void slow_files_wait(void **state)
{
	const struct pace *pace = *state;
	struct stage stage;
	stage_open(&stage, false);
	stage.sampler.options.interval_ns = pace->interval_ms * NS_PER_MS;
	tick(&stage, pace->interval_ms);
	int known = 0;
	for (int64_t t_ms = pace->interval_ms; t_ms <= 200; t_ms += pace->interval_ms) {
		char energy_uj[24];
		snprintf(energy_uj, sizeof(energy_uj), "%d\n", (int)(1000000 + t_ms));
		set_energy(&stage, energy_uj);
		tick(&stage, pace->interval_ms);
		const int64_t *run = last_of(&stage.batch, METRIC_RUN)->values;
		assert_int_equal(value_ok(run[RUN_SYSTEM_BUSY]), value_ok(run[RUN_MAIN_RSS]));
		known += value_ok(run[RUN_SYSTEM_BUSY]);
		assert_int_equal(last_of(&stage.batch, METRIC_DEVICE)->values[DEVICE_ENERGY], t_ms);
	}
	assert_int_equal(known, pace->known);
	assert_false(value_ok(last_of(&stage.batch, METRIC_RUN)->values[RUN_MAIN_PSS])); // not yet within the budget
	stage.sampler.read_all = true;
	tick(&stage, 1);
	assert_true(value_ok(last_of(&stage.batch, METRIC_RUN)->values[RUN_SYSTEM_BUSY]));
	stage_close(&stage);
}

static void full_batch(void **state)
{
	struct stage stage;
	stage_open(&stage, false);
	batch_finish(&stage.batch);
	assert_int_equal(batch_init(&stage.batch, 2000), 0);
	for (int i = 0; i < 10; i++)
		tick(&stage, 100);
	assert_true(stage.batch.n_samples >= 1);
	assert_int_equal(stage.batch.n_samples + stage.batch.n_lost, 10);
	assert_true(stage.sampler.peak_rss_bytes > 0);
	stage_close(&stage);
}

static void held_command(void **state)
{
	struct stage stage;
	stage_open(&stage, false);
	stage.sampler.target_held = true;
	tick(&stage, 100);
	const int64_t *run = last_of(&stage.batch, METRIC_RUN)->values;
	assert_false(value_ok(run[RUN_MAIN_RSS]));
	assert_int_equal(run[RUN_MAIN_CPU], 0);
	assert_false(value_ok(run[RUN_MAIN_PSS]));
	stage_close(&stage);
}

/* Another recorder of the job reads it, until that one ends. */
static void left_to_another(void **state)
{
	struct stage stage;
	stage_open(&stage, false);
	stage.sampler.left[0] = true;
	sampler_choose_sensors(&stage.sampler);
	for (int i = 0; i < 3; i++) {
		tick(&stage, 100);
		devices_poll(&stage.sampler, stage.t_ns, &stage.batch);
	}
	assert_null(last_of(&stage.batch, METRIC_DEVICE));
	assert_int_equal(stage.sampler.n_events, 0); // leaving it out is no gap
	stage.sampler.left[0] = false;
	sampler_choose_sensors(&stage.sampler);
	set_energy(&stage, "5000000\n");
	devices_poll(&stage.sampler, stage.t_ns, &stage.batch);
	const int64_t *device = last_of(&stage.batch, METRIC_DEVICE)->values;
	assert_int_equal(device[DEVICE_ENERGY], 0);
	assert_int_equal(device[DEVICE_ENERGY_RAW], 5000000);
	set_energy(&stage, "5400000\n");
	tick(&stage, 100);
	device = last_of(&stage.batch, METRIC_DEVICE)->values;
	assert_int_equal(device[DEVICE_ENERGY], 400000);
	assert_int_equal(device[DEVICE_ENERGY_RAW], VALUE_MISSING);
	stage_close(&stage);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, films, check_film);
	ROWS_ADD_ONE(&tests, "first sample: contains every readable value", first_sample);
	ROWS_ADD(&tests, paces, slow_files_wait);
	ROWS_ADD_ONE(&tests, "full batch: samples are lost and counted, peaks are kept", full_batch);
	ROWS_ADD_ONE(&tests, "held command: not sampled while it is still a copy of the recorder", held_command);
	ROWS_ADD_ONE(&tests,
		"device read by another recorder: not stored; taken over, it begins with the raw value",
		left_to_another);
	return rows_run(&tests, "sampler");
}
