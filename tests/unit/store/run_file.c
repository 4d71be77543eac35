#include "fixture.h"

#include <sqlite3.h>

static const struct store_ops *const ops = &store_run_file;

static void assert_text(const char *actual, const char *expected)
{
	assert_non_null(actual);
	assert_string_equal(actual, expected);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Read back unchanged */

static void facts_come_back(void **state)
{
	static const struct {
		const char *key, *value;
	} rows[] = {
		{"id", "0b3c9f1e-0000-4000-8000-000000000001"},
		{"complete", "true"},
		{"command", "[\"python3\", \"train.py\", \"--name\", \"a \\\"b\\\" c\"]"},
		{"host", "node-1"},
		{"interval_ns", "100000000"},
		{"anchor_mono_ns", "1000000000000"},
		{"anchor_wall_ns", "1700000000000000000"},
		{"boot_id", "boot-1"},
		{"memory_total_bytes", "64000000000"},
		{"n_cores", "8"},
		{"expected_cores", "4"},
		{"n_gpus_system", "1"},
		{"gpu_memory_total_bytes", "80000000000"},
		{"ram_unit", "gigabytes"},
		{"gpu_ram_unit", "megabytes"},
		{"time_unit", "hours"},
		{"attribution", "busy"},
		{"attached", "false"},
		{"pue", "1"},
		{"label", "first try"},
		{"meta.seed", "42"},
		{"meta.note", "a=b"},
		{"schema", "1"},
	};
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = f->path}, 3);
	struct run run;
	fixture_load(f->path, &run);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_text(run_metadata(&run, rows[i].key), rows[i].value);
	assert_null(run_metadata(&run, "carbon_intensity_g_per_kwh")); // not given: no row, not 0
	assert_true(isnan(run_metadata_double(&run, "carbon_intensity_g_per_kwh")));
	assert_int_equal(run_metadata_i64(&run, "n_cores"), 8);
	assert_int_equal(run_metadata_i64(&run, "label"), VALUE_MISSING);
	assert_int_equal(run.anchor_mono_ns, fixture_mono_ns);
	assert_int_equal(run.anchor_wall_ns, fixture_wall_ns);
	run_finish(&run);
}

static void samples_come_back(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = f->path}, 5);
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n, 5);
	assert_int_equal(run.t_ns[4], fixture_t_ns(4));
	assert_int_equal(run_value(&run, RUN_MAIN_CPU, 4), 200 * NS_PER_MS);
	assert_int_equal(run_value(&run, RUN_MAIN_PSS, 4), VALUE_MISSING); // never read: not 0
	assert_int_equal(run.n_devices, 2);
	assert_string_equal(run.devices[0].name, "package-0");
	assert_int_equal(run.devices[0].n, 5);
	assert_int_equal(run.devices[0].t_ns[3], fixture_t_ns(3));
	assert_int_equal(device_value(&run.devices[0], DEVICE_ENERGY, 3), 6000000);
	assert_int_equal(device_value(&run.devices[0], DEVICE_POWER, 3), VALUE_MISSING);
	assert_int_equal(device_value(&run.devices[1], DEVICE_POWER, 3), 300003);
	run_finish(&run);
}

/* As in sampling at 1 kHz: /proc is read with each tenth sample, and devices report more than their energy now and
 * then. */
