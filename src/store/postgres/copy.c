#include "store/postgres/send.h"

#include "base/utf8.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 * 1024 };

static const unsigned char signature[19] = {'P', 'G', 'C', 'O', 'P', 'Y', '\n', 0xff, '\r', '\n', 0};

// Space for `size` more bytes; NULL: out of memory, and later writes are ignored.
static unsigned char *reserve(struct copy *copy, size_t size)
{
	if (copy->failed)
		return NULL;
	if (size > copy->capacity - copy->size) {
		size_t capacity = copy->capacity == 0 ? FIRST_CAPACITY : 2 * copy->capacity;
		while (capacity - copy->size < size)
			capacity *= 2;
		unsigned char *larger = realloc(copy->bytes, capacity);
		if (larger == NULL) {
			copy->failed = true;
			return NULL;
		}
		copy->bytes = larger;
		copy->capacity = capacity;
	}
	unsigned char *at = copy->bytes + copy->size;
	copy->size += size;
	return at;
}

static void add(struct copy *copy, const void *bytes, size_t size)
{
	unsigned char *at = reserve(copy, size);
	if (at != NULL)
		memcpy(at, bytes, size);
}

void copy_init(struct copy *copy)
{
	*copy = (struct copy){0};
	copy_clear(copy);
}

void copy_finish(struct copy *copy)
{
	free(copy->bytes);
	*copy = (struct copy){0};
}

void copy_clear(struct copy *copy)
{
	copy->size = 0;
	copy->n_rows = 0;
	copy->failed = false;
	add(copy, signature, sizeof(signature));
	copy->header_size = copy->size;
}

static void add_i16(struct copy *copy, int16_t value)
{
	uint16_t big = htobe16((uint16_t)value);
	add(copy, &big, sizeof(big));
}

void copy_row(struct copy *copy, size_t n_fields)
{
	copy->n_rows++;
	add_i16(copy, (int16_t)n_fields);
}

void copy_end(struct copy *copy)
{
	add_i16(copy, -1);
}

/* ---- fields: the size, then the bytes ---- */

static unsigned char *field(struct copy *copy, uint32_t size)
{
	unsigned char *at = reserve(copy, sizeof(size) + size);
	if (at == NULL)
		return NULL;
	uint32_t big = htobe32(size);
	memcpy(at, &big, sizeof(big));
	return at + sizeof(big);
}

void copy_null(struct copy *copy)
{
	static const unsigned char none[4] = {0xff, 0xff, 0xff, 0xff};
	add(copy, none, sizeof(none));
}

static void add_8(struct copy *copy, uint64_t value)
{
	unsigned char *at = field(copy, sizeof(value));
	uint64_t big = htobe64(value);
	if (at != NULL)
		memcpy(at, &big, sizeof(big));
}

static void add_4(struct copy *copy, uint32_t value)
{
	unsigned char *at = field(copy, sizeof(value));
	uint32_t big = htobe32(value);
	if (at != NULL)
		memcpy(at, &big, sizeof(big));
}

static void add_2(struct copy *copy, uint16_t value)
{
	unsigned char *at = field(copy, sizeof(value));
	uint16_t big = htobe16(value);
	if (at != NULL)
		memcpy(at, &big, sizeof(big));
}

void copy_double(struct copy *copy, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	add_8(copy, bits);
}

void copy_i64(struct copy *copy, enum pg_type type, int64_t value)
{
	if (type == PG_TYPE_INT8)
		add_8(copy, (uint64_t)value);
	else if (type == PG_TYPE_INT4 && value >= INT32_MIN && value <= INT32_MAX)
		add_4(copy, (uint32_t)value);
	else if (type == PG_TYPE_INT2 && value >= INT16_MIN && value <= INT16_MAX)
		add_2(copy, (uint16_t)value);
	else if (type == PG_TYPE_FLOAT8)
		copy_double(copy, (double)value);
	else
		copy_null(copy);
}

/* ---- text ---- */

// Number of leading bytes that are valid UTF-8. `text` is NUL-terminated at text[size] or earlier.
static size_t valid_length(const char *text, size_t size)
{
	size_t at = 0;
	while (at < size && text[at] != '\0') {
		size_t length = utf8_length(text + at);
		if (length == 0 || length > size - at)
			break;
		at += length;
	}
	return at;
}

static void add_corrected(struct copy *copy, const char *text, size_t size)
{
	size_t at_size = copy->size;
	if (field(copy, 0) == NULL)
		return;
	size_t begin = copy->size;
	for (size_t at = 0; at < size;) {
		size_t valid = valid_length(text + at, size - at);
		add(copy, text + at, valid);
		at += valid;
		if (at < size) {
			add(copy, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT));
			at++;
		}
	}
	uint32_t big = htobe32((uint32_t)(copy->size - begin));
	if (!copy->failed)
		memcpy(copy->bytes + at_size, &big, sizeof(big));
}

void copy_text(struct copy *copy, const char *text, size_t size)
{
	if (valid_length(text, size) < size) {
		add_corrected(copy, text, size);
		return;
	}
	unsigned char *at = field(copy, (uint32_t)size);
	if (at != NULL)
		memcpy(at, text, size);
}

/* ---- uuid and time ---- */

void copy_uuid(struct copy *copy, const unsigned char uuid[16])
{
	unsigned char *at = field(copy, 16);
	if (at != NULL)
		memcpy(at, uuid, 16);
}

void copy_time(struct copy *copy, int64_t unix_ns)
{
	static const int64_t epoch_us = INT64_C(946684800) * 1000000; // 2000-01-01, PostgreSQL's epoch
	int64_t us = unix_ns / 1000 - (unix_ns % 1000 < 0);
	add_8(copy, (uint64_t)(us - epoch_us));
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool copy_parse_uuid(const char *text, unsigned char ret_uuid[16])
{
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			if (*text++ != '-')
				return false;
		int high = digit(text[0]);
		int low = high >= 0 ? digit(text[1]) : -1;
		if (low < 0)
			return false;
		ret_uuid[i] = (unsigned char)(high << 4 | low);
		text += 2;
	}
	return *text == '\0';
}
