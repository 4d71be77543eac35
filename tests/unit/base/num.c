#include "base/num.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

enum { UNTOUCHED = 77 };

static const struct u64_row {
	const char *teaches, *text;
	int expected;
	uint64_t value;
} u64_rows[] = {
	{"u64: zero", "0", 0, 0},
	{"u64: the largest value is accepted", "18446744073709551615", 0, UINT64_MAX},
	{"u64: the largest value plus one is refused", "18446744073709551616", -ERANGE, 0},
	{"u64: far too many digits: refused", "99999999999999999999999999999", -ERANGE, 0},
	{"u64: leading zeros are ignored", "000012", 0, 12},
	{"u64: an empty text is refused", "", -EINVAL, 0},
	{"u64: a minus sign is refused", "-1", -EINVAL, 0},
	{"u64: a plus sign is refused", "+1", -EINVAL, 0},
	{"u64: a leading blank is refused", " 1", -EINVAL, 0},
	{"u64: trailing characters are refused", "1 ", -EINVAL, 0},
	{"u64: hexadecimal is refused", "0x10", -EINVAL, 0},
	{"u64: a fraction is refused", "1.0", -EINVAL, 0},
};

static void check_u64(void **state)
{
	const struct u64_row *row = *state;
	uint64_t value = UNTOUCHED;
	assert_int_equal(num_parse_u64(row->text, &value), row->expected);
	assert_true(value == (row->expected == 0 ? row->value : UNTOUCHED));
}

static const struct i64_row {
	const char *teaches, *text;
	int expected;
	int64_t value;
} i64_rows[] = {
	{"i64: the smallest value is accepted", "-9223372036854775808", 0, INT64_MIN},
	{"i64: the smallest value minus one is refused", "-9223372036854775809", -ERANGE, 0},
	{"i64: the largest value is accepted", "9223372036854775807", 0, INT64_MAX},
	{"i64: the largest value plus one is refused", "9223372036854775808", -ERANGE, 0},
	{"i64: minus zero is zero", "-0", 0, 0},
	{"i64: a minus sign without digits is refused", "-", -EINVAL, 0},
	{"i64: two minus signs are refused", "--1", -EINVAL, 0},
};

static void check_i64(void **state)
{
	const struct i64_row *row = *state;
	int64_t value = UNTOUCHED;
	assert_int_equal(num_parse_i64(row->text, &value), row->expected);
	assert_true(value == (row->expected == 0 ? row->value : UNTOUCHED));
}

static const struct sysfs_row {
	const char *teaches, *text;
	size_t size;
	int expected;
	int64_t value;
} sysfs_rows[] = {
	{"sysfs: a value and its newline", "262143328850\n", 13, 0, 262143328850},
	{"sysfs: a value without a newline", "42", 2, 0, 42},
	{"sysfs: negative", "-5\n", 3, 0, -5},
	{"sysfs: an empty file is refused", "", 0, -EINVAL, 0},
	{"sysfs: only a newline: refused", "\n", 1, -EINVAL, 0},
	{"sysfs: a word is refused", "enabled\n", 8, -EINVAL, 0},
	{"sysfs: two numbers are refused", "1 2\n", 4, -EINVAL, 0},
	{"sysfs: only `size` bytes are read", "123456", 3, 0, 123},
	{"sysfs: padding with NUL bytes, as firmware writes it, is accepted", "7\0\0", 3, 0, 7},
	{"sysfs: binary garbage is refused", "\xff\xfe\x01", 3, -EINVAL, 0},
	{"sysfs: a number out of range is refused", "99999999999999999999\n", 21, -ERANGE, 0},
};

static void check_sysfs(void **state)
{
	const struct sysfs_row *row = *state;
	int64_t value = UNTOUCHED;
	assert_int_equal(num_parse_sysfs_i64(row->text, row->size, &value), row->expected);
	assert_true(value == (row->expected == 0 ? row->value : UNTOUCHED));
}