static void fast_samples_come_back(void **state)
{
	enum { SAMPLES = 237, SLOWER = 10, WIDE = 37 };
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path}, &f->header);
	batch_clear(&f->batch);
	for (int64_t i = 0; i < SAMPLES; i++) {
		int64_t t_ns = fixture_mono_ns + i * NS_PER_MS;
		for (int64_t d = 0; d < FIXTURE_DEVICES; d++) {
			struct record *r = batch_add(&f->batch, METRIC_DEVICE, t_ns, d, 0);
			r->values[DEVICE_ENERGY] = 1000 * i + d;
			r->values[DEVICE_TEMPERATURE] = i % WIDE == 0 ? 40 + i : VALUE_MISSING;
		}
		struct record *r = batch_add(&f->batch, METRIC_RUN, t_ns, 0, 0);
		r->values[RUN_MAIN_RSS] = i % SLOWER == 0 ? 1 + i : VALUE_MISSING;
		r->values[RUN_SELF_CPU] = i % 3 == 0 ? 7 * i : VALUE_MISSING;
	}
	assert_int_equal(ops->write(store, &(struct store_delivery){.batch = &f->batch}, NULL), 0);
	fixture_close(ops, store, false);
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n, SAMPLES);
	for (int64_t i = 0; i < SAMPLES; i++) {
		assert_int_equal(run.t_ns[i], fixture_mono_ns + i * NS_PER_MS);
		assert_int_equal(run_value(&run, RUN_MAIN_RSS, i), i % SLOWER == 0 ? 1 + i : VALUE_MISSING);
		assert_int_equal(run_value(&run, RUN_SELF_CPU, i), i % 3 == 0 ? 7 * i : VALUE_MISSING);
		assert_int_equal(run_value(&run, RUN_PROCESSES, i), VALUE_MISSING);
	}
	for (int64_t d = 0; d < FIXTURE_DEVICES; d++) {
		const struct run_device *device = &run.devices[d];
		assert_int_equal(device->n, SAMPLES);
		for (int64_t i = 0; i < SAMPLES; i++) {
			assert_int_equal(device_value(device, DEVICE_ENERGY, i), 1000 * i + d);
			assert_int_equal(device_value(device, DEVICE_TEMPERATURE, i),
				i % WIDE == 0 ? 40 + i : VALUE_MISSING);
		}
	}
	run_finish(&run);
}

static void devices_come_back(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = f->path}, 1);
	struct run run;
	fixture_load(f->path, &run);
	const struct run_device *package = &run.devices[0], *gpu = &run.devices[1];
	assert_int_equal(package->kind, DOMAIN_PACKAGE);
	assert_string_equal(package->device, "intel-rapl:0");
	assert_string_equal(package->source, "powercap");
	assert_int_equal(package->provenance, PROVENANCE_MEASURED);
	assert_true(package->has_energy);
	assert_true(package->resolution_j == 61 * 1e-6);
	assert_true(package->update_period_s == 1000000 * 1e-9);
	assert_true(isnan(package->relative_error)); // not stated: unknown
	assert_int_equal(package->memory_total_bytes, VALUE_MISSING);
	assert_string_equal(package->uuid, "");
	assert_int_equal(gpu->kind, DOMAIN_GPU);
	assert_string_equal(gpu->uuid, "GPU-11111111-2222-3333-4444-555555555555");
	assert_int_equal(gpu->provenance, PROVENANCE_DERIVED);
	assert_false(gpu->has_energy);
	assert_true(gpu->relative_error == 0.05);
	assert_true(isnan(gpu->resolution_j));
	assert_int_equal(gpu->memory_total_bytes, 80000000000);
	run_finish(&run);
}

static void processes_and_events_come_back(void **state)
{
	struct fixture *f = *state;
	const struct store_process processes[] = {
		{.pid = 4242,
			.ppid = 1,
			.start_ns = fixture_mono_ns,
			.end_ns = VALUE_MISSING,
			.cpu_ns = 5,
			.max_rss_bytes = VALUE_MISSING,
			.command = "python3",
			.is_main = true,
			.sampled = true},
		{.pid = 4243,
			.ppid = 4242,
			.start_ns = fixture_mono_ns + 7,
			.end_ns = fixture_mono_ns + 9,
			.cpu_ns = 2,
			.max_rss_bytes = 4096,
			.command = "sh"},
	};
	const struct store_event events[] = {{event_make(EVENT_GAP, fixture_mono_ns + 3), "package-0", ""}};
	batch_clear(&f->batch);
	struct record *r = batch_add(&f->batch, METRIC_PROCESS, fixture_t_ns(1), 4243, fixture_mono_ns + 7);
	r->values[PROCESS_RSS] = 4096;
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path}, &f->header);
	struct store_delivery delivery = {.batch = &f->batch,
		.processes = processes,
		.n_processes = 2,
		.events = events,
		.n_events = 1};
	assert_int_equal(ops->write(store, &delivery, NULL), 0);
	delivery = (struct store_delivery){.processes = processes, .n_processes = 2};
	assert_int_equal(ops->write(store, &delivery, NULL), 0); // given twice, stored once
	fixture_close(ops, store, false);
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n_processes, 2);
	assert_int_equal(run.processes[0].pid, 4242);
	assert_true(run.processes[0].is_main);
	assert_int_equal(run.processes[0].end_ns, VALUE_MISSING);
	assert_int_equal(run.processes[0].max_rss_bytes, VALUE_MISSING);
	assert_string_equal(run.processes[1].command, "sh");
	assert_false(run.processes[1].sampled);
	assert_int_equal(run.n_events, 1);
	assert_int_equal(run.events[0].type, EVENT_GAP);
	assert_string_equal(run.events[0].kind_name, "gap");
	assert_string_equal(run.events[0].device, "package-0");
	assert_string_equal(run.events[0].text, "package-0: the energy counter can't be read");
	assert_int_equal(run.process_samples.n, 1);
	assert_int_equal(run.process_samples.pid[0], 4243);
	assert_int_equal(run.process_samples.start_ns[0], fixture_mono_ns + 7);
	assert_int_equal(process_value(&run.process_samples, PROCESS_RSS, 0), 4096);
	assert_int_equal(process_value(&run.process_samples, PROCESS_CPU, 0), VALUE_MISSING);
	run_finish(&run);
}

