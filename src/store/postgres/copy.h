/* Rows in the binary format of COPY, one after the other in memory: no text is made and none is parsed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pg_type { // of the columns that COPY fills
	PG_TYPE_INT2,
	PG_TYPE_INT4,
	PG_TYPE_INT8,
	PG_TYPE_FLOAT8,
	PG_TYPE_TEXT,
	PG_TYPE_UUID,
	PG_TYPE_TIME, // timestamptz
};

struct copy {
	unsigned char *bytes; // owned
	size_t size, capacity;
	size_t header_size; // size of one without rows
	int64_t n_rows;
	bool failed; // no memory; sticky
};

void copy_init(struct copy *copy);
void copy_finish(struct copy *copy);
void copy_clear(struct copy *copy); // keeps the memory; what begins the format stands there again
void copy_row(struct copy *copy, size_t n_fields); // that many fields follow
void copy_end(struct copy *copy);                  // after the last row

void copy_null(struct copy *copy);
void copy_i64(struct copy *copy, enum pg_type type, int64_t value); // INT2, INT4, INT8, FLOAT8; null where it does not fit
void copy_double(struct copy *copy, double value);
// Text of so many bytes; what is no UTF-8 becomes U+FFFD, as does NUL, which PostgreSQL refuses.
void copy_text(struct copy *copy, const char *text, size_t size);
void copy_uuid(struct copy *copy, const unsigned char uuid[16]);
void copy_time(struct copy *copy, int64_t unix_ns); // to whole microseconds, towards the past

// "xxxxxxxx-xxxx-…": false if it is none.
bool copy_parse_uuid(const char *text, unsigned char ret_uuid[16]);
