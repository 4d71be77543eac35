#include "base/num.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

// Parses the digits of text[0..size); *ret_used is their number.
static int read_digits(const char *text, size_t size, uint64_t *ret_value, size_t *ret_used)
{
	uint64_t value = 0;
	size_t i = 0;
	for (; i < size && is_digit(text[i]); i++)
		if (__builtin_mul_overflow(value, 10u, &value) ||
			__builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return -ERANGE;
	if (i == 0)
		return -EINVAL;
	*ret_value = value;
	*ret_used = i;
	return 0;
}

int num_parse_u64(const char *text, uint64_t *ret_value)
{
	size_t size = strlen(text), used;
	uint64_t value;
	int r = read_digits(text, size, &value, &used);
	if (r < 0)
		return r;
	if (used != size)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

static int to_signed(uint64_t magnitude, bool negative, int64_t *ret_value)
{
	if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
		return -ERANGE;
	*ret_value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return 0;
}

int num_parse_i64(const char *text, int64_t *ret_value)
{
	bool negative = text[0] == '-';
	uint64_t magnitude;
	int r = num_parse_u64(text + negative, &magnitude);
	return r < 0 ? r : to_signed(magnitude, negative, ret_value);
}

static bool only_blanks(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] != ' ' && text[i] != '\n' && text[i] != '\t' && text[i] != '\0')
			return false;
	return true;
}

int num_parse_sysfs_u64(const char *text, size_t size, uint64_t *ret_value)
{
	uint64_t value;
	size_t used;
	int r = read_digits(text, size, &value, &used);
	if (r < 0)
		return r;
	if (!only_blanks(text + used, size - used))
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int num_parse_sysfs_i64(const char *text, size_t size, int64_t *ret_value)
{
	bool negative = size > 0 && text[0] == '-';
	uint64_t magnitude;
	int r = num_parse_sysfs_u64(text + negative, size - negative, &magnitude);
	return r < 0 ? r : to_signed(magnitude, negative, ret_value);
}

// Correctly rounded mantissa / divisor, both not 0: 64 bits of the quotient, the last one sticky, rounded by the hardware.
static double quotient(uint64_t mantissa, uint64_t divisor)
{
	int up = __builtin_clzll(mantissa), down = __builtin_clzll(divisor);
	unsigned __int128 numerator = (unsigned __int128)(mantissa << up) << 63;
	uint64_t denominator = divisor << down;
	uint64_t bits = (uint64_t)(numerator / denominator);
	bits |= (unsigned __int128)bits * denominator != numerator;
	return ldexp((double)bits, down - up - 63);
}

/* strtod follows the program's locale, so a decimal comma would be expected in some. Texts of at most 15 digits
 * and small exponents, which is nearly all, are exact in double arithmetic (mantissa below 2^53, power of ten
 * exact). Up to 19 digits with a point somewhere in them, as Python writes its floats, are a quotient of integers. The
 * rest goes through strtod_l in the C locale. */
double num_read_double(const char *text, const char **ret_end)
{
	static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
		1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	const char *at = text;
	bool negative = *at == '-';
	at += *at == '-' || *at == '+';
	uint64_t mantissa = 0;
	int digits = 0, exponent = 0;
	bool any = false;
	for (; is_digit(*at); at++, any = true) {
		mantissa = digits < 19 ? mantissa * 10 + (uint64_t)(*at - '0') : mantissa;
		digits += mantissa > 0;
	}
	if (*at == '.')
		for (at++; is_digit(*at); at++, any = true) {
			mantissa = digits < 19 ? mantissa * 10 + (uint64_t)(*at - '0') : mantissa;
			digits += mantissa > 0;
			exponent--;
		}
	if (!any) {
		*ret_end = text;
		return 0;
	}
	if (*at == 'e' || *at == 'E') {
		const char *e = at + 1;
		bool e_negative = *e == '-';
		e += *e == '-' || *e == '+';
		if (is_digit(*e)) {
			int value = 0;
			for (; is_digit(*e); e++)
				value = value < 10000 ? value * 10 + (*e - '0') : value;
			exponent += e_negative ? -value : value;
			at = e;
		}
	}
	*ret_end = at;
	if (digits <= 15 && exponent >= -22 && exponent <= 22) {
		double value = (double)mantissa;
		value = exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
		return negative ? -value : value;
	}
	static const uint64_t divisors[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
		10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000,
		10000000000000000, 100000000000000000, 1000000000000000000, 10000000000000000000u};
	if (digits > 0 && digits <= 19 && exponent <= 0 && exponent >= -19) {
		double value = quotient(mantissa, divisors[-exponent]);
		return negative ? -value : value;
	}
	locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	double value = c_locale != (locale_t)0 ? strtod_l(text, NULL, c_locale) : strtod(text, NULL);
	if (c_locale != (locale_t)0)
		freelocale(c_locale);
	return value;
}

int num_parse_double(const char *text, double *ret_value)
{
	const char *end;
	double value = num_read_double(text, &end);
	if (end == text || *end != '\0')
		return -EINVAL;
	if (!isfinite(value))
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int num_parse_duration(const char *text, int64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9},
		{"w", 7 * 86400e9}, {"y", 365 * 86400e9}};
	const char *end;
	double value = num_read_double(text, &end);
	if (end == text || text[0] == '-')
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		double ns = value * units[i].ns;
		if (!(ns < 9.2e18))
			return -ERANGE;
		*ret_ns = (int64_t)(ns + 0.5);
		return 0;
	}
	return -EINVAL;
}

