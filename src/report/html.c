#include "report/html.h"

#include "base/utf8.h"

void html_text(struct buf *out, const char *text)
{
	for (size_t length; text != NULL && *text != '\0'; text += length > 0 ? length : 1) {
		unsigned char c = (unsigned char)*text;
		length = utf8_length(text);
		switch (c) {
		case '&':
			buf_str(out, "&amp;");
			break;
		case '<':
			buf_str(out, "&lt;");
			break;
		case '>':
			buf_str(out, "&gt;");
			break;
		case '"':
			buf_str(out, "&quot;");
			break;
		case '\'':
			buf_str(out, "&#39;");
			break;
		default:
			if (length > 0 && c >= 0x20 && c != 0x7f)
				buf_add(out, text, length);
			else
				buf_str(out, c == '\t' || c == '\n' ? " " : UTF8_REPLACEMENT);
		}
	}
}

void html_json(struct buf *out, const char *id, const char *json, size_t size)
{
	buf_printf(out, "<script type=\"application/json\" id=\"%s\">", id);
	size_t from = 0;
	for (size_t i = 0; i < size; i++) {
		const char *escape = json[i] == '<' ? "\\u003c"
			: json[i] == '>'            ? "\\u003e"
			: json[i] == '&'            ? "\\u0026"
						    : NULL;
		size_t length = 1;
		if (escape == NULL && json[i] == '\xe2' && i + 2 < size && json[i + 1] == '\x80' &&
			(json[i + 2] == '\xa8' || json[i + 2] == '\xa9')) {
			escape = json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
			length = 3;
		}
		if (escape == NULL)
			continue;
		buf_add(out, json + from, i - from);
		buf_str(out, escape);
		i += length - 1;
		from = i + 1;
	}
	buf_add(out, json + from, size - from);
	buf_str(out, "</script>\n");
}
