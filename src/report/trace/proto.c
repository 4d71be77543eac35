#include "report/trace/internal.h"

#include "base/utf8.h"

#include <string.h>

enum wire { WIRE_VARINT = 0, WIRE_64_BITS = 1, WIRE_BYTES = 2 };
enum { VARINT_MAX = 10 };

static size_t encode_varint(uint64_t value, unsigned char bytes[VARINT_MAX])
{
	size_t n = 0;
	for (; value > 0x7f; value >>= 7)
		bytes[n++] = (unsigned char)(value | 0x80);
	bytes[n++] = (unsigned char)value;
	return n;
}

static void varint(struct buf *out, uint64_t value)
{
	unsigned char bytes[VARINT_MAX];
	buf_add(out, bytes, encode_varint(value, bytes));
}

static void key(struct buf *out, uint32_t field, enum wire wire)
{
	varint(out, (uint64_t)field << 3 | wire);
}

void proto_uint(struct buf *out, uint32_t field, uint64_t value)
{
	key(out, field, WIRE_VARINT);
	varint(out, value);
}

void proto_double(struct buf *out, uint32_t field, double value)
{
	uint64_t bits;
	unsigned char bytes[sizeof(bits)];
	memcpy(&bits, &value, sizeof(bits));
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(bits >> 8 * i); // little-endian on every machine
	key(out, field, WIRE_64_BITS);
	buf_add(out, bytes, sizeof(bytes));
}

void proto_text(struct buf *out, uint32_t field, const char *text)
{
	size_t begun = proto_begin(out, field);
	for (const char *at = text != NULL ? text : "", *good = at;; at++) {
		size_t length = *at != '\0' ? utf8_length(at) : 0;
		if (length > 0) {
			at += length - 1;
			continue;
		}
		buf_add(out, good, (size_t)(at - good));
		if (*at == '\0')
			break;
		buf_str(out, UTF8_REPLACEMENT);
		good = at + 1;
	}
	proto_end(out, begun);
}

// The length precedes the content. One byte is reserved, enough below 128; proto_end makes room for longer lengths.
size_t proto_begin(struct buf *out, uint32_t field)
{
	key(out, field, WIRE_BYTES);
	buf_char(out, 0);
	return out->size;
}

void proto_end(struct buf *out, size_t begun)
{
	unsigned char length[VARINT_MAX];
	if (out->failed)
		return;
	size_t size = out->size - begun, n = encode_varint(size, length);
	buf_add(out, length, n - 1); // placeholder bytes; the content moves over them
	if (out->failed)
		return;
	memmove(out->data + begun + n - 1, out->data + begun, size);
	memcpy(out->data + begun - 1, length, n);
}
