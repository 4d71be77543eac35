#include "base/jsonw.h"

#include "base/util.h"
#include "rows.h"

#include <jansson.h>

static const struct string_row {
	const char *teaches, *text, *json;
} string_rows[] = {
	{"string: plain", "abc", "\"abc\""},
	{"string: empty", "", "\"\""},
	{"string: NULL is written as null", NULL, "null"},
	{"string: quotes and backslashes", "a\"b\\c", "\"a\\\"b\\\\c\""},
	{"string: control characters", "a\n\t\x01\x7f", "\"a\\n\\u0009\\u0001\\u007f\""},
	{"string: UTF-8 passes as it is", "µJ €", "\"µJ €\""},
	{"string: four bytes pass", "\xf0\x9f\x94\x8b", "\"\xf0\x9f\x94\x8b\""},
	{"string: the largest code point passes", "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\""},
	{"string: invalid Latin-1 bytes are replaced", "caf\xe9!", "\"caf\xef\xbf\xbd!\""},
	{"string: a lone continuation byte is replaced", "\x80", "\"\xef\xbf\xbd\""},
	{"string: a truncated sequence is replaced", "\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	{"string: an overlong slash is not a slash", "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	{"string: surrogates are replaced", "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	{"string: code points beyond U+10FFFF are replaced", "\xf4\x90\x80\x80",
		"\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	{"string: 0xff is never valid", "\xff", "\"\xef\xbf\xbd\""},
};

static void check_string(void **state)
{
	const struct string_row *row = *state;
	struct buf out;
	struct jsonw j;
	buf_init(&out, 1024);
	jsonw_init(&j, &out, false);
	jsonw_string(&j, row->text);
	assert_string_equal(out.data, row->json);
	buf_finish(&out);
}

static void one_of_everything(struct jsonw *j)
{
	jsonw_begin_object(j);
	jsonw_key_i64(j, "count", -3);
	jsonw_key_i64(j, "unknown", VALUE_MISSING);
	jsonw_key_double(j, "nan", (double)NAN);
	jsonw_key_double(j, "half", 0.5);
	jsonw_key_bool(j, "yes", true);
	jsonw_key_string(j, "none", NULL);
	jsonw_key(j, "list");
	jsonw_begin_array(j);
	jsonw_u64(j, UINT64_MAX);
	jsonw_begin_object(j);
	jsonw_end_object(j);
	jsonw_null(j);
	jsonw_end_array(j);
	jsonw_end_object(j);
}

static void on_one_line(void **state)
{
	struct buf out;
	struct jsonw j;
	buf_init(&out, 4096);
	jsonw_init(&j, &out, false);
	one_of_everything(&j);
	assert_string_equal(out.data,
		"{\"count\": -3, \"unknown\": null, \"nan\": null, \"half\": 0.5, \"yes\": true, "
		"\"none\": null, \"list\": [18446744073709551615, {}, null]}");
	buf_finish(&out);
}

static void indented(void **state)
{
	struct buf out;
	struct jsonw j;
	buf_init(&out, 4096);
	jsonw_init(&j, &out, true);
	one_of_everything(&j);
	assert_string_equal(out.data,
		"{\n  \"count\": -3,\n  \"unknown\": null,\n  \"nan\": null,\n  \"half\": 0.5,\n"
		"  \"yes\": true,\n  \"none\": null,\n  \"list\": [\n"
		"    18446744073709551615,\n    {},\n    null\n  ]\n}\n");
	buf_finish(&out);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void any_bytes_give_valid_json(void **state)
{
	// Lead and continuation bytes are more frequent than in uniform noise.
	static const unsigned char favourites[] = {0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0x80, 0x9f, 0xa0, 0xbf, '"', '\\'};
	uint64_t seed = 2463534242;
	struct buf out;
	buf_init(&out, 4096);
	for (int i = 0; i < 50000; i++) {
		char text[16];
		size_t length = next_random(&seed) % (sizeof(text) - 1);
		for (size_t c = 0; c < length; c++) {
			uint64_t random = next_random(&seed);
			text[c] = random % 3 == 0 ? (char)(1 + random / 3 % 255)
						  : (char)favourites[random / 3 % ARRAY_SIZE(favourites)];
		}
		text[length] = '\0';
		struct jsonw j;
		buf_clear(&out);
		jsonw_init(&j, &out, false);
		jsonw_string(&j, text);
		json_error_t error;
		json_t *read = json_loads(out.data, JSON_DECODE_ANY, &error); // refuses invalid UTF-8
		assert_non_null(read);
		json_decref(read);
	}
	buf_finish(&out);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, string_rows, check_string);
	ROWS_ADD_ONE(&tests, "writer: unknown integers and NaN are null", on_one_line);
	ROWS_ADD_ONE(&tests, "writer: two blanks for each level, a newline at the end", indented);
	ROWS_ADD_ONE(&tests, "string: 50,000 random byte strings are read back by an independent parser",
		any_bytes_give_valid_json);
	return rows_run(&tests, "json");
}
