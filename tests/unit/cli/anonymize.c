#include "cli/sensors.h"

#include "rows.h"

#include <string.h>

#define UUID_1 "00000000-0000-4000-8000-000000000001"
#define UUID_2 "00000000-0000-4000-8000-000000000002"

static const struct row {
	const char *teaches, *text, *expected;
} rows[] = {
	{"text without identifiers: unchanged", "package-0\n", "package-0\n"},
	{"GPU UUID: prefix kept, digits replaced", "GPU-12345678-9abc-def0-1234-56789abcdef0", "GPU-" UUID_1},
	{"each identifier has a number of its own, the same at each occurrence",
		"01234567-89ab-cdef-0123-456789abcdef 11234567-89ab-cdef-0123-456789abcdef "
		"01234567-89ab-cdef-0123-456789abcdef",
		UUID_1 " " UUID_2 " " UUID_1},
	{"one digit too many: no UUID, unchanged", "01234567-89ab-cdef-0123-456789abcdef0",
		"01234567-89ab-cdef-0123-456789abcdef0"},
	{"one digit too few: no UUID, unchanged", "1234567-89ab-cdef-0123-456789abcdef",
		"1234567-89ab-cdef-0123-456789abcdef"},
	{"MAC address: replaced", "at 00:1a:2B:3c:4d:5e.", "at 02:00:00:00:00:01."},
	{"InfiniBand address of 20 bytes: replaced", "00:1a:2b:3c:4d:5e:6f:70", "02:00:00:00:00:01"},
	{"PCI address: unchanged", "0000:43:00.0 00:1f.2", "0000:43:00.0 00:1f.2"},
	{"time of day: unchanged", "12:34:56", "12:34:56"},
	{"host name: replaced", "on tiger, says tiger", "on host, says host"},
	{"host name inside a word: unchanged", "tigers tiger-1 atiger tiger.lan", "tigers tiger-1 atiger tiger.lan"},
	{"text that ends within an identifier", "00:1a:2b:3c:4d:", "00:1a:2b:3c:4d:"},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct anonymizer anonymizer;
	struct buf out;
	anonymizer_init(&anonymizer, "tiger");
	buf_init(&out, 1 << 12);
	anonymize_scrub(&anonymizer, row->text, strlen(row->text), true, &out);
	assert_string_equal(out.data, row->expected);
	buf_finish(&out);
	anonymizer_finish(&anonymizer);
}

static void serials(void **state)
{
	struct anonymizer anonymizer;
	struct buf out;
	anonymizer_init(&anonymizer, "");
	buf_init(&out, 1 << 12);
	anonymize_put(&anonymizer, PSEUDONYM_SERIAL, "a1b2c3d4", 8, &out);
	buf_char(&out, ' ');
	anonymize_put(&anonymizer, PSEUDONYM_SERIAL, "x", 1, &out);
	buf_char(&out, ' ');
	anonymize_put(&anonymizer, PSEUDONYM_SERIAL, "a1b2c3d4", 8, &out);
	assert_string_equal(out.data, "00000001 2 00000001");
	assert_true(anonymize_has_mac("hid-00:1a:2b:3c:4d:5e-battery"));
	assert_false(anonymize_has_mac("intel-rapl:0:1"));
	buf_finish(&out);
	anonymizer_finish(&anonymizer);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "serial number: replaced by one of equal length", serials);
	return rows_run(&tests, "pseudonym");
}
