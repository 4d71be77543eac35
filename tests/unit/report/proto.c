// Protobuf's wire format, byte by byte; the rows are from its specification.
#include "report/trace/internal.h"

#include "rows.h"

#include "base/util.h"

#include <string.h>

static const struct row {
	const char *teaches;
	uint32_t field;
	enum { UINT, DOUBLE, TEXT } type;
	uint64_t number;
	double value;
	const char *text;
	const char *hex;
} rows[] = {
	{"small number: one byte after field * 8 + 0", 1, UINT, .number = 5, .hex = "08 05"},
	{"128: two bytes of seven bits, the lowest first", 1, UINT, .number = 128, .hex = "08 80 01"},
	{"field number above 15: two bytes", 60, UINT, .number = 1, .hex = "e0 03 01"},
	{"largest number: ten bytes", 1, UINT, .number = UINT64_MAX, .hex = "08 ff ff ff ff ff ff ff ff ff 01"},
	{"double: eight bytes, the lowest first, after field * 8 + 1", 44, DOUBLE, .value = 1,
		.hex = "e1 02 00 00 00 00 00 00 f0 3f"},
	{"text: its length and its bytes, after field * 8 + 2", 2, TEXT, .text = "W", .hex = "12 01 57"},
	{"UTF-8 stays", 2, TEXT, .text = "\xc2\xb0", .hex = "12 02 c2 b0"},
	{"invalid UTF-8: each byte becomes U+FFFD", 2, TEXT, .text = "a\xff\xc3(",
		.hex = "12 08 61 ef bf bd ef bf bd 28"},
	{"truncated character: U+FFFD", 2, TEXT, .text = "\xe2\x82", .hex = "12 06 ef bf bd ef bf bd"},
	{"empty text: written", 2, TEXT, .text = "", .hex = "12 00"},
};

static void write_row(struct buf *out, const struct row *row)
{
	if (row->type == UINT)
		proto_uint(out, row->field, row->number);
	else if (row->type == DOUBLE)
		proto_double(out, row->field, row->value);
	else
		proto_text(out, row->field, row->text);
}

static void check(void **state)
{
	const struct row *row = *state;
	struct buf out, hex;
	buf_init(&out, 1024);
	buf_init(&hex, 1024);
	write_row(&out, row);
	for (size_t b = 0; b < out.size; b++)
		buf_printf(&hex, b > 0 ? " %02x" : "%02x", (unsigned)(unsigned char)out.data[b]);
	assert_string_equal(hex.data, row->hex);
	buf_finish(&out);
	buf_finish(&hex);
}

// The length is before contents that are only known afterwards, and takes one byte or more.
static void test_messages(void **state)
{
	static const size_t sizes[] = {0, 1, 127, 128, 300, 16383, 16384, 70000};
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct buf out;
		buf_init(&out, 1 << 20);
		size_t outer = proto_begin(&out, 1), inner = proto_begin(&out, 2);
		for (size_t b = 0; b < sizes[i]; b++)
			buf_char(&out, (char)('a' + b % 26));
		proto_end(&out, inner);
		proto_uint(&out, 3, 7);
		proto_end(&out, outer);

		size_t lengths[2], at = 0;
		for (int level = 0; level < 2; level++) {
			assert_int_equal(out.data[at++], level == 0 ? 0x0a : 0x12);
			lengths[level] = 0;
			for (unsigned shift = 0;; shift += 7) {
				unsigned char byte = (unsigned char)out.data[at++];
				lengths[level] |= (size_t)(byte & 0x7f) << shift;
				if (byte < 0x80)
					break;
			}
		}
		assert_int_equal(lengths[1], sizes[i]);
		for (size_t b = 0; b < sizes[i]; b++)
			assert_int_equal(out.data[at + b], 'a' + b % 26);
		assert_memory_equal(out.data + at + sizes[i], "\x18\x07", 2);
		assert_int_equal(out.size, at + sizes[i] + 2);
		buf_finish(&out);
	}
}

static void test_ceiling(void **state)
{
	for (size_t ceiling = 1; ceiling < 20; ceiling++) {
		struct buf out;
		buf_init(&out, ceiling);
		size_t message = proto_begin(&out, 1);
		proto_text(&out, 2, "longer than that");
		proto_end(&out, message);
		assert_int_not_equal(out.failed, 0);
		buf_finish(&out);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "nested messages, with lengths of one to three bytes", test_messages);
	ROWS_ADD_ONE(&tests, "full buffer: an error, and no byte beyond it", test_ceiling);
	return rows_run(&tests, "proto");
}
