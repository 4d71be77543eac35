#include "monitor/internal.h"

#include "base/util.h"
#include "rows.h"

static const struct row {
	const char *teaches, *words;
	size_t size; // its bytes; each word ends with a NUL
	size_t capacity;
	const char *expected; // NULL: no command line
} rows[] = {
	{"words are joined into a line", "ls\0-l\0/tmp", 11, 64, "ls -l /tmp"},
	{"empty words become blanks, trailing ones nothing", "a\0\0b\0\0\0", 7, 64, "a  b"},
	{"kernel thread: no command line", "", 0, 64, NULL},
	{"only blanks: no command line", " \0 \0", 4, 64, NULL},
	{"control characters become '?'", "a\x1b[31m\tb\x7f", 9, 64, "a?[31m?b?"},
	{"C1 control characters, which move some terminals' cursors, become '?'",
		"a\xc2\x9b"
		"31m",
		6, 64, "a?31m"},
	{"UTF-8 stays", "caf\xc3\xa9 \xf0\x9f\x94\xa5", 10, 64, "caf\xc3\xa9 \xf0\x9f\x94\xa5"},
	{"invalid UTF-8: replaced byte by byte", "a\xff\xc3(", 4, 64,
		"a?"
		"?("},
	{"no character is cut in two", "ab\xf0\x9f\x94\xa5", 6, 6, "ab…"},
	{"text too long: ends in three dots", "0123456789", 10, 9, "01234…"},
	{"text of exactly the length: not cut", "01234567", 8, 9, "01234567"},
	{"no character is cut in two for the dots",
		"abcd\xf0\x9f\x94\xa5"
		"f",
		9, 9, "abcd…"},
	{"no room for the dots: cut", "0123", 4, 3, "01"},
};

static void check(void **state)
{
	const struct row *row = *state;
	char words[64] = {0}, out[64];
	memcpy(words, row->words, row->size);
	bool any = cmdline_join(words, row->size, out, row->capacity);
	assert_int_equal(any, row->expected != NULL);
	if (any)
		assert_string_equal(out, row->expected);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "words");
}
