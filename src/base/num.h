/* Conversion of numbers to and from text: whole string, range-checked, independent of the locale. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Each returns 0, -EINVAL (not a number, or trailing characters) or -ERANGE; *ret_value is unchanged on failure.
int num_parse_u64(const char *text, uint64_t *ret_value);
int num_parse_i64(const char *text, int64_t *ret_value);
int num_parse_double(const char *text, double *ret_value); // finite decimals only
// A decimal unsigned number at the start of text[0..size), as in sysfs files: blanks and one newline may follow.
int num_parse_sysfs_u64(const char *text, size_t size, uint64_t *ret_value);
int num_parse_sysfs_i64(const char *text, size_t size, int64_t *ret_value);
// "100ms", "1.5s", "2m", "1h", "250us", "90d", "2w", "1y" (365 days); a unit is required. Result in nanoseconds.
int num_parse_duration(const char *text, int64_t *ret_ns);

// Reads a decimal at the start of text, correctly rounded; *ret_end is the first byte after it (== text: no number).
double num_read_double(const char *text, const char **ret_end);

// Writes at most size bytes, NUL included; returns the length.
size_t num_format_double(char *out, size_t size, double value);              // shortest round trip
size_t num_format_fixed(char *out, size_t size, double value, int decimals); // fixed decimals
// At most this many decimals (0..9), without trailing zeros; non-finite and huge values as in num_format_double. Much faster
// than the two functions above.
size_t num_format_decimals(char *out, size_t size, double value, int decimals);
/* At most this many significant digits (1..9), without trailing zeros, and without an exponent for values of common size: for
 * the many numbers of charts. Non-finite values as in num_format_double. */
size_t num_format_significant(char *out, size_t size, double value, int digits);

int compare_doubles(const void *a, const void *b); // for qsort: ascending
