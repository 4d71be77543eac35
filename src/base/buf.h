/* A growing text buffer with a size limit and a sticky error: append any number of times, then check `failed` once.
 *
 *	struct buf b;
 *	buf_init(&b, 1 << 20);
 *	buf_str(&b, "energy ");
 *	buf_i64(&b, energy_uj);
 *	if (b.failed) …			-ENOMEM or -EFBIG; earlier text is kept
 *	buf_finish(&b);
 *
 * data is NUL-terminated after the first append (b.data is NULL before). */
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
void buf_finish(struct buf *b); // frees; accepts a zeroed or finished buffer
void buf_clear(struct buf *b);  // keeps the memory, clears the error
char *buf_take(struct buf *b);  // caller frees; NULL if failed; an empty buffer gives ""

void buf_add(struct buf *b, const void *bytes, size_t size);
void buf_str(struct buf *b, const char *text);
void buf_utf8(struct buf *b, const char *text); // UTF-8 for JSON: U+FFFD replaces each invalid byte
void buf_char(struct buf *b, char c);
void buf_i64(struct buf *b, int64_t value);
void buf_u64(struct buf *b, uint64_t value);
// Shortest text that reads back as the same double, always with '.'; "nan", "inf" or "-inf" for non-finite values.
void buf_double(struct buf *b, double value);
// Fixed number of decimals (0..17), always with '.'.
void buf_fixed(struct buf *b, double value, int decimals);
// Not for floating-point numbers, whose format depends on the locale.
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_pad_to(struct buf *b, size_t line_start, size_t columns); // appends blanks up to a column; counts UTF-8 characters
// A CSV field, quoted only where needed (RFC 4180).
void buf_csv(struct buf *b, const char *text);

// Writes the whole buffer to a descriptor; returns 0 or a negative errno.
int buf_write_fd(const struct buf *b, int fd);
// Creates or replaces `path` atomically: temporary file in the same folder, then rename. "-" is stdout.
int buf_write_file(const struct buf *b, const char *path);
