/* A growing text buffer with a ceiling and a sticky error: append as often as you like, check `failed` once.
 *
 *	struct buf b;
 *	buf_init(&b, 1 << 20);
 *	buf_str(&b, "energy ");
 *	buf_i64(&b, energy_uj);
 *	if (b.failed) …			-ENOMEM or -EFBIG; what was appended before stands
 *	buf_finish(&b);
 *
 * data is always NUL-terminated once something was appended (b.data is NULL before). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;      // owned
	size_t size;     // bytes in use, without the NUL
	size_t capacity; // bytes allocated
	size_t ceiling;  // size never exceeds this
	int failed;      // 0, -ENOMEM or -EFBIG; sticky
};

void buf_init(struct buf *b, size_t ceiling);
void buf_finish(struct buf *b); // frees; safe on a zeroed or finished one
void buf_clear(struct buf *b);  // keeps the memory, forgets the error
char *buf_take(struct buf *b);  // caller frees; NULL if failed; an empty buffer gives ""

void buf_add(struct buf *b, const void *bytes, size_t size);
void buf_str(struct buf *b, const char *text);
void buf_utf8(struct buf *b, const char *text); // as JSON has it: U+FFFD for each byte that belongs to no character
void buf_char(struct buf *b, char c);
void buf_i64(struct buf *b, int64_t value);
void buf_u64(struct buf *b, uint64_t value);
// Shortest text that reads back as the same double, always with '.'; "nan", "inf", "-inf" for the odd ones.
void buf_double(struct buf *b, double value);
// Fixed number of decimals (0..17), always with '.'.
void buf_fixed(struct buf *b, double value, int decimals);
// For everything that is not a floating-point number: the locale can't reach it.
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_pad_to(struct buf *b, size_t line_start, size_t columns); // blanks up to a column; UTF-8 aware
// A CSV field, quoted only where needed (RFC 4180).
void buf_csv(struct buf *b, const char *text);

// Writes all of it to a descriptor; 0 or negative errno.
int buf_write_fd(const struct buf *b, int fd);
// Creates or replaces `path` whole: a temporary file beside it, then rename. "-" is stdout.
int buf_write_file(const struct buf *b, const char *path);