static const struct double_row {
	const char *teaches, *text;
	int expected;
	double value;
} double_rows[] = {
	{"double: a simple decimal number", "1.5", 0, 1.5},
	{"double: no digit before the point", ".5", 0, 0.5},
	{"double: no digit after the point", "2.", 0, 2},
	{"double: exponents", "-1.25e-3", 0, -0.00125},
	{"double: 0.1 is the nearest double", "0.1", 0, 0.1},
	{"double: a Unix time with nanoseconds is rounded correctly", "1700000000.123456789", 0, 1700000000.123456789},
	{"double: 2^53 + 1 is rounded to even", "9007199254740993", 0, 9007199254740992.0},
	{"double: halfway between two doubles, decided by the last of many digits",
		"9007199254740993.00000000000000000000000001", 0, 9007199254740994.0},
	{"double: exact powers of ten end at 1e22", "1e23", 0, 1e23},
	{"double: the smallest above zero", "4.9406564584124654e-324", 0, 4.9406564584124654e-324},
	{"double: the largest", "1.7976931348623157e308", 0, DBL_MAX},
	{"double: a number that is too large is refused, not infinite", "1e309", -ERANGE, 0},
	{"double: an exponent that overflows an int", "1e99999999999999999999", -ERANGE, 0},
	{"double: a number too small for a double is zero", "1e-99999999999999999999", 0, 0},
	{"double: many leading zeros", "0000000000000000000000000000000001", 0, 1},
	{"double: inf is refused", "inf", -EINVAL, 0},
	{"double: nan is refused", "nan", -EINVAL, 0},
	{"double: a decimal comma is refused", "1,5", -EINVAL, 0},
	{"double: a point without digits is refused", ".", -EINVAL, 0},
	{"double: an exponent without digits is not consumed", "1e", -EINVAL, 0},
	{"double: hexadecimal is refused", "0x1p3", -EINVAL, 0},
	{"double: an empty text is refused", "", -EINVAL, 0},
	{"double: blanks are refused", " 1", -EINVAL, 0},
};

static void check_double(void **state)
{
	const struct double_row *row = *state;
	double value = UNTOUCHED;
	assert_int_equal(num_parse_double(row->text, &value), row->expected);
	double expected = row->expected == 0 ? row->value : UNTOUCHED;
	assert_memory_equal(&value, &expected, sizeof(value)); // bit-exact
}

static const struct duration_row {
	const char *teaches, *text;
	int expected;
	int64_t ns;
} duration_rows[] = {
	{"duration: microseconds", "250us", 0, 250 * 1000},
	{"duration: milliseconds", "100ms", 0, 100 * NS_PER_MS},
	{"duration: seconds with a fraction", "1.5s", 0, 1500 * NS_PER_MS},
	{"duration: minutes", "2m", 0, 120 * NS_PER_S},
	{"duration: hours", "1h", 0, 3600 * NS_PER_S},
	{"duration: a unit is required", "100", -EINVAL, 0},
	{"duration: days", "90d", 0, 90 * 86400 * INT64_C(1000000000)},
	{"duration: years of 365 days", "2y", 0, 730 * 86400 * INT64_C(1000000000)},
	{"duration: an unknown unit is refused", "1q", -EINVAL, 0},
	{"duration: a blank before the unit is refused", "1 s", -EINVAL, 0},
	{"duration: negative", "-1s", -EINVAL, 0},
	{"duration: a unit without a number is refused", "ms", -EINVAL, 0},
	{"duration: longer than 292 years: refused", "1e10h", -ERANGE, 0},
	{"duration: infinite", "1e999s", -ERANGE, 0},
};

static void check_duration(void **state)
{
	const struct duration_row *row = *state;
	int64_t ns = UNTOUCHED;
	assert_int_equal(num_parse_duration(row->text, &ns), row->expected);
	assert_true(ns == (row->expected == 0 ? row->ns : UNTOUCHED));
}

static const struct format_row {
	const char *teaches;
	double value;
	const char *text;
} format_rows[] = {
	{"format: the shortest text that reads back to the same value", 0.1, "0.1"},
	{"format: sixteen digits where they are needed", 0.1 + 0.2, "0.30000000000000004"},
	{"format: whole numbers have no point", 42, "42"},
	{"format: large numbers have an exponent", 1e300, "1e+300"},
	{"format: negative zero keeps its sign", -0.0, "-0"},
	{"format: NaN", (double)NAN, "nan"},
	{"format: infinities", -(double)INFINITY, "-inf"},
};

