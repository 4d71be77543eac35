/* Files that are not, or no longer, run files. */
#include "fixture.h"

#include <sqlite3.h>

static void expect_refusal(const char *path, int code, const char *says)
{
	struct run run = {.n = 12345};
	struct wattle_error error = {0};
	assert_int_equal(run_load(path, &run, &error), code);
	assert_non_null(strstr(error.text, says));
	assert_non_null(strstr(error.text, path));
	assert_int_equal(run.n, 12345); // untouched
}

static const struct content {
	const char *teaches, *text;
	size_t size;
} contents[] = {
	{"empty file: refused", "", 0},
	{"text file: refused", "main_ram,descendants_ram\r\n1,2\r\n", 28},
	{"magic number only: refused", "SQLite format 3", 16},
};

static void check_content(void **state)
{
	const struct content *row = *state;
	void *fixture = NULL;
	assert_int_equal(fixture_setup(&fixture), 0);
	struct fixture *f = fixture;
	FILE *file = fopen(f->path, "w");
	assert_int_equal(fwrite(row->text, 1, row->size, file), row->size);
	fclose(file);
	expect_refusal(f->path, -EINVAL, "is not a wattle run file");
	fixture_teardown(&fixture);
}

static void no_file(void **state)
{
	struct fixture *f = *state;
	expect_refusal(f->path, -ENOENT, "No such file or directory");
	expect_refusal(f->folder, -EINVAL, "is not a wattle run file but a folder");
}

static void execute(const char *path, const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void another_database(void **state)
{
	struct fixture *f = *state;
	execute(f->path, "CREATE TABLE run (key, value)");
	expect_refusal(f->path, -EINVAL, "is not a wattle run file");
}

static void a_newer_schema(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, 1);
	execute(f->path, "PRAGMA user_version = 2");
	expect_refusal(f->path, -ENOTSUP, "newer wattle (schema 2, this wattle supports up to 1)");
}

static void a_lost_table(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, 1);
	execute(f->path, "DROP TABLE device_sample");
	expect_refusal(f->path, -EINVAL, "is damaged: no such table: device_sample");
}

/* The calibration of the fixture's GPU, 300.003 W at its fourth sample: implausible factors are not applied. */
static const struct gain_row {
	const char *teaches, *sql;
	double gain; // NaN: not calibrated
	int64_t power_mw;
} gains[] = {
	{"GPU calibration: corrects the readings", "gain = 1.1, gain_error = 0.02", 1.1, 330003},
	{"implausibly small factor: ignored", "gain = 0.001, gain_error = 0.02", (double)NAN, 300003},
	{"implausibly large factor: ignored", "gain = 1e6, gain_error = 0.02", (double)NAN, 300003},
	{"negative factor: ignored", "gain = -1, gain_error = 0.02", (double)NAN, 300003},
	{"text as a factor: ignored", "gain = 'many', gain_error = 0.02", (double)NAN, 300003},
	{"factor without an error: ignored", "gain = 1.1, gain_error = NULL", (double)NAN, 300003},
	{"implausibly large error: the factor is ignored", "gain = 1.1, gain_error = 9", (double)NAN, 300003},
};

static void check_gain(void **state)
{
	const struct gain_row *row = *state;
	void *fixture = NULL;
	struct run run;
	char sql[160];
	assert_int_equal(fixture_setup(&fixture), 0);
	struct fixture *f = fixture;
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, 4);
	snprintf(sql, sizeof(sql), "UPDATE device SET %s, gain_source = 'made' WHERE id = 1", row->sql);
	execute(f->path, sql);
	fixture_load(f->path, &run);
	assert_true(isnan(row->gain) ? isnan(run.devices[1].gain) : run.devices[1].gain == row->gain);
	assert_int_equal(device_value(&run.devices[1], DEVICE_POWER, 3), row->power_mw);
	assert_string_equal(run.devices[1].gain_source, isnan(row->gain) ? "" : "made");
	run_finish(&run);
	fixture_teardown(&fixture);
}

static void odd_values(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, 2);
	execute(f->path,
		"UPDATE sample SET main_rss_bytes = 'many'; UPDATE device SET kind = 'dilithium', provenance = 'sworn' "
		"WHERE id = 0; UPDATE device_sample SET device = 99 WHERE device = 1; "
		"UPDATE run SET value = '1e999' WHERE key = 'pue'; UPDATE process SET command = NULL");
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run_value(&run, RUN_MAIN_RSS, 0), VALUE_MISSING);
	assert_int_equal(run.devices[0].kind, DOMAIN_KINDS);
	assert_int_equal(run.devices[0].provenance, PROVENANCE_ESTIMATED);
	assert_int_equal(run.devices[1].n, 0);
	assert_true(isnan(run_metadata_double(&run, "pue")));
	run_finish(&run);
}

// Loads possibly damaged files: success or an error, never a crash or an endless loop.
static bool survives(const char *path)
{
	struct run run;
	struct wattle_error error = {0};
	int r = run_load(path, &run, &error);
	if (r == 0)
		run_finish(&run);
	else
		assert_true(error.text[0] != '\0' && error.code == r);
	return r == 0;
}

static void a_file_cut_short(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, 500);
	struct stat st;
	assert_int_equal(stat(f->path, &st), 0);
	int refused = 0;
	for (off_t size = st.st_size - 1; size > 0; size -= 1500) {
		assert_int_equal(truncate(f->path, size), 0);
		refused += !survives(f->path);
	}
	assert_true(refused > 0);
}

static void bytes_gone_wrong(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, 200);
	int fd = open(f->path, O_RDWR);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	uint32_t random = 1;
	int refused = 0;
	for (int i = 0; i < 400; i++) {
		random = random * 1664525 + 1013904223;
		off_t at = (off_t)(random >> 4) % st.st_size;
		unsigned char old, wrong = (unsigned char)(random >> 24);
		assert_int_equal(pread(fd, &old, 1, at), 1);
		assert_int_equal(pwrite(fd, &wrong, 1, at), 1);
		refused += !survives(f->path);
		if (i % 4 != 0) // a quarter of the damage accumulates
			assert_int_equal(pwrite(fd, &old, 1, at), 1);
	}
	close(fd);
	assert_true(refused > 0);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, contents, check_content);
	ROWS_ADD(&rows, gains, check_gain);
	fixture_add(&rows, "a missing file and a folder are named as such", no_file);
	fixture_add(&rows, "another program's database is no run file", another_database);
	fixture_add(&rows, "a newer schema is refused, with what to do", a_newer_schema);
	fixture_add(&rows, "a lost table is damage", a_lost_table);
	fixture_add(&rows, "values of the wrong type are missing values", odd_values);
	fixture_add(&rows, "a file cut short never crashes the reader", a_file_cut_short);
	fixture_add(&rows, "wrong bytes never crash the reader", bytes_gone_wrong);
	return rows_run(&rows, "reading run files");
}