static void the_segment_comes_back(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = f->path}, 3);
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n_segments, 1);
	const struct run_segment *segment = &run.segments[0];
	assert_int_equal(segment->start_ns, fixture_mono_ns + 1);
	assert_int_equal(segment->wall_start_ns, fixture_wall_ns + 1);
	assert_int_equal(segment->end_ns, fixture_t_ns(3));
	assert_int_equal(segment->exit_code, 130);
	assert_true(segment->complete);
	assert_text(segment->cpu_method, "rusage");
	assert_int_equal(segment->samples, 3);
	assert_int_equal(segment->processes_sampled, 6);
	assert_int_equal(segment->referee_cpu_ns, VALUE_MISSING);
	assert_int_equal(segment->read_bytes, VALUE_MISSING);
	assert_int_equal(segment->written_bytes, 4096);
	assert_int_equal(segment->self_cpu_ns, 12345678);
	run_finish(&run);
}

static void one_file_remains(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path}, &f->header);
	char log[160];
	snprintf(log, sizeof(log), "%s-wal", f->path);
	assert_int_equal(fixture_write(f, ops, store, 0, 3, 0), 0);
	assert_true(fixture_exists(log)); // during the run
	struct store_footer footer = fixture_footer(3);
	assert_int_equal(ops->finish(store, &footer, NULL), 0);
	fixture_close(ops, store, false);
	fixture_assert_only(f, "run.sqlite");
}

static int64_t query(const char *path, const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *s;
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	int64_t value = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(db);
	return value;
}

static void the_file_explains_itself(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = f->path}, 1);
	assert_int_equal(query(f->path, "PRAGMA application_id"), 0x57544c31);
	assert_int_equal(query(f->path, "PRAGMA user_version"), 1);
	// Each column of each table has a row with its meaning in table metric.
	assert_int_equal(query(f->path,
				 "SELECT count(*) FROM sqlite_master t JOIN pragma_table_info(t.name) c "
				 "LEFT JOIN metric m ON m.table_name = t.name AND m.name = c.name "
				 "WHERE t.type = 'table' AND coalesce(m.meaning, '') = ''"),
		0);
	assert_int_equal(query(f->path,
				 "SELECT count(*) FROM metric WHERE name = 'main_rss_bytes' AND kind = 'gauge' "
				 "AND unit = 'bytes' AND source <> ''"),
		1);
}

/* Refusals: no file is changed */

static const struct refusal {
	const char *teaches;
	const char *name; // below the folder
	bool overwrite, append;
	int code;
	const char *says; // part of the message
} refusals[] = {
	{"existing file: not changed", "old.sqlite", false, false, -EEXIST,
		"exists: use --overwrite to replace it or --append to add a segment"},
	{"missing folder: the error names it", "nowhere/run.sqlite", false, false, -ENOENT, "nowhere does not exist"},
	{"file in place of a folder: refused", "old.sqlite/run.sqlite", false, false, -ENOTDIR, "Not a directory"},
	{"folder: not replaced", "sub", true, false, -EISDIR, "is a folder"},
	{"pipe: not replaced", "pipe", true, false, -EINVAL, "not a regular file"},
	{"appending: run files only", "old.sqlite", false, true, -EINVAL, "is not a wattle run file"},
	{"replacing and appending can't be combined", "old.sqlite", true, true, -EINVAL, "can't be combined"},
	{"empty name: refused", NULL, false, false, -EINVAL, "needs a name"},
};

