/* Samples read directly from the pages of a file, compared with SQL. */
#include "fixture.h"
#include "store/run_read.h"
#include "store/sql.h"

#include <sqlite3.h>

enum { SAMPLES = 700 };

static void execute(const char *path, const char *sql)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	char *why = NULL;
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
	sqlite3_close(db);
}

static void record(struct fixture *f)
{
	fixture_record(f, &store_run_file, &(struct store_open_options){.path = f->path}, SAMPLES);
}

static int count(void *data, const int64_t *values)
{
	assert_true(value_ok(values[0]));
	++*(int *)data;
	return 0;
}

static int read_pages(const char *path, enum metric_scope scope, const char *columns, int *ret_n)
{
	sqlite3 *db;
	*ret_n = 0;
	assert_int_equal(sql_open_reader(path, &db, NULL), 0);
	assert_int_equal(sql_exec(db, "BEGIN; SELECT * FROM run"), SQLITE_OK);
	int r = table_pages_read(db, scope, columns, count, ret_n);
	sqlite3_close(db);
	return r;
}

static void expect_same_column(struct run_values a, struct run_values b, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (values_at(a, i) != values_at(b, i))
			fail_msg("%s of row %zu: %lld by pages, %lld by SQL", name, i, (long long)values_at(a, i),
				(long long)values_at(b, i));
}

static void expect_same(const struct run *a, const struct run *b)
{
	size_t n;
	const struct metric *metrics = metric_table(METRIC_RUN, &n);
	assert_int_equal(a->n, b->n);
	expect_same_column((struct run_values){a->t_ns, NULL}, (struct run_values){b->t_ns, NULL}, a->n, "t_ns");
	for (size_t m = 0; m < n; m++)
		expect_same_column(run_column(a, m), run_column(b, m), a->n, metrics[m].name);
	metrics = metric_table(METRIC_DEVICE, &n);
	for (size_t d = 0; d < a->n_devices; d++) {
		const struct run_device *x = &a->devices[d], *y = &b->devices[d];
		assert_int_equal(x->n, y->n);
		expect_same_column((struct run_values){x->t_ns, NULL}, (struct run_values){y->t_ns, NULL}, x->n,
			"t_ns");
		for (size_t m = 0; m < n; m++)
			expect_same_column(device_column(x, m), device_column(y, m), x->n, metrics[m].name);
	}
}

static const struct same_row {
	const char *teaches, *sql;
} same_rows[] = {
	{"file as recorded: equal to SQL", ""},
	{"file without samples: equal to SQL", "DELETE FROM sample; DELETE FROM device_sample"},
	{"one row: equal to SQL",
		"DELETE FROM sample WHERE t_ns > 1000000000000; DELETE FROM device_sample WHERE t_ns > 1000000000000"},
	{"integers of each size: equal to SQL",
		"UPDATE device_sample SET power_mw = (1 << (t_ns / 100000000 % 63)) - t_ns / 100000000 % 3, "
		"energy_uj = -(1 << (t_ns / 100000000 % 63)), temperature_c = t_ns / 100000000 % 2"},
	{"texts, reals and blobs as missing values: equal to SQL",
		"UPDATE sample SET main_rss_bytes = 1.5, main_cpu_ns = 'many', main_threads = x'0102', "
		"system_cpu_busy_ns = 1e300; UPDATE device_sample SET power_mw = 0.5 WHERE t_ns % 3 = 0"},
	{"records with overflow pages: equal to SQL",
		"UPDATE sample SET main_cpu_ns = hex(zeroblob(t_ns / 100000000 % 7 * 3000)); "
		"UPDATE device_sample SET temperature_c = hex(zeroblob(t_ns / 100000000 % 5 * 900))"},
	{"pages of 512 bytes: equal to SQL",
		"UPDATE sample SET main_cpu_ns = hex(zeroblob(t_ns / 100000000 % 7 * 90)); "
		"UPDATE device_sample SET temperature_c = hex(zeroblob(t_ns / 100000000 % 5 * 90)); "
		"PRAGMA page_size = 512; VACUUM"},
	{"pages of 64 KiB: equal to SQL", "PRAGMA page_size = 65536; VACUUM"},
	{"table with a missing column: equal to SQL",
		"ALTER TABLE sample DROP COLUMN main_cpu_ns; ALTER TABLE sample DROP COLUMN processes"},
	{"table with an additional column of integers: equal to SQL", "ALTER TABLE sample ADD COLUMN later_ns INTEGER"},
};

static void check_same(void **state)
{
	const struct same_row *row = *state;
	void *fixture = NULL;
	struct run by_pages, by_sql;
	int n, n_devices;
	assert_int_equal(fixture_setup(&fixture), 0);
	struct fixture *f = fixture;
	record(f);
	execute(f->path, row->sql);
	assert_int_equal(read_pages(f->path, METRIC_RUN, "t_ns", &n), 0);
	assert_int_equal(read_pages(f->path, METRIC_DEVICE, "device, 1, t_ns", &n_devices), 0);
	fixture_load(f->path, &by_pages);
	assert_int_equal(by_pages.n, n);
	assert_int_equal(by_pages.devices[0].n + by_pages.devices[1].n, n_devices);
	execute(f->path, "PRAGMA journal_mode = WAL"); // which does not change the pages
	assert_int_equal(read_pages(f->path, METRIC_RUN, "t_ns", &n), TABLE_PAGES_OTHER);
	fixture_load(f->path, &by_sql);
	expect_same(&by_pages, &by_sql);
	run_finish(&by_pages);
	run_finish(&by_sql);
	fixture_teardown(&fixture);
}