// snprintf writes the locale's decimal separator, which must become a point.
static size_t point_for_separator(char *text, size_t length)
{
	const char *separator = localeconv()->decimal_point;
	size_t width = strlen(separator);
	if (width == 0 || (width == 1 && separator[0] == '.'))
		return length;
	char *at = strstr(text, separator);
	if (at == NULL)
		return length;
	*at = '.';
	memmove(at + 1, at + width, length - (size_t)(at - text) - width + 1);
	return length - width + 1;
}

static size_t printed(int length, size_t size)
{
	if (length < 0)
		return 0;
	return (size_t)length < size ? (size_t)length : size - 1;
}

// Writes scaled / 10^decimals without trailing zeros.
static size_t write_decimal(char *out, int64_t scaled, int decimals)
{
	char digits[32];
	size_t n = 0, length = 0;
	for (; decimals > 0 && scaled % 10 == 0; decimals--)
		scaled /= 10;
	uint64_t rest = scaled < 0 ? 0 - (uint64_t)scaled : (uint64_t)scaled;
	do {
		digits[n++] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0 || n <= (size_t)decimals);
	if (scaled < 0)
		out[length++] = '-';
	while (n > 0) {
		out[length++] = digits[--n];
		if (n > 0 && n == (size_t)decimals)
			out[length++] = '.';
	}
	out[length] = '\0';
	return length;
}

size_t num_format_double(char *out, size_t size, double value)
{
	if (isnan(value))
		return printed(snprintf(out, size, "nan"), size);
	// Most values are integers or zero, and printf takes ten times as long.
	if (size >= 32 && fabs(value) < 1e15 && value == trunc(value) && !(value == 0 && signbit(value)))
		return write_decimal(out, (int64_t)value, 0);
	for (int precision = 15; precision <= 17; precision++) {
		int length = snprintf(out, size, "%.*g", precision, value);
		if (precision == 17 || strtod(out, NULL) == value) // both use the same locale here
			return point_for_separator(out, printed(length, size));
	}
	return 0;
}

size_t num_format_fixed(char *out, size_t size, double value, int decimals)
{
	if (isnan(value))
		return printed(snprintf(out, size, "nan"), size);
	size_t n = point_for_separator(out, printed(snprintf(out, size, "%.*f", decimals, value), size));
	// A value that rounds to zero has no sign.
	if (n == 0 || out[0] != '-' || strspn(out + 1, "0.") != n - 1)
		return n;
	memmove(out, out + 1, n);
	return n - 1;
}

static const int64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000,
	100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000};

size_t num_format_decimals(char *out, size_t size, double value, int decimals)
{
	enum { ROOM = 32 };
	static const double exact_max = 9007199254740992.0; // 2^53: all integers up to it are exact doubles
	double scaled = value * (double)tens[decimals];
	if (size < ROOM || !(fabs(scaled) < exact_max))
		return num_format_double(out, size, value);
	return write_decimal(out, llround(scaled), decimals);
}

size_t num_format_significant(char *out, size_t size, double value, int digits)
{
	enum { ROOM = 40, MOST = sizeof(tens) / sizeof(tens[0]) - 1 };
	double magnitude = fabs(value);
	if (size < ROOM || !(magnitude == 0 || (magnitude >= 1e-6 && magnitude < 1e15)))
		return num_format_double(out, size, value);
	int decimals = digits; // of the first digit before the point, one less
	while (decimals > digits - (int)MOST && magnitude >= (double)tens[digits - decimals])
		decimals--;
	for (double limit = 0.1; decimals < (int)MOST && magnitude > 0 && magnitude < limit; limit /= 10)
		decimals++;
	if (decimals >= 0)
		return write_decimal(out, llround(value * (double)tens[decimals]), decimals);
	return write_decimal(out, llround(value / (double)tens[-decimals]) * tens[-decimals], 0);
}

int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}
