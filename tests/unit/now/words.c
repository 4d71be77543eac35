#include "now/internal.h"

#include "base/util.h"
#include "rows.h"

static const struct row {
	const char *teaches, *words;
	size_t size; // bytes of it; each word ends with a NUL
	size_t room;
	const char *expected; // NULL: there are none
} rows[] = {
	{"words become a line", "ls\0-l\0/tmp", 11, 64, "ls -l /tmp"},
	{"empty words are blanks, those at the end nothing", "a\0\0b\0\0\0", 7, 64, "a  b"},
	{"a kernel thread has none", "", 0, 64, NULL},
	{"blanks alone are none", " \0 \0", 4, 64, NULL},
	{"control characters are told as '?'", "a\x1b[31m\tb\x7f", 9, 64, "a?[31m?b?"},
	{"C1 controls, which move the cursor of some terminals, too",
		"a\xc2\x9b"
		"31m",
		6, 64, "a?31m"},
	{"UTF-8 stays", "caf\xc3\xa9 \xf0\x9f\x94\xa5", 10, 64, "caf\xc3\xa9 \xf0\x9f\x94\xa5"},
	{"what is no UTF-8 is told byte by byte", "a\xff\xc3(", 4, 64,
		"a?"
		"?("},
	{"a character is not cut in two", "ab\xf0\x9f\x94\xa5", 6, 6, "ab…"},
	{"what does not fit ends in three dots", "0123456789", 10, 9, "01234…"},
	{"what just fits does not", "01234567", 8, 9, "01234567"},
	{"no character is cut in two for them",
		"abcd\xf0\x9f\x94\xa5"
		"f",
		9, 9, "abcd…"},
	{"where the dots have no room themselves it is cut", "0123", 4, 3, "01"},
};

static void check(void **state)
{
	const struct row *row = *state;
	char words[64] = {0}, out[64];
	memcpy(words, row->words, row->size);
	bool any = process_words_join(words, row->size, out, row->room);
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
