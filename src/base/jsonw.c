#include "base/jsonw.h"

#include "base/num.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void jsonw_init(struct jsonw *j, struct buf *out, bool pretty)
{
	*j = (struct jsonw){.out = out, .pretty = pretty};
}

// Writes the separator before an item: comma, newline, indentation.
static void lead(struct jsonw *j)
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

static void begin(struct jsonw *j, char bracket)
{
	lead(j);
	buf_char(j->out, bracket);
	assert(j->depth + 1 < JSONW_DEPTH_MAX);
	j->has_item[++j->depth] = false;
}

static void end(struct jsonw *j, char bracket)
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

void jsonw_begin_object(struct jsonw *j)
{
	begin(j, '{');
}

void jsonw_end_object(struct jsonw *j)
{
	end(j, '}');
}

void jsonw_begin_array(struct jsonw *j)
{
	begin(j, '[');
}

void jsonw_end_array(struct jsonw *j)
{
	end(j, ']');
}

static void quoted(struct jsonw *j, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	buf_char(j->out, '"');
	for (const unsigned char *at = (const unsigned char *)text; *at != '\0';) {
		size_t length = utf8_length((const char *)at);
		if (length == 0) {
			buf_str(j->out, UTF8_REPLACEMENT);
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

void jsonw_key(struct jsonw *j, const char *key)
{
	lead(j);
	quoted(j, key);
	buf_str(j->out, ": ");
	j->after_key = true;
}

void jsonw_string(struct jsonw *j, const char *text)
{
	if (text == NULL) {
		jsonw_null(j);
		return;
	}
	lead(j);
	quoted(j, text);
}

void jsonw_i64(struct jsonw *j, int64_t value)
{
	lead(j);
	buf_i64(j->out, value);
}

void jsonw_u64(struct jsonw *j, uint64_t value)
{
	lead(j);
	buf_u64(j->out, value);
}

void jsonw_double(struct jsonw *j, double value)
{
	if (!isfinite(value)) {
		jsonw_null(j);
		return;
	}
	lead(j);
	buf_double(j->out, value);
}

void jsonw_rounded(struct jsonw *j, double value, int digits)
{
	char text[40];
	if (!isfinite(value)) {
		jsonw_null(j);
		return;
	}
	lead(j);
	buf_add(j->out, text, num_format_significant(text, sizeof(text), value, digits));
}

void jsonw_bool(struct jsonw *j, bool value)
{
	lead(j);
	buf_str(j->out, value ? "true" : "false");
}

void jsonw_null(struct jsonw *j)
{
	lead(j);
	buf_str(j->out, "null");
}

void jsonw_key_string(struct jsonw *j, const char *key, const char *text)
{
	jsonw_key(j, key);
	jsonw_string(j, text);
}

void jsonw_key_i64(struct jsonw *j, const char *key, int64_t value)
{
	jsonw_key(j, key);
	if (value == INT64_MIN) // VALUE_MISSING
		jsonw_null(j);
	else
		jsonw_i64(j, value);
}

void jsonw_key_double(struct jsonw *j, const char *key, double value)
{
	jsonw_key(j, key);
	jsonw_double(j, value);
}

void jsonw_key_bool(struct jsonw *j, const char *key, bool value)
{
	jsonw_key(j, key);
	jsonw_bool(j, value);
}
