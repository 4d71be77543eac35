/* The tracking file as a store: exact text, refusals, appending, failures. */
#include "fixture.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const struct store_ops *const ops = &store_tracking_file;

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	char *text = calloc(1, 65536);
	assert_true(fread(text, 1, 65535, file) < 65535);
	fclose(file);
	return text;
}

#define HEAD                                                                                                           \
	"ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,gpu_ram_system_capacity,system_core_count,"               \
	"n_expected_cores,system_gpu_count,n_expected_gpus\r\n"
#define NAMES                                                                                                          \
	"main_ram,descendants_ram,combined_ram,system_ram,main_gpu_ram,descendants_gpu_ram,combined_gpu_ram,"          \
	"system_gpu_ram,gpu_sum_utilization_percent,gpu_hardware_utilization_percent,main_n_threads,"                  \
	"descendants_n_threads,combined_n_threads,cpu_system_sum_utilization_percent,"                                 \
	"cpu_system_hardware_utilization_percent,cpu_main_sum_utilization_percent,"                                    \
	"cpu_main_hardware_utilization_percent,cpu_descendants_sum_utilization_percent,"                               \
	"cpu_descendants_hardware_utilization_percent,cpu_combined_sum_utilization_percent,"                           \
	"cpu_combined_hardware_utilization_percent,timestamp\r\n"
#define ROW(timestamp)                                                                                                          \
	"1.0,2.0,3.0,16.0,5000.0,15000.0,20000.0,30000.0,70.0,70.0,3,5,8,300.0,37.5,50.0,12.5,100.0,25.0,150.0,37.5," timestamp \
	"\r\n"

static const char *csv_path(struct fixture *f)
{
	snprintf(f->path, sizeof(f->path), "%s/track.csv", f->folder);
	return f->path;
}

static const char *sqlite_path(struct fixture *f)
{
	snprintf(f->path, sizeof(f->path), "%s/track.sqlite", f->folder);
	return f->path;
}

static void assert_content(const char *path, const char *expected)
{
	char *text = read_file(path);
	assert_string_equal(text, expected);
	free(text);
}

static void the_csv_layout(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = csv_path(f)}, 3);
	assert_content(f->path,
		HEAD "gigabytes,megabytes,hours,64.0,80000.0,8,4,1,1\r\n" NAMES ROW("1700000000.1")
			ROW("1700000000.2"));
	fixture_assert_only(f, "track.csv");
}

static void unknown_is_an_empty_field(void **state)
{
	struct fixture *f = *state;
	f->header.n_devices = 1;
	f->header.memory_total_bytes = f->header.gpu_memory_total_bytes = VALUE_MISSING;
	void *store = fixture_open(ops, &(struct store_open_options){.path = csv_path(f)}, &f->header);
	batch_clear(&f->batch);
	batch_add(&f->batch, METRIC_RUN, fixture_t_ns(0), 0, 0)->values[RUN_MAIN_RSS] = 400000000;
	batch_add(&f->batch, METRIC_RUN, fixture_t_ns(1), 0, 0)->values[RUN_MAIN_RSS] = 500000000;
	assert_int_equal(ops->write(store, &(struct store_delivery){.batch = &f->batch}, NULL), 0);
	fixture_close(ops, store, false);
	assert_content(f->path,
		HEAD "gigabytes,megabytes,hours,,,8,4,1,0\r\n" NAMES "0.5,,,,,,,,,,,,,,,,,,,,,1700000000.1\r\n");
}

// As in sampling every millisecond, where only sensors are read at each tick.
static void samples_of_nothing_are_no_rows(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = csv_path(f)}, &f->header);
	batch_clear(&f->batch);
	for (int64_t i = 0; i < 30; i++) {
		struct record *record = batch_add(&f->batch, METRIC_RUN, fixture_t_ns(i), 0, 0);
		if (i % 10 == 0)
			record->values[RUN_MAIN_RSS] = 500000000;
	}
	assert_int_equal(ops->write(store, &(struct store_delivery){.batch = &f->batch}, NULL), 0);
	fixture_close(ops, store, false);
	char *text = read_file(f->path);
	size_t lines = 0;
	for (const char *at = text; *at != '\0'; at++)
		lines += *at == '\n';
	free(text);
	assert_int_equal(lines, 3 + 2); // of three samples with values the first gives no row
}

static void batches_can_be_cut_anywhere(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = csv_path(f)}, &f->header);
	for (int64_t i = 0; i < 3; i++)
		assert_int_equal(fixture_write(f, ops, store, i, 1, 0), 0);
	char *text = read_file(f->path); // already written: a crash loses no batch
	assert_non_null(strstr(text, "1700000000.2\r\n"));
	free(text);
	struct store_footer footer = fixture_footer(3);
	assert_int_equal(ops->finish(store, &footer, NULL), 0);
	fixture_close(ops, store, false);
	assert_content(f->path,
		HEAD "gigabytes,megabytes,hours,64.0,80000.0,8,4,1,1\r\n" NAMES ROW("1700000000.1")
			ROW("1700000000.2"));
}

