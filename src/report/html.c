#include "report/html.h"

void html_text(struct buf *out, const char *text)
{
	for (; text != NULL && *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
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
			if (c >= 0x20 && c != 0x7f)
				buf_char(out, *text);
			else
				buf_str(out, c == '\t' || c == '\n' ? " " : "\xef\xbf\xbd");
		}
	}
}