static void check_format(void **state)
{
	const struct format_row *row = *state;
	char text[40];
	size_t length = num_format_double(text, sizeof(text), row->value);
	assert_string_equal(text, row->text);
	assert_int_equal(length, strlen(row->text));
}

// A fixed generator: the same numbers in every run and on every machine.
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void random_doubles_round_trip(void **state)
{
	uint64_t seed = 88172645463325252u;
	for (int i = 0; i < 100000; i++) {
		uint64_t bits = next_random(&seed);
		double value, back;
		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value))
			continue;
		char text[40];
		num_format_double(text, sizeof(text), value);
		assert_int_equal(num_parse_double(text, &back), 0);
		assert_memory_equal(&value, &back, sizeof(value));
	}
}

static void agrees_with_strtod(void **state)
{
	static const char alphabet[] = "0123456789012345678901234567890123456789..e-+x ";
	uint64_t seed = 362436069;
	for (int i = 0; i < 200000; i++) {
		char text[28];
		size_t length = next_random(&seed) % (sizeof(text) - 1);
		for (size_t c = 0; c < length; c++)
			text[c] = alphabet[next_random(&seed) % (sizeof(alphabet) - 1)];
		text[length] = '\0';
		double value;
		if (num_parse_double(text, &value) != 0)
			continue;
		double expected = strtod(text, NULL);
		assert_memory_equal(&value, &expected, sizeof(value));
	}
}

// Timestamps as Python writes them, and other numbers of 16 to 19 digits with a point at any position.
static void long_decimals_agree_with_strtod(void **state)
{
	uint64_t seed = 123456789;
	for (int i = 0; i < 200000; i++) {
		char text[32];
		int digits = 16 + (int)(next_random(&seed) % 4), point = (int)(next_random(&seed) % (unsigned)digits);
		text[0] = (char)('1' + next_random(&seed) % 9);
		for (int d = 1; d <= digits; d++)
			text[d] = d == point + 1 ? '.' : (char)('0' + next_random(&seed) % 10);
		text[digits + 1] = '\0';
		double value, expected = strtod(text, NULL);
		assert_int_equal(num_parse_double(text, &value), 0);
		assert_memory_equal(&value, &expected, sizeof(value));
	}
}