static void check_refusal(void **state)
{
	struct fixture *f;
	const struct refusal *row = *state;
	void *fixture = NULL;
	assert_int_equal(fixture_setup(&fixture), 0);
	f = fixture;
	char path[256], old[160];
	snprintf(path, sizeof(path), "%s/pipe", f->folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/sub", f->folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(old, sizeof(old), "%s/old.sqlite", f->folder);
	write_text(old, "a letter");
	snprintf(path, sizeof(path), "%s/%s", f->folder, row->name != NULL ? row->name : "");
	const struct store_open_options options = {.path = row->name != NULL ? path : "",
		.overwrite = row->overwrite,
		.append = row->append};
	struct wattle_error error = {0};
	void *store = calloc(1, ops->state_size);
	assert_int_equal(ops->open(store, &options, &f->header, &error), row->code);
	fixture_close(ops, store, true);
	assert_non_null(strstr(error.text, row->says));
	struct stat st;
	assert_int_equal(stat(old, &st), 0);
	assert_int_equal(st.st_size, 8);
	fixture_teardown(&fixture);
}

/* Replacing */

static void overwrite_replaces_any_file(void **state)
{
	struct fixture *f = *state;
	char log[160];
	snprintf(log, sizeof(log), "%s-wal", f->path);
	write_text(f->path, "a letter");
	write_text(log, "rows of a database that is gone"); // must not be mistaken for one of wattle's
	fixture_record(f, ops, &(struct store_open_options){.path = f->path, .overwrite = true}, 3);
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n, 3);
	run_finish(&run);
	fixture_assert_only(f, "run.sqlite");
}

static void overwrite_needs_no_old_file(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = f->path, .overwrite = true}, 2);
	assert_true(fixture_exists(f->path));
}

static void the_old_file_comes_back(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = f->path}, 3);
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path, .overwrite = true}, &f->header);
	fixture_close(ops, store, true); // the command could not be started
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n, 3);
	run_finish(&run);
	fixture_assert_only(f, "run.sqlite");
}

static void a_link_stays_a_link(void **state)
{
	struct fixture *f = *state;
	char link_path[160];
	snprintf(link_path, sizeof(link_path), "%s/link.sqlite", f->folder);
	write_text(f->path, "a letter");
	assert_int_equal(symlink(f->path, link_path), 0);
	fixture_record(f, ops, &(struct store_open_options){.path = link_path, .overwrite = true}, 3);
	struct stat st;
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n, 3);
	run_finish(&run);
}

static void discard_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path}, &f->header);
	assert_true(fixture_exists(f->path));
	fixture_close(ops, store, true);
	fixture_assert_only(f, NULL);
}

/* Appending */

static void append_makes_a_new_file(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = f->path, .append = true}, 2);
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n_segments, 1);
	run_finish(&run);
}

static void append_adds_a_segment(void **state)
{
	struct fixture *f = *state;
	const struct store_open_options append = {.path = f->path, .append = true};
	fixture_record(f, ops, &append, 3);
	// A minute later on the same machine; the package is no longer readable, the GPU is now the first device.
	f->header.anchor_mono_ns += 60 * NS_PER_S;
	f->header.anchor_wall_ns += 60 * NS_PER_S;
	f->header.run_id = "another";
	f->devices[0] = &f->domains[1];
	f->header.n_devices = 1;
	void *store = fixture_open(ops, &append, &f->header);
	batch_clear(&f->batch);
	struct record *r = batch_add(&f->batch, METRIC_DEVICE, fixture_t_ns(0) + 60 * NS_PER_S, 0, 0);
	r->values[DEVICE_POWER] = 123;
	assert_int_equal(ops->write(store, &(struct store_delivery){.batch = &f->batch}, NULL), 0);
	struct store_footer footer = fixture_footer(0);
	footer.start_ns += 60 * NS_PER_S;
	footer.end_ns += 60 * NS_PER_S;
	assert_int_equal(ops->finish(store, &footer, NULL), 0);
	fixture_close(ops, store, false);
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n_segments, 2);
	assert_int_equal(run.segments[1].start_ns, fixture_mono_ns + 60 * NS_PER_S + 1); // the clock continued
	assert_text(run_metadata(&run, "complete"), "true");
	assert_text(run_metadata(&run, "id"), "0b3c9f1e-0000-4000-8000-000000000001"); // the file keeps its first one
	assert_int_equal(run.n_devices, 2);
	assert_int_equal(run.devices[1].n, 4); // the GPU is the same device with its old number
	assert_int_equal(device_value(&run.devices[1], DEVICE_POWER, 3), 123);
	run_finish(&run);
}

