#include "base/buf.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct csv_row {
	const char *teaches, *text, *field;
} csv_rows[] = {
	{"csv: plain text stays plain", "abc def", "abc def"},
	{"csv: empty stays empty", "", ""},
	{"csv: a comma needs quotes", "a,b", "\"a,b\""},
	{"csv: quotes are doubled", "say \"hi\"", "\"say \"\"hi\"\"\""},
	{"csv: a line break stays inside one field", "a\nb", "\"a\nb\""},
	{"csv: a carriage return too", "a\rb", "\"a\rb\""},
};

static const struct utf8_row {
	const char *teaches, *text, *expected;
} utf8_rows[] = {
	{"utf8: nothing", "", ""},
	{"utf8: characters of one to four bytes stay", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
	{"utf8: an invalid lead byte is replaced",
		"a\xff"
		"b",
		"a\xef\xbf\xbd"
		"b"},
	{"utf8: each byte of a truncated character is replaced", "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
};

static void check_utf8(void **state)
{
	const struct utf8_row *row = *state;
	struct buf b;
	buf_init(&b, 1000);
	buf_utf8(&b, row->text);
	assert_string_equal(b.size > 0 ? b.data : "", row->expected);
	buf_finish(&b);
}

static void check_csv(void **state)
{
	const struct csv_row *row = *state;
	struct buf b;
	buf_init(&b, 1000);
	buf_csv(&b, row->text);
	assert_int_equal(b.size, strlen(row->field));
	assert_string_equal(b.size > 0 ? b.data : "", row->field);
	buf_finish(&b);
}

static void numbers(void **state)
{
	struct buf b;
	buf_init(&b, 1000);
	buf_i64(&b, INT64_MIN);
	buf_char(&b, ' ');
	buf_u64(&b, UINT64_MAX);
	buf_char(&b, ' ');
	buf_double(&b, 0.1);
	buf_char(&b, ' ');
	buf_fixed(&b, 2.0 / 3, 4);
	buf_printf(&b, " %d%%", 7);
	assert_string_equal(b.data, "-9223372036854775808 18446744073709551615 0.1 0.6667 7%");
	buf_clear(&b);
	buf_fixed(&b, -1.7976931348623157e308, 17);
	assert_int_equal(b.size, 1 + 309 + 1 + 17);
	buf_finish(&b);
}

static void the_ceiling_is_sticky(void **state)
{
	struct buf b;
	buf_init(&b, 5);
	buf_str(&b, "12345");
	assert_int_equal(b.failed, 0);
	buf_char(&b, '6');
	assert_int_equal(b.failed, -EFBIG);
	buf_str(&b, "");
	buf_printf(&b, "%s", "x");
	assert_string_equal(b.data, "12345");
	assert_null(buf_take(&b));
	buf_clear(&b);
	buf_str(&b, "again");
	assert_string_equal(b.data, "again");
	buf_finish(&b);
}

static void sizes_that_overflow(void **state)
{
	struct buf b;
	buf_init(&b, 100);
	buf_str(&b, "ab");
	buf_add(&b, "x", SIZE_MAX - 1);
	assert_int_equal(b.failed, -EFBIG);
	assert_string_equal(b.data, "ab");
	buf_finish(&b);
}

static void grows_far(void **state)
{
	enum { COUNT = 100000 };
	struct buf b;
	buf_init(&b, COUNT);
	for (int i = 0; i < COUNT; i++)
		buf_char(&b, (char)('a' + i % 26));
	assert_int_equal(b.failed, 0);
	assert_int_equal(strlen(b.data), COUNT);
	char *taken = buf_take(&b);
	assert_null(b.data);
	assert_int_equal(taken[COUNT - 1], 'a' + (COUNT - 1) % 26);
	free(taken);
	buf_finish(&b);
}

static void columns_count_characters(void **state)
{
	struct buf b;
	buf_init(&b, 100);
	buf_str(&b, "µJ");
	buf_pad_to(&b, 0, 4);
	buf_char(&b, '|');
	assert_string_equal(b.data, "µJ  |");
	buf_pad_to(&b, 0, 2);
	assert_string_equal(b.data, "µJ  |");
	buf_finish(&b);
}

static void an_empty_one_is_taken_as_text(void **state)
{
	struct buf b;
	buf_init(&b, 10);
	char *text = buf_take(&b);
	assert_string_equal(text, "");
	free(text);
}

/* Files: each test gets an empty folder. */
struct folder {
	char path[64];
	struct buf text;
};

static void folder_make(struct folder *folder)
{
	strcpy(folder->path, "/tmp/wattle-buf-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	buf_init(&folder->text, 1000);
	buf_str(&folder->text, "new");
}

static void folder_remove(struct folder *folder)
{
	buf_finish(&folder->text);
	assert_int_equal(rmdir(folder->path), 0); // Fails if a temporary file was left behind.
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void assert_file(const char *path, const char *expected)
{
	char text[64] = "";
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	size_t n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	assert_string_equal(text, expected);
}

static void a_file_is_replaced_whole(void **state)
{
	struct folder folder;
	folder_make(&folder);
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/report", folder.path);
	put(path, "something older and longer");
	assert_int_equal(buf_write_file(&folder.text, path), 0);
	assert_file(path, "new");
	unlink(path);
	folder_remove(&folder);
}

static void a_symlink_stays_one(void **state)
{
	struct folder folder;
	folder_make(&folder);
	char path[PATH_MAX], link[PATH_MAX];
	snprintf(path, sizeof(path), "%s/report", folder.path);
	snprintf(link, sizeof(link), "%s/link", folder.path);
	put(path, "old");
	assert_int_equal(symlink("report", link), 0);
	assert_int_equal(buf_write_file(&folder.text, link), 0);
	struct stat st;
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_file(path, "new");
	unlink(link);
	unlink(path);
	folder_remove(&folder);
}

static void a_descriptor_is_appended_to(void **state)
{
	struct folder folder;
	folder_make(&folder);
	char path[PATH_MAX], descriptor[64];
	snprintf(path, sizeof(path), "%s/out", folder.path);
	put(path, "from the command, ");
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	snprintf(descriptor, sizeof(descriptor), "/dev/fd/%d", fd);
	assert_int_equal(buf_write_file(&folder.text, descriptor), 0);
	close(fd);
	assert_file(path, "from the command, new");
	unlink(path);
	folder_remove(&folder);
}

static void a_planted_link_is_replaced(void **state)
{
	struct folder folder;
	folder_make(&folder);
	char path[PATH_MAX], victim[PATH_MAX], temporary[PATH_MAX + 32];
	snprintf(path, sizeof(path), "%s/file", folder.path);
	snprintf(victim, sizeof(victim), "%s/victim", folder.path);
	snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long)getpid());
	put(victim, "precious");
	assert_int_equal(symlink(victim, temporary), 0);
	assert_int_equal(buf_write_file(&folder.text, path), 0);
	assert_file(path, "new");
	assert_file(victim, "precious");
	unlink(path);
	unlink(victim);
	folder_remove(&folder);
}

static void errors_have_their_code(void **state)
{
	struct folder folder;
	folder_make(&folder);
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/not/there", folder.path);
	assert_int_equal(buf_write_file(&folder.text, path), -ENOENT);
	assert_int_equal(buf_write_file(&folder.text, folder.path), -EISDIR);
	assert_int_equal(buf_write_file(&folder.text, "/dev/full"), -ENOSPC);
	folder.text.failed = -ENOMEM;
	assert_int_equal(buf_write_file(&folder.text, "/dev/null"), -ENOMEM);
	folder_remove(&folder);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, csv_rows, check_csv);
	ROWS_ADD(&tests, utf8_rows, check_utf8);
	ROWS_ADD_ONE(&tests, "numbers: smallest, largest, shortest form, fixed decimals", numbers);
	ROWS_ADD_ONE(&tests, "limit: an append beyond it fails, and so do all later appends", the_ceiling_is_sticky);
	ROWS_ADD_ONE(&tests, "limit: sizes near SIZE_MAX do not wrap around", sizes_that_overflow);
	ROWS_ADD_ONE(&tests, "growth: 100,000 single characters", grows_far);
	ROWS_ADD_ONE(&tests, "padding: a character of two UTF-8 bytes counts as one column", columns_count_characters);
	ROWS_ADD_ONE(&tests, "take: an empty buffer gives an empty text", an_empty_one_is_taken_as_text);
	ROWS_ADD_ONE(&tests, "file: replaced as a whole, no temporary file left", a_file_is_replaced_whole);
	ROWS_ADD_ONE(&tests, "file: a symlink is kept and its target replaced", a_symlink_stays_one);
	ROWS_ADD_ONE(&tests, "file: a link planted under the temporary name is replaced", a_planted_link_is_replaced);
	ROWS_ADD_ONE(&tests, "file: /dev/fd/N is appended to, never renamed over", a_descriptor_is_appended_to);
	ROWS_ADD_ONE(&tests, "file: a missing folder, a folder and a full disk are reported", errors_have_their_code);
	return rows_run(&tests, "buf");
}
