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