static void random_bytes_are_no_trouble(void **state)
{
	uint64_t seed = 521288629;
	for (int i = 0; i < 200000; i++) {
		char text[24];
		size_t length = next_random(&seed) % (sizeof(text) - 1);
		for (size_t c = 0; c < length; c++)
			text[c] = (char)next_random(&seed);
		text[length] = '\0';
		uint64_t u = UNTOUCHED;
		int64_t i64 = UNTOUCHED;
		double d = UNTOUCHED;
		assert_true(num_parse_u64(text, &u) == 0 || u == UNTOUCHED);
		assert_true(num_parse_sysfs_i64(text, length, &i64) == 0 || i64 == UNTOUCHED);
		assert_true(num_parse_double(text, &d) == 0 || (d >= UNTOUCHED && d <= UNTOUCHED));
	}
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

// A locale made for the test by the C library's localedef, so that the locales a machine has installed don't matter.
static bool make_comma_locale(const char *folder)
{
	write_file(folder, "source",
		"LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n");
	write_file(folder, "charmap",
		"<code_set_name> ASCII\n<escape_char> /\nCHARMAP\n<U0000>..<U007F> /x00\nEND CHARMAP\n");
	char command[256];
	snprintf(command, sizeof(command), "cd %s && localedef -c -f ./charmap -i source ./comma >/dev/null 2>&1",
		folder);
	if (system(command) < 0)
		return false;
	setenv("LOCPATH", folder, 1);
	return setlocale(LC_NUMERIC, "comma") != NULL;
}

static void a_comma_locale_changes_nothing(void **state)
{
	char folder[] = "/tmp/wattle-num-XXXXXX", command[64];
	assert_non_null(mkdtemp(folder));
	bool made = make_comma_locale(folder);
	char by_printf[16], text[40], fixed[40];
	double value = 0;
	snprintf(by_printf, sizeof(by_printf), "%.1f", 1.5);
	num_format_double(text, sizeof(text), 1.5);
	num_format_fixed(fixed, sizeof(fixed), -1234.5, 2);
	int r = num_parse_double("1.7976931348623157e308", &value);
	setlocale(LC_NUMERIC, "C");
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	if (!made)
		SKIP_BECAUSE("localedef can't make a locale: package locales is missing");
	assert_string_equal(by_printf, "1,5");
	assert_string_equal(text, "1.5");
	assert_string_equal(fixed, "-1234.50");
	assert_int_equal(r, 0);
}

static void fixed_decimals(void **state)
{
	char text[64];
	assert_int_equal(num_format_fixed(text, sizeof(text), 2.5, 3), 5);
	assert_string_equal(text, "2.500");
	num_format_fixed(text, sizeof(text), -0.04, 1);
	assert_string_equal(text, "0.0");
	num_format_fixed(text, sizeof(text), -0.06, 1);
	assert_string_equal(text, "-0.1");
	num_format_fixed(text, sizeof(text), -0.4, 0);
	assert_string_equal(text, "0");
	num_format_fixed(text, sizeof(text), (double)NAN, 2);
	assert_string_equal(text, "nan");
}

static void never_past_the_end(void **state)
{
	char text[8] = "#######";
	assert_int_equal(num_format_double(text, 4, 123456), 3);
	assert_string_equal(text, "123");
	assert_int_equal(text[4], '#');
}

static const struct significant_row {
	const char *teaches;
	double value;
	int digits;
	const char *text;
} significant_rows[] = {
	{"significant digits: trailing zeros are removed", 0.5, 5, "0.5"},
	{"significant digits: zero has no sign", -0.0, 5, "0"},
	{"significant digits: counted from the first digit that is not zero", 0.001234567, 5, "0.0012346"},
	{"significant digits: rounding up to the next power of ten", 99999.96, 5, "100000"},
	{"significant digits: further digits before the point become zeros", 123456789, 5, "123460000"},
	{"negative ones", -86400.123456, 8, "-86400.123"},
	{"significant digits: very small numbers are written as any double", 1e-9, 5, "1e-09"},
	{"unknown", (double)NAN, 5, "nan"},
};

static void format_significant(void **state)
{
	const struct significant_row *row = *state;
	char text[64];
	size_t n = num_format_significant(text, sizeof(text), row->value, row->digits);
	assert_string_equal(text, row->text);
	assert_int_equal(n, strlen(row->text));
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, u64_rows, check_u64);
	ROWS_ADD(&tests, i64_rows, check_i64);
	ROWS_ADD(&tests, sysfs_rows, check_sysfs);
	ROWS_ADD(&tests, double_rows, check_double);
	ROWS_ADD(&tests, duration_rows, check_duration);
	ROWS_ADD(&tests, format_rows, check_format);
	ROWS_ADD_ONE(&tests, "format: 100,000 random doubles are read back bit for bit", random_doubles_round_trip);
	ROWS_ADD_ONE(&tests, "double: random decimals equal strtod's result bit for bit", agrees_with_strtod);
	ROWS_ADD_ONE(&tests, "double: 16 to 19 digits are correctly rounded", long_decimals_agree_with_strtod);
	ROWS_ADD_ONE(&tests, "all: random bytes are refused and the output is untouched", random_bytes_are_no_trouble);
	ROWS_ADD_ONE(&tests, "all: a locale with a decimal comma changes nothing", a_comma_locale_changes_nothing);
	ROWS_ADD_ONE(&tests, "format: fixed decimals", fixed_decimals);
	ROWS_ADD_ONE(&tests, "format: a text that does not fit is truncated; nothing is written past the end",
		never_past_the_end);
	ROWS_ADD(&tests, significant_rows, format_significant);
	return rows_run(&tests, "num");
}