// Where records do not contain a row's values unchanged and in order, SQL reads them.
static const struct other_row {
	const char *teaches, *sql;
} other_rows[] = {
	{"default value, not stored in records: read by SQL",
		"ALTER TABLE sample ADD COLUMN later_ns INTEGER DEFAULT 7"},
	{"column of another type: read by SQL", "ALTER TABLE sample ADD COLUMN later_ns TEXT"},
	{"keys in another order: read by SQL",
		"DROP TABLE sample; CREATE TABLE sample (t_ns INTEGER PRIMARY KEY DESC, main_cpu_ns INTEGER)"},
	{"key that is not the row number: read by SQL",
		"DROP TABLE sample; CREATE TABLE sample (t_ns INTEGER NOT NULL, main_cpu_ns INTEGER, PRIMARY KEY (t_ns))"},
};

static void check_other(void **state)
{
	const struct other_row *row = *state;
	void *fixture = NULL;
	int n;
	assert_int_equal(fixture_setup(&fixture), 0);
	struct fixture *f = fixture;
	record(f);
	execute(f->path, row->sql);
	assert_int_equal(read_pages(f->path, METRIC_RUN, "t_ns", &n), TABLE_PAGES_OTHER);
	assert_int_equal(n, 0);
	fixture_teardown(&fixture);
}

/* ---- damaged pages ---- */

static long root_of(const char *path, const char *table, long *ret_page_size)
{
	sqlite3 *db;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	char sql[120];
	snprintf(sql, sizeof(sql), "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", table);
	long root = (long)sql_read_i64(db, sql, 0);
	*ret_page_size = (long)sql_read_i64(db, "PRAGMA page_size", 0);
	sqlite3_close(db);
	return root;
}

// The page has all its cells at the position of the first one.
static void repeat_cell(unsigned char *page, uint32_t number)
{
	(void)number;
	size_t head = page[0] == 0x05 || page[0] == 0x02 ? 12 : 8, n = (size_t)page[3] << 8 | page[4];
	for (size_t i = 1; i < n; i++)
		memcpy(page + head + 2 * i, page + head, 2);
}

static void lead_to_itself(unsigned char *page, uint32_t number)
{
	for (int i = 0; i < 4; i++)
		page[8 + i] = (unsigned char)(number >> (24 - 8 * i));
}

static void count_too_many_cells(unsigned char *page, uint32_t number)
{
	(void)number;
	page[3] = page[4] = 0xff;
}

static void point_at_the_end(unsigned char *page, uint32_t number)
{
	(void)number;
	page[12] = 0x0f;
	page[13] = 0xff;
}

static void become_an_index(unsigned char *page, uint32_t number)
{
	(void)number;
	page[0] = 0x02;
}

static const struct broken_row {
	const char *teaches;
	void (*damage)(unsigned char *page, uint32_t number); // the root of table sample, an interior page
} broken_rows[] = {
	{"page that links to itself: reading ends", lead_to_itself},
	{"overlapping cells: at most a page's worth of rows", repeat_cell},
	{"more cells than fit into a page: refused", count_too_many_cells},
	{"cell at the end of its page: refused", point_at_the_end},
	{"page of another kind of tree: refused", become_an_index},
};

static void check_broken(void **state)
{
	const struct broken_row *row = *state;
	void *fixture = NULL;
	unsigned char page[4096];
	long size;
	int n;
	assert_int_equal(fixture_setup(&fixture), 0);
	struct fixture *f = fixture;
	record(f);
	long root = root_of(f->path, "sample", &size);
	assert_int_equal(size, sizeof(page));
	int fd = open(f->path, O_RDWR);
	assert_int_equal(pread(fd, page, sizeof(page), (root - 1) * size), size);
	assert_int_equal(page[0], 0x05);
	row->damage(page, (uint32_t)root);
	assert_int_equal(pwrite(fd, page, sizeof(page), (root - 1) * size), size);
	close(fd);
	int r = read_pages(f->path, METRIC_RUN, "t_ns", &n);
	assert_int_equal(r, row->damage == repeat_cell && r == 0 ? 0 : SQLITE_CORRUPT);
	assert_true(n <= 20 * SAMPLES);
	struct wattle_error error = {0};
	struct run run;
	if (r != 0) {
		assert_int_equal(run_load(f->path, &run, &error), -EINVAL);
		assert_non_null(strstr(error.text, "is damaged: database disk image is malformed"));
	}
	fixture_teardown(&fixture);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, same_rows, check_same);
	ROWS_ADD(&rows, other_rows, check_other);
	ROWS_ADD(&rows, broken_rows, check_broken);
	return rows_run(&rows, "samples from pages");
}
