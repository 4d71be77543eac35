/* Bytes sent to PostgreSQL: the binary format of COPY, sets of ids, URLs. No server needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "store/postgres/pq.h"
#include "store/postgres/send.h"

#include <errno.h>
#include <string.h>

struct bytes_row {
	const char *teaches;
	void (*write)(struct copy *copy);
	const char *bytes;
	size_t size;
};

static void null(struct copy *copy)
{
	copy_null(copy);
}

static void int8(struct copy *copy)
{
	copy_i64(copy, PG_TYPE_INT8, -2);
}

static void int4(struct copy *copy)
{
	copy_i64(copy, PG_TYPE_INT4, 258);
}

static void too_large(struct copy *copy)
{
	copy_i64(copy, PG_TYPE_INT4, INT64_C(1) << 31);
}

static void as_float(struct copy *copy)
{
	copy_i64(copy, PG_TYPE_FLOAT8, 1);
}

static void text(struct copy *copy)
{
	copy_text(copy, "a\xc3\xa9", 3);
}

static void bad_text(struct copy *copy)
{
	copy_text(copy, "a\xff\0z", 4);
}

static void epoch(struct copy *copy)
{
	copy_time(copy, INT64_C(946684800) * NS_PER_S + 1999);
}

static void before_epoch(struct copy *copy)
{
	copy_time(copy, -1);
}

#define BYTES(text) text, sizeof(text) - 1
static const struct bytes_row rows[] = {
	{"null: a size of -1", null, BYTES("\xff\xff\xff\xff")},
	{"bigint", int8, BYTES("\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xfe")},
	{"integer", int4, BYTES("\0\0\0\x04\0\0\x01\x02")},
	{"value out of the column's range: null", too_large, BYTES("\xff\xff\xff\xff")},
	{"whole number in a column of doubles", as_float, BYTES("\0\0\0\x08\x3f\xf0\0\0\0\0\0\0")},
	{"text", text,
		BYTES("\0\0\0\x03"
		      "a\xc3\xa9")},
	{"invalid UTF-8 and NUL, which PostgreSQL refuses: replaced", bad_text,
		BYTES("\0\0\0\x08"
		      "a\xef\xbf\xbd\xef\xbf\xbdz")},
	{"times: whole microseconds since 2000", epoch, BYTES("\0\0\0\x08\0\0\0\0\0\0\0\x01")},
	{"times before 1970: rounded towards the past", before_epoch,
		BYTES("\0\0\0\x08\xff\xfc\xa2\xfe\xc4\xc8\x1f\xff")},
};

static void fields_are_as_documented(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct copy copy;
		copy_init(&copy);
		rows[i].write(&copy);
		if (copy.size - copy.header_size != rows[i].size ||
			memcmp(copy.bytes + copy.header_size, rows[i].bytes, rows[i].size) != 0)
			fail_msg("%s", rows[i].teaches);
		copy_finish(&copy);
	}
}

static void uuids(void **state)
{
	(void)state;
	unsigned char uuid[16];
	assert_true(copy_parse_uuid("00112233-4455-6677-8899-AaBbCcDdEeFf", uuid));
	assert_memory_equal(uuid, "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 16);
	static const char *const wrong[] = {"", "00112233", "00112233-4455-6677-8899-aabbccddeef",
		"00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeegg",
		"00112233-4455-6677-8899-aabbccddeeff0"};
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(copy_parse_uuid(wrong[i], uuid));
}

/* ---- sets of ids ---- */

static void expect_ranges(const struct ranges *ranges, const char *expected)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	ranges_write(ranges, &out);
	assert_string_equal(out.data, expected);
	buf_finish(&out);
}

static void numbers_become_ranges(void **state)
{
	(void)state;
	struct ranges ranges = {0};
	expect_ranges(&ranges, "{}");
	static const struct {
		int64_t number;
		const char *then;
	} steps[] = {{5, "{[5,6)}"}, {6, "{[5,7)}"}, {9, "{[5,7),[9,10)}"}, {8, "{[5,7),[8,10)}"}, {7, "{[5,10)}"},
		{7, "{[5,10)}"}, {1, "{[1,2),[5,10)}"}, {3, "{[1,2),[3,4),[5,10)}"}, {4, "{[1,2),[3,10)}"},
		{2, "{[1,10)}"}};
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		assert_int_equal(ranges_add(&ranges, steps[i].number), 0);
		expect_ranges(&ranges, steps[i].then);
	}
	assert_true(ranges_have(&ranges, 9));
	assert_false(ranges_have(&ranges, 10));
	ranges_finish(&ranges);
}