static void a_single_sample_is_a_row(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = csv_path(f)}, &f->header);
	assert_int_equal(fixture_write(f, ops, store, 1, 1, 0), 0);
	struct store_footer footer = fixture_footer(1);
	assert_int_equal(ops->finish(store, &footer, NULL), 0);
	fixture_close(ops, store, false);
	// Machine-wide percentages need two readings; the target's counters began at 0.
	assert_content(f->path,
		HEAD "gigabytes,megabytes,hours,64.0,80000.0,8,4,1,1\r\n" NAMES
		     "1.0,2.0,3.0,16.0,5000.0,15000.0,20000.0,30000.0,70.0,70.0,3,5,8,,,50.0,12.5,100.0,25.0,"
		     "150.0,37.5,1700000000.1\r\n");
}

static void append_continues(void **state)
{
	struct fixture *f = *state;
	const struct store_open_options append = {.path = csv_path(f), .append = true};
	fixture_record(f, ops, &append, 2);
	FILE *file = fopen(f->path, "a"); // as left by a recorder killed while writing
	fputs("1.0,2.0,3.", file);
	fclose(file);
	f->header.anchor_mono_ns += 60 * NS_PER_S;
	f->header.anchor_wall_ns += 60 * NS_PER_S;
	void *store = fixture_open(ops, &append, &f->header);
	assert_int_equal(fixture_write(f, ops, store, 0, 2, 60 * NS_PER_S), 0);
	fixture_close(ops, store, false);
	assert_content(f->path,
		HEAD "gigabytes,megabytes,hours,64.0,80000.0,8,4,1,1\r\n" NAMES ROW("1700000000.1")
			ROW("1700000060.1"));
}

static void expect_refusal(struct fixture *f, const struct store_open_options *options, int code, const char *says)
{
	struct wattle_error error = {0};
	void *store = calloc(1, ops->state_size);
	assert_int_equal(ops->open(store, options, &f->header, &error), code);
	assert_non_null(strstr(error.text, says));
	fixture_close(ops, store, true);
}

static void refusals(void **state)
{
	struct fixture *f = *state;
	char path[160];
	snprintf(path, sizeof(path), "%s/track.txt", f->folder);
	expect_refusal(f, &(struct store_open_options){.path = path}, -EINVAL, "ends in .csv or .sqlite");
	expect_refusal(f, &(struct store_open_options){.path = ".csv"}, -EINVAL, "ends in .csv or .sqlite");
	fixture_record(f, ops, &(struct store_open_options){.path = csv_path(f)}, 2);
	expect_refusal(f, &(struct store_open_options){.path = f->path}, -EEXIST, "exists: use --overwrite");
	f->header.ram_unit = "bytes";
	expect_refusal(f, &(struct store_open_options){.path = f->path, .append = true}, -EINVAL,
		"has units other than bytes");
	FILE *file = fopen(f->path, "w");
	fputs("a,b\r\n1,2\r\n", file);
	fclose(file);
	expect_refusal(f, &(struct store_open_options){.path = f->path, .append = true}, -EINVAL,
		"is not a tracking file with these columns");
	fixture_record(f, ops, &(struct store_open_options){.path = f->path, .overwrite = true}, 2);
	fixture_assert_only(f, "track.csv");
}

static void discard_brings_the_old_file_back(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = csv_path(f)}, 2);
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path, .overwrite = true}, &f->header);
	fixture_close(ops, store, true);
	char *text = read_file(f->path);
	assert_non_null(strstr(text, "1700000000.1"));
	free(text);
	fixture_assert_only(f, "track.csv");
}

static void a_batch_is_all_or_nothing(void **state)
{
	struct fixture *f = *state;
	csv_path(f);
	pid_t child = fork();
	if (child == 0) { // the limit cannot be raised again for the test program itself
		signal(SIGXFSZ, SIG_IGN);
		void *store = calloc(1, ops->state_size);
		int failed = ops->open(store, &(struct store_open_options){.path = f->path}, &f->header, NULL) != 0;
		failed |= fixture_write(f, ops, store, 0, 2, 0) != 0;
		struct stat before, after;
		failed |= stat(f->path, &before) != 0;
		struct rlimit limit = {.rlim_cur = (rlim_t)before.st_size + 200, .rlim_max = RLIM_INFINITY};
		failed |= setrlimit(RLIMIT_FSIZE, &limit) != 0;
		failed |= fixture_write(f, ops, store, 2, 2, 0) != -EFBIG;
		failed |= stat(f->path, &after) != 0 || after.st_size != before.st_size;
		limit.rlim_cur = RLIM_INFINITY;
		failed |= setrlimit(RLIMIT_FSIZE, &limit) != 0;
		failed |= fixture_write(f, ops, store, 2, 2, 0) != 0;
		ops->close(store, false);
		_exit(failed);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_content(f->path,
		HEAD "gigabytes,megabytes,hours,64.0,80000.0,8,4,1,1\r\n" NAMES ROW("1700000000.1") ROW("1700000000.2")
			ROW("1700000000.3"));
}

static void a_removed_file_is_reported(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = csv_path(f)}, &f->header);
	assert_int_equal(unlink(f->path), 0);
	struct store_footer footer = fixture_footer(1);
	assert_int_equal(ops->finish(store, &footer, NULL), -ENOENT);
	fixture_close(ops, store, false);
}