static const struct shift {
	const char *teaches;
	const char *boot_id, *host;
	int64_t mono_s, wall_s; // the second recorder's anchor, after 1,000 s and the wall clock's zero
	int64_t start_ns;       // expected time of its first sample after the first segment's anchor
} shifts[] = {
	{"same boot: the monotonic clock continues", "boot-1", "node-1", 1060, 59, 60 * NS_PER_S},
	{"after a reboot: the wall clock gives the distance", "boot-2", "node-1", 5, 3600, 3600 * NS_PER_S},
	{"on another host: the wall clock gives the distance", "boot-1", "node-2", 99999, 7200, 7200 * NS_PER_S},
	{"unknown boots: treated as different boots", "", "node-1", 1060, 61, 61 * NS_PER_S},
	// The first segment ended 300 ms after its anchor.
	{"wall clock set back: segments stay in order", "boot-2", "node-1", 5, -3600, 300 * NS_PER_MS + 1},
};

static void check_shift(void **state)
{
	const struct shift *row = *state;
	void *fixture = NULL;
	assert_int_equal(fixture_setup(&fixture), 0);
	struct fixture *f = fixture;
	const struct store_open_options append = {.path = f->path, .append = true};
	fixture_record(f, ops, &append, 3);
	f->header.boot_id = row->boot_id;
	f->header.host = row->host;
	f->header.anchor_mono_ns = row->mono_s * NS_PER_S;
	f->header.anchor_wall_ns = fixture_wall_ns + row->wall_s * NS_PER_S;
	int64_t later_ns = f->header.anchor_mono_ns - fixture_mono_ns; // on the second recorder's clock
	const struct store_process process = {.pid = 77,
		.start_ns = f->header.anchor_mono_ns,
		.command = "x",
		.end_ns = f->header.anchor_mono_ns + 5};
	void *store = fixture_open(ops, &append, &f->header);
	assert_int_equal(fixture_write(f, ops, store, 0, 2, later_ns), 0);
	assert_int_equal(ops->write(store, &(struct store_delivery){.processes = &process, .n_processes = 1}, NULL), 0);
	struct store_footer footer = fixture_footer(2);
	footer.start_ns += later_ns;
	footer.end_ns += later_ns;
	assert_int_equal(ops->finish(store, &footer, NULL), 0);
	fixture_close(ops, store, false);
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n, 5);
	assert_int_equal(run.t_ns[3] - fixture_mono_ns, row->start_ns);
	assert_int_equal(run.t_ns[4] - run.t_ns[3], 100 * NS_PER_MS);
	assert_int_equal(run.segments[1].start_ns - fixture_mono_ns, row->start_ns + 1);
	assert_int_equal(run.segments[1].end_ns - run.t_ns[3], 200 * NS_PER_MS);
	assert_int_equal(run.segments[1].wall_start_ns, f->header.anchor_wall_ns + 1); // // wall clock of this segment,
										       // unshifted
	assert_int_equal(run.processes[0].start_ns, run.t_ns[3]);
	assert_int_equal(run.processes[0].end_ns, run.t_ns[3] + 5);
	run_finish(&run);
	fixture_teardown(&fixture);
}

static void discarded_append_takes_back_its_segment(void **state)
{
	struct fixture *f = *state;
	const struct store_open_options append = {.path = f->path, .append = true};
	fixture_record(f, ops, &append, 3);
	f->header.anchor_mono_ns += NS_PER_S;
	fixture_close(ops, fixture_open(ops, &append, &f->header), true);
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n_segments, 1);
	assert_text(run_metadata(&run, "complete"), "true");
	assert_int_equal(run.n, 3);
	run_finish(&run);
}

