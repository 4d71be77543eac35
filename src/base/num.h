/* Numbers to and from text: whole string, range-checked, locale-free. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Each returns 0, -EINVAL (not a number, or something follows it) or -ERANGE; *ret_value is untouched on failure.
int num_parse_u64(const char *text, uint64_t *ret_value);
int num_parse_i64(const char *text, int64_t *ret_value);
int num_parse_double(const char *text, double *ret_value); // finite decimals only
// A decimal unsigned number at the start of text[0..size), blanks and one newline after it allowed: sysfs files.
int num_parse_sysfs_u64(const char *text, size_t size, uint64_t *ret_value);
int num_parse_sysfs_i64(const char *text, size_t size, int64_t *ret_value);
// "100ms", "1.5s", "2m", "1h", "250us", "90d", "2w", "1y" (365 days); a unit is required. Result in nanoseconds.
int num_parse_duration(const char *text, int64_t *ret_ns);

// Correctly rounded read of a decimal that starts at text; *ret_end is the first byte after it (== text: no number).
double num_read_double(const char *text, const char **ret_end);

// Writes at most size bytes, NUL included; returns the length.
size_t num_format_double(char *out, size_t size, double value);              // shortest round trip
size_t num_format_fixed(char *out, size_t size, double value, int decimals); // fixed decimals
// At most so many decimals (0..9), no zeros at the end; odd and huge values as num_format_double has them. Much faster than either above.
size_t num_format_decimals(char *out, size_t size, double value, int decimals);
/* At most so many significant digits (1..9), no zeros at the end, no exponent for what is of common size: for the many numbers of
 * charts. Odd values as num_format_double has them. */
size_t num_format_significant(char *out, size_t size, double value, int digits);

int compare_doubles(const void *a, const void *b); // of qsort: ascending