static void query(const char *path, const char *sql, char *out, size_t size)
{
	sqlite3 *db;
	sqlite3_stmt *s;
	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	snprintf(out, size, "%s", (const char *)sqlite3_column_text(s, 0));
	sqlite3_finalize(s);
	sqlite3_close(db);
}

static void the_sqlite_layout(void **state)
{
	static const struct {
		const char *sql, *answer;
	} rows[] = {
		{"SELECT group_concat(name || ' ' || type) FROM pragma_table_info('static_data')",
			"ram_unit VARCHAR,gpu_ram_unit VARCHAR,time_unit VARCHAR,ram_system_capacity FLOAT,"
			"gpu_ram_system_capacity FLOAT,system_core_count INTEGER,n_expected_cores INTEGER,"
			"system_gpu_count INTEGER,n_expected_gpus INTEGER"},
		{"SELECT ram_unit || ' ' || ram_system_capacity || ' ' || n_expected_cores FROM static_data",
			"gigabytes 64.0 4"},
		{"SELECT count(*) FROM data", "2"},
		{"SELECT count(*) FROM pragma_table_info('data')", "22"},
		{"SELECT group_concat(name) FROM pragma_table_info('data') WHERE type = 'INTEGER'",
			"main_n_threads,descendants_n_threads,combined_n_threads"},
		{"SELECT typeof(main_n_threads) || typeof(main_ram) || typeof(timestamp) FROM data", "integerrealreal"},
		{"SELECT cpu_combined_sum_utilization_percent || ' ' || gpu_sum_utilization_percent FROM data",
			"150.0 70.0"},
		{"SELECT printf('%.1f', max(timestamp)) FROM data", "1700000000.2"},
		{"PRAGMA journal_mode", "delete"},
	};
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = sqlite_path(f)}, 3);
	fixture_assert_only(f, "track.sqlite");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char answer[512];
		query(f->path, rows[i].sql, answer, sizeof(answer));
		assert_string_equal(answer, rows[i].answer);
	}
}

static void append_continues_sqlite(void **state)
{
	struct fixture *f = *state;
	const struct store_open_options append = {.path = sqlite_path(f), .append = true};
	fixture_record(f, ops, &append, 2);
	fixture_record(f, ops, &append, 3);
	char answer[64];
	query(f->path, "SELECT (SELECT count(*) FROM data) || ' ' || (SELECT count(*) FROM static_data)", answer,
		sizeof(answer));
	assert_string_equal(answer, "3 1");
	f->header.time_unit = "days";
	expect_refusal(f, &append, -EINVAL, "has units other than");
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path, .overwrite = true}, 1);
	expect_refusal(f, &append, -EINVAL, "is not a tracking file");
}

int main(void)
{
	struct rows rows = {0};
	fixture_add(&rows, "CSV: the layout, byte for byte", the_csv_layout);
	fixture_add(&rows, "CSV: unknown is an empty field", unknown_is_an_empty_field);
	fixture_add(&rows, "CSV: a sample that says nothing is no row", samples_of_nothing_are_no_rows);
	fixture_add(&rows, "CSV: rows don't depend on how batches are cut", batches_can_be_cut_anywhere);
	fixture_add(&rows, "CSV: a single sample is a row", a_single_sample_is_a_row);
	fixture_add(&rows, "CSV: appending continues behind the last whole line", append_continues);
	fixture_add(&rows, "wrong endings, existing files, other columns and units are refused", refusals);
	fixture_add(&rows, "if the command never starts the replaced file comes back",
		discard_brings_the_old_file_back);
	fixture_add(&rows, "CSV: a batch is all or nothing and may be tried again", a_batch_is_all_or_nothing);
	fixture_add(&rows, "a removed file is reported", a_removed_file_is_reported);
	fixture_add(&rows, "SQLite: tables, types and values", the_sqlite_layout);
	fixture_add(&rows, "SQLite: appending, other units and other databases", append_continues_sqlite);
	return rows_run(&rows, "tracking file");
}