static void an_older_file_gets_the_new_columns(void **state)
{
	struct fixture *f = *state;
	const struct store_open_options append = {.path = f->path, .append = true};
	fixture_record(f, ops, &append, 3);
	sqlite3 *db;
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				 "ALTER TABLE sample DROP COLUMN main_threads; ALTER TABLE sample ADD COLUMN x_new "
				 "INTEGER DEFAULT 1",
				 NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	struct run run;
	fixture_load(f->path, &run); // readable without a conversion
	assert_int_equal(run_value(&run, RUN_MAIN_THREADS, 2), VALUE_MISSING);
	assert_int_equal(run_value(&run, RUN_DESCENDANTS_THREADS, 2), 5);
	run_finish(&run);
	f->header.anchor_mono_ns += NS_PER_S;
	void *store = fixture_open(ops, &append, &f->header); // and writable
	assert_int_equal(fixture_write(f, ops, store, 0, 1, NS_PER_S), 0);
	fixture_close(ops, store, false);
	fixture_load(f->path, &run);
	assert_int_equal(run_value(&run, RUN_MAIN_THREADS, 2), VALUE_MISSING);
	assert_int_equal(run_value(&run, RUN_MAIN_THREADS, 3), 3);
	run_finish(&run);
}

static void two_recorders_do_not_share_a_file(void **state)
{
	struct fixture *f = *state;
	const struct store_open_options append = {.path = f->path, .append = true};
	const struct store_open_options overwrite = {.path = f->path, .overwrite = true};
	void *first = fixture_open(ops, &append, &f->header);
	for (size_t i = 0; i < 2; i++) {
		struct wattle_error error = {0};
		void *second = calloc(1, ops->state_size);
		assert_int_equal(ops->open(second, i == 0 ? &append : &overwrite, &f->header, &error), -EBUSY);
		assert_non_null(strstr(error.text, "another recorder is writing to it"));
		fixture_close(ops, second, true);
	}
	assert_int_equal(fixture_write(f, ops, first, 0, 2, 0), 0); // the first was not disturbed
	struct store_footer footer = fixture_footer(2);
	assert_int_equal(ops->finish(first, &footer, NULL), 0);
	fixture_close(ops, first, false);
	f->header.anchor_mono_ns += NS_PER_S;
	fixture_close(ops, fixture_open(ops, &append, &f->header), false); // and now it is free
}

int main(void)
{
	struct rows rows = {0};
	fixture_add(&rows, "facts of the run come back as they went in", facts_come_back);
	fixture_add(&rows, "samples come back, and what was not read is missing, not 0", samples_come_back);
	fixture_add(&rows, "samples of which most values are missing come back in full", fast_samples_come_back);
	fixture_add(&rows, "devices come back, unknown figures as unknown", devices_come_back);
	fixture_add(&rows, "processes, their samples and events come back", processes_and_events_come_back);
	fixture_add(&rows, "the figures of the end come back", the_segment_comes_back);
	fixture_add(&rows, "after the end exactly one file remains", one_file_remains);
	fixture_add(&rows, "every column has its meaning in table metric", the_file_explains_itself);
	fixture_add(&rows, "--overwrite replaces any regular file and stale logs beside it",
		overwrite_replaces_any_file);
	fixture_add(&rows, "--overwrite without an old file just makes one", overwrite_needs_no_old_file);
	fixture_add(&rows, "if the command never starts the replaced file comes back", the_old_file_comes_back);
	fixture_add(&rows, "a symbolic link is followed, not replaced", a_link_stays_a_link);
	fixture_add(&rows, "if the command never starts no file is left", discard_leaves_nothing);
	fixture_add(&rows, "--append without a file makes one", append_makes_a_new_file);
	fixture_add(&rows, "--append adds a segment and knows devices again", append_adds_a_segment);
	fixture_add(&rows, "a segment whose command never started is taken back",
		discarded_append_takes_back_its_segment);
	fixture_add(&rows, "files of other versions are read, and completed when appended to",
		an_older_file_gets_the_new_columns);
	fixture_add(&rows, "a second recorder on the same file is refused", two_recorders_do_not_share_a_file);
	ROWS_ADD(&rows, refusals, check_refusal);
	ROWS_ADD(&rows, shifts, check_shift);
	return rows_run(&rows, "run file");
}
