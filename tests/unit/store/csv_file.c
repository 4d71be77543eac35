#include "store/tracking.h"

#include "fixture.h"

static void path_of(const struct fixture *f, char *path, size_t size)
{
	snprintf(path, size, "%s/f.csv", f->folder);
}

static FILE *start(const struct fixture *f, char *path, size_t size)
{
	path_of(f, path, size);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	return file;
}

// Two megabytes, so that records cross the boundaries of pieces, some with line breaks and commas inside.
static void across_pieces(void **state)
{
	struct fixture *f = *state;
	enum { RECORDS = 50000 };
	char path[160];
	FILE *out = start(f, path, sizeof(path));
	fputs("\xef\xbb\xbfnumber,text\r\n", out);
	for (int i = 0; i < RECORDS; i++)
		fprintf(out, i % 7 == 0 ? "%d,\"line %d\n\"\"and\"\", more\"\r\n" : "%d,text with \"quotes\" %d\n", i,
			i);
	fclose(out);
	struct csv_file file;
	char *fields[2], expected[80];
	struct wattle_error error = {0};
	assert_int_equal(csv_file_open(&file, path, &error), 0);
	assert_int_equal(csv_file_next(&file, fields, 2, &error), 2);
	assert_string_equal(fields[0], "number");
	for (int i = 0; i < RECORDS; i++) {
		assert_int_equal(csv_file_next(&file, fields, 2, &error), 2);
		assert_int_equal(atoi(fields[0]), i);
		snprintf(expected, sizeof(expected), i % 7 == 0 ? "line %d\n\"and\", more" : "text with \"quotes\" %d",
			i);
		assert_string_equal(fields[1], expected);
	}
	assert_int_equal(csv_file_next(&file, fields, 2, &error), 0);
	assert_int_equal(csv_file_next(&file, fields, 2, &error), 0);
	assert_int_equal(file.csv.line, 1 + RECORDS + 1 + (RECORDS - 2) / 7); // beginning of the last record
	csv_file_close(&file);
}

static void a_record_longer_than_a_piece(void **state)
{
	struct fixture *f = *state;
	enum { LENGTH = 3000000 };
	char path[160];
	FILE *out = start(f, path, sizeof(path));
	fputs("a,", out);
	for (int i = 0; i < LENGTH; i++)
		fputc('x', out);
	fputs("\nb,c", out);
	fclose(out);
	struct csv_file file;
	char *fields[2];
	assert_int_equal(csv_file_open(&file, path, NULL), 0);
	assert_int_equal(csv_file_next(&file, fields, 2, NULL), 2);
	assert_int_equal(strlen(fields[1]), LENGTH);
	assert_int_equal(csv_file_next(&file, fields, 2, NULL), 2);
	assert_string_equal(fields[1], "c");
	assert_int_equal(csv_file_next(&file, fields, 2, NULL), 0);
	csv_file_close(&file);
}

static void refused(void **state)
{
	struct fixture *f = *state;
	char path[160], *fields[2];
	struct csv_file file;
	struct wattle_error error = {0};
	FILE *out = start(f, path, sizeof(path));
	fwrite("a,b\nc\0,d\n", 1, 9, out);
	fclose(out);
	assert_int_equal(csv_file_open(&file, path, &error), 0);
	assert_int_equal(csv_file_next(&file, fields, 2, &error), -EINVAL);
	assert_non_null(strstr(error.text, "NUL bytes"));
	csv_file_close(&file);
	assert_int_equal(csv_file_open(&file, "/nowhere/f.csv", &error), -ENOENT);
	csv_file_close(&file);
	assert_int_equal(csv_file_open(&file, f->folder, &error), 0);
	assert_int_equal(csv_file_next(&file, fields, 2, &error), -EISDIR);
	csv_file_close(&file);
	out = start(f, path, sizeof(path));
	fclose(out);
	assert_int_equal(csv_file_open(&file, path, &error), 0);
	assert_int_equal(csv_file_next(&file, fields, 2, &error), 0);
	csv_file_close(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(across_pieces, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(a_record_longer_than_a_piece, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(refused, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests_name("CSV files in pieces", tests, NULL, NULL);
}
