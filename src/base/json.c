#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void json_init(struct json *j, struct buf *out, bool pretty)
{
	*j = (struct json){.out = out, .pretty = pretty};
}

// What stands before an item: comma, new line, indentation.
static void lead(struct json *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (j->has_item[j->depth])
		buf_str(j->out, j->pretty ? "," : ", ");
	j->has_item[j->depth] = true;
	if (!j->pretty || j->depth == 0)
		return;
	buf_char(j->out, '\n');
	for (int i = 0; i < j->depth; i++)
		buf_str(j->out, "  ");
}

static void begin(struct json *j, char bracket)
{
	lead(j);
	buf_char(j->out, bracket);
	assert(j->depth + 1 < JSON_DEPTH_MAX);
	j->has_item[++j->depth] = false;
}

static void end(struct json *j, char bracket)
{
	assert(j->depth > 0 && !j->after_key);
	bool had_items = j->has_item[j->depth--];
	if (j->pretty && had_items) {
		buf_char(j->out, '\n');
		for (int i = 0; i < j->depth; i++)
			buf_str(j->out, "  ");
	}
	buf_char(j->out, bracket);
	if (j->depth == 0 && j->pretty)
		buf_char(j->out, '\n');
}

void json_begin_object(struct json *j)
{
	begin(j, '{');
}

void json_end_object(struct json *j)
{
	end(j, '}');
}

void json_begin_array(struct json *j)
{
	begin(j, '[');
}

void json_end_array(struct json *j)
{
	end(j, ']');
}

// Length of the valid UTF-8 sequence at text, 0 if there is none.
static size_t utf8_length(const unsigned char *text)
{
	static const struct {
		unsigned char mask, value;
		size_t length;
		unsigned min;
	} forms[] = {{0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
	if (text[0] < 0x80)
		return 1;
	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		if ((text[0] & forms[f].mask) != forms[f].value)
			continue;
		unsigned code = text[0] & (unsigned char)~forms[f].mask;
		for (size_t i = 1; i < forms[f].length; i++) {
			if ((text[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (text[i] & 0x3fu);
		}
		bool surrogate = code >= 0xd800 && code <= 0xdfff;
		return code >= forms[f].min && code <= 0x10ffff && !surrogate ? forms[f].length : 0;
	}
	return 0;
}

static void quoted(struct json *j, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	buf_char(j->out, '"');
	for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
		size_t length = utf8_length(at);
		if (length == 0) {
			buf_str(j->out, "\xef\xbf\xbd");
			at++;
			continue;
		}
		if (*at == '"' || *at == '\\') {
			buf_char(j->out, '\\');
			buf_char(j->out, (char)*at);
		} else if (*at == '\n') {
			buf_str(j->out, "\\n");
		} else if (*at < 0x20 || *at == 0x7f) {
			char escape[] = {'\\', 'u', '0', '0', hex[*at >> 4], hex[*at & 15]};
			buf_add(j->out, escape, sizeof(escape));
		} else {
			buf_add(j->out, at, length);
		}
		at += length;
	}
	buf_char(j->out, '"');
}

void json_key(struct json *j, const char *key)
{
	lead(j);
	quoted(j, key);
	buf_str(j->out, ": ");
	j->after_key = true;
}

void json_str(struct json *j, const char *text)
{
	if (text == NULL) {
		json_unknown(j);
		return;
	}
	lead(j);
	quoted(j, text);
}

void json_i64(struct json *j, int64_t value)
{
	lead(j);
	buf_i64(j->out, value);
}

void json_u64(struct json *j, uint64_t value)
{
	lead(j);
	buf_u64(j->out, value);
}

void json_double(struct json *j, double value)
{
	if (!isfinite(value)) {
		json_unknown(j);
		return;
	}
	lead(j);
	buf_double(j->out, value);
}

void json_bool(struct json *j, bool value)
{
	lead(j);
	buf_str(j->out, value ? "true" : "false");
}

void json_unknown(struct json *j)
{
	lead(j);
	buf_str(j->out, "null");
}

void json_key_string(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_str(j, text);
}

void json_key_i64(struct json *j, const char *key, int64_t value)
{
	json_key(j, key);
	if (value == INT64_MIN) // VALUE_MISSING
		json_unknown(j);
	else
		json_i64(j, value);
}

void json_key_double(struct json *j, const char *key, double value)
{
	json_key(j, key);
	json_double(j, value);
}

void json_key_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_bool(j, value);
}
