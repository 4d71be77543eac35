#include "store/export.h"

#include "fixture.h"

#include "base/arena.h"

#include <jansson.h>

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	char *text = calloc(1, 1 << 20);
	assert_true(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
	fclose(file);
	return text;
}

static void export(const struct run *run, const char *format, const char *path, bool overwrite)
{
	struct wattle_error error = {0};
	if (export_run(run, format, path, overwrite, &error) < 0)
		fail_msg("%s", error.text);
}

// Line `n` of the text, from 1, NUL-terminated in place.
static char *line_of(char *text, int n)
{
	while (--n > 0)
		text = strchr(text, '\n') + 1;
	text[strcspn(text, "\r\n")] = '\0';
	return text;
}

static int count_lines(const char *text)
{
	int n = 0;
	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

static void make_run(struct fixture *f, int64_t n, struct run *run)
{
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, n);
	fixture_load(f->path, run);
}

static const char *output(struct fixture *f, const char *name, char path[160])
{
	snprintf(path, 160, "%s/%s", f->folder, name);
	return path;
}

static void csv(void **state)
{
	struct fixture *f = *state;
	struct run run;
	char path[160];
	make_run(f, 3, &run);
	export(&run, "csv", output(f, "out.csv", path), false);
	char *text = read_file(path);
	assert_int_equal(count_lines(text), 4);
	assert_non_null(strstr(text, "t_ns,timestamp,self_cpu_ns,"));
	// Only values that some device has reported get a column.
	assert_non_null(strstr(text,
		",processes,package-0.energy_uj,gpu-0.power_mw,gpu-0.utilization_percent,"
		"gpu-0.memory_used_bytes,gpu-0.main_memory_bytes,gpu-0.target_memory_bytes\n"));
	char *row = line_of(text, 4);
	// The fixture's target started a nanosecond after the anchor: both clocks agree on it.
	assert_ptr_equal(strstr(row, "1000200000000,1700000000.200000000,,5000600000000,"), row);
	assert_non_null(strstr(row, ",4000000,300002,70,30000000000,5000000000,20000000000"));
	free(text);
	run_finish(&run);
}

static void csv_of_uneven_columns(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(&store_run_file, &(struct store_open_options){.path = f->path}, &f->header);
	batch_clear(&f->batch);
	batch_add(&f->batch, METRIC_DEVICE, fixture_t_ns(0), 0, 0)->values[DEVICE_ENERGY] = 1;
	batch_add(&f->batch, METRIC_RUN, fixture_t_ns(1), 0, 0)->values[RUN_PROCESSES] = 2;
	batch_add(&f->batch, METRIC_DEVICE, fixture_t_ns(2), 0, 0)->values[DEVICE_ENERGY] = 3;
	assert_int_equal(store_run_file.write(store, &(struct store_delivery){.batch = &f->batch}, NULL), 0);
	fixture_close(&store_run_file, store, false);
	struct run run;
	char path[160];
	fixture_load(f->path, &run);
	export(&run, "csv", output(f, "out.csv", path), false);
	char *text = read_file(path);
	assert_int_equal(count_lines(text), 4);
	assert_non_null(strstr(text, "1000000000000,1700000000.000000000,,,,,,,,,,,,,,,,,,,,,,,,,,1\n"));
	assert_non_null(strstr(text, "1000100000000,1700000000.100000000,,,,,,,,,,,,,,,,,,,,,,,,,2,\n"));
	assert_non_null(strstr(text, "1000200000000,1700000000.200000000,,,,,,,,,,,,,,,,,,,,,,,,,,3\n"));
	free(text);
	run_finish(&run);
}

static void jsonl(void **state)
{
	static const struct {
		const char *type;
		int count;
	} expected[] = {{"run", 1}, {"segment", 1}, {"device", 2}, {"sample", 3}, {"device_sample", 6}, {"process", 1},
		{"event", 1}};
	struct fixture *f = *state;
	const struct store_process process = {.pid = 1, .command = "a\n\"b\"", .end_ns = VALUE_MISSING};
	const struct store_event event = {event_make(EVENT_GAP, 5), "x", ""};
	void *store = fixture_open(&store_run_file, &(struct store_open_options){.path = f->path}, &f->header);
	assert_int_equal(fixture_write(f, &store_run_file, store, 0, 3, 0), 0);
	const struct store_delivery delivery = {
		.processes = &process, .n_processes = 1, .events = &event, .n_events = 1};
	assert_int_equal(store_run_file.write(store, &delivery, NULL), 0);
	fixture_close(&store_run_file, store, false);
	struct run run;
	char path[160];
	fixture_load(f->path, &run);
	export(&run, "jsonl", output(f, "out.jsonl", path), false);
	char *text = read_file(path);
	assert_int_equal(count_lines(text), 15);
	int seen[ARRAY_SIZE(expected)] = {0};
	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		json_t *object = json_loads(line, 0, NULL);
		assert_non_null(object);
		const char *type = json_string_value(json_object_get(object, "type"));
		for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
			seen[i] += strcmp(type, expected[i].type) == 0;
		if (strcmp(type, "sample") == 0) {
			assert_true(json_is_null(json_object_get(object, "main_pss_bytes"))); // unknown
			assert_int_equal(json_integer_value(json_object_get(object, "main_rss_bytes")), 1000000000);
		}
		if (strcmp(type, "process") == 0)
			assert_string_equal(json_string_value(json_object_get(object, "command")), "a\n\"b\"");
		json_decref(object);
	}
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_int_equal(seen[i], expected[i].count);
	free(text);
	run_finish(&run);
}