// A damaged file may have any number as an id.
static void the_largest_and_the_least_number(void **state)
{
	(void)state;
	struct ranges ranges = {0};
	assert_int_equal(ranges_add(&ranges, INT64_MAX), -EINVAL); // a range would have to end behind it
	assert_int_equal(ranges_add(&ranges, INT64_MAX - 1), 0);
	assert_int_equal(ranges_add(&ranges, INT64_MIN), 0);
	assert_int_equal(ranges_add(&ranges, INT64_MIN + 1), 0);
	assert_int_equal(ranges_add(&ranges, INT64_MAX - 2), 0);
	expect_ranges(&ranges,
		"{[-9223372036854775808,-9223372036854775806),[9223372036854775805,9223372036854775807)}");
	ranges_finish(&ranges);
}

static void ranges_come_back(void **state)
{
	(void)state;
	static const char *const good[] = {"{}", "{[1,2)}", "{[-3,4),[9,1000000000000)}"};
	static const char *const bad[] = {"{[2,1)}", "{[1,2", "{[x,2)}", "{[5,9),[1,2)}", "{[1,5),[4,9)}"};
	struct ranges ranges;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(ranges_parse(good[i], &ranges), 0);
		expect_ranges(&ranges, good[i]);
		ranges_finish(&ranges);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(ranges_parse(bad[i], &ranges), -EINVAL);
}

static void a_random_set_is_what_a_bitmap_says(void **state)
{
	(void)state;
	enum { NUMBERS = 500 };
	bool has[NUMBERS] = {false};
	struct ranges ranges = {0};
	uint32_t seed = 1;
	for (int i = 0; i < 2 * NUMBERS; i++) {
		seed = seed * 1664525 + 1013904223;
		uint32_t number = (seed >> 8) % NUMBERS;
		has[number] = true;
		assert_int_equal(ranges_add(&ranges, number), 0);
	}
	for (int i = 0; i < NUMBERS; i++)
		assert_int_equal(ranges_have(&ranges, i), has[i]);
	for (size_t i = 1; i < ranges.n; i++) // no two ranges overlap
		assert_true(ranges.items[i - 1].to + 1 < ranges.items[i].from);
	ranges_finish(&ranges);
}

/* ---- URLs ---- */

static void passwords_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *url;
		int result;
	} urls[] = {{"postgresql://db", 0}, {"postgres://me@db:5433/runs?sslmode=verify-full", 0},
		{"postgresql:///runs?host=/run/pg", 0}, {"postgresql://[::1]:5432/runs", 0},
		{"postgresql://a:1,b:2/runs", 0}, {"postgresql:///runs?service=a:b@c", 0},
		{"postgresql://me:secret@db/runs", -EINVAL}, {"postgresql://me@db/runs?password=secret", -EINVAL},
		{"postgresql://me@db/runs?sslmode=require&password=secret", -EINVAL},
		{"postgresql://me@db/runs?sslpassword=secret", -EINVAL}, {"mysql://db", -EINVAL}, {"db", -EINVAL},
		{"", -EINVAL}, {"postgresql://me@db/runs?sslkey=engine:key", -EINVAL},
		{"postgresql://me@db/runs?a=b&sslkey=engine%3akey", -EINVAL},
		{"postgresql://me@db/runs?sslkey=/home/me/key.pem&sslcert=/home/me/a:b", 0}};
	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		struct wattle_error error = {0};
		if (pg_check_url(urls[i].url, &error) != urls[i].result)
			fail_msg("%s", urls[i].url);
		assert_null(strstr(error.text, "secret"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_as_documented),
		cmocka_unit_test(uuids),
		cmocka_unit_test(numbers_become_ranges),
		cmocka_unit_test(the_largest_and_the_least_number),
		cmocka_unit_test(ranges_come_back),
		cmocka_unit_test(a_random_set_is_what_a_bitmap_says),
		cmocka_unit_test(passwords_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