// The file written while recording and the one exported afterwards are equal, byte for byte.
static void gpu_tracker(void **state)
{
	struct fixture *f = *state;
	struct run run;
	char recorded[160], exported[160];
	make_run(f, 4, &run);
	fixture_record(f, &store_tracking_file, &(struct store_open_options){.path = output(f, "a.csv", recorded)}, 4);
	export(&run, "gpu_tracker", output(f, "b.csv", exported), false);
	char *a = read_file(recorded), *b = read_file(exported);
	assert_string_equal(a, b);
	assert_int_equal(count_lines(a), 6);
	free(a);
	free(b);
	export(&run, "gpu_tracker", output(f, "b.sqlite", exported), false);
	assert_true(fixture_exists(exported));
	run_finish(&run);
}

static void gpu_tracker_of_two_segments(void **state)
{
	struct fixture *f = *state;
	const struct store_open_options append = {.path = f->path, .append = true};
	fixture_record(f, &store_run_file, &append, 3);
	int64_t later_ns = 60 * NS_PER_S;
	f->header.anchor_mono_ns += later_ns;
	f->header.anchor_wall_ns += later_ns + 7 * NS_PER_S; // the wall clock was set in between
	void *store = fixture_open(&store_run_file, &append, &f->header);
	assert_int_equal(fixture_write(f, &store_run_file, store, 0, 3, later_ns), 0);
	struct store_footer footer = fixture_footer(3);
	footer.start_ns += later_ns;
	footer.end_ns += later_ns;
	assert_int_equal(store_run_file.finish(store, &footer, NULL), 0);
	fixture_close(&store_run_file, store, false);
	struct run run;
	char path[160];
	fixture_load(f->path, &run);
	export(&run, "gpu_tracker", output(f, "out.csv", path), false);
	char *text = read_file(path);
	// Counters restarted: no row reaches from one recording into the other.
	assert_int_equal(count_lines(text), 3 + 2 + 2);
	assert_null(strstr(text, ",,"));
	assert_non_null(strstr(text, ",37.5,1700000000.2\r\n"));
	assert_non_null(strstr(text, ",37.5,1700000067.1\r\n"));
	free(text);
	run_finish(&run);
}

static void refusals(void **state)
{
	struct fixture *f = *state;
	struct run run;
	struct wattle_error error = {0};
	char path[160];
	make_run(f, 1, &run);
	assert_int_equal(export_run(&run, "xml", output(f, "out", path), false, &error), -EINVAL);
	assert_string_equal(error.text, "unknown export format 'xml'; valid are: csv, jsonl, gpu_tracker");
	assert_int_equal(export_run(&run, "gpu_tracker", path, false, &error), -EINVAL);
	assert_non_null(strstr(error.text, "ends in .csv or .sqlite"));
	assert_int_equal(export_run(&run, "csv", f->path, false, &error), -EEXIST);
	assert_int_equal(export_run(&run, "csv", f->folder, true, &error), -EISDIR);
	assert_int_equal(export_run(&run, "csv", output(f, "no/out.csv", path), false, &error), -ENOENT);
	assert_int_equal(export_run(&run, "csv", "/dev/full", true, &error), -ENOSPC);
	fixture_assert_only(f, "run.sqlite"); // no incomplete file
	export(&run, "csv", output(f, "out.csv", path), false);
	assert_int_equal(export_run(&run, "gpu_tracker", path, false, &error), -EEXIST);
	export(&run, "jsonl", path, true);
	char *text = read_file(path);
	assert_ptr_equal(strstr(text, "{\"type\": \"run\""), text);
	free(text);
	run_finish(&run);
}

int main(void)
{
	struct rows rows = {0};
	fixture_add(&rows, "csv: a row a sample, devices beside it", csv);
	fixture_add(&rows, "csv: what was sampled at other times has rows of its own", csv_of_uneven_columns);
	fixture_add(&rows, "jsonl: an object a record, each of them valid", jsonl);
	fixture_add(&rows, "gpu_tracker: the same file as the recording writes", gpu_tracker);
	fixture_add(&rows, "gpu_tracker: segments are recordings of their own", gpu_tracker_of_two_segments);
	fixture_add(&rows, "refusals leave nothing behind", refusals);
	return rows_run(&rows, "exports");
}
