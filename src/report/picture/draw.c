#include "report/picture/internal.h"

#include "base/num.h"
#include "base/utf8.h"
#include "base/util.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/picture/picture.h"

enum { NAME_MAX = 200 }; // maximum number of characters if no width is given

void draw_number(struct buf *out, double value)
{
	char text[40];
	double tenths = round(value * 10) / 10;
	buf_add(out, text, num_format_significant(text, sizeof(text), fabs(tenths) < 0.05 ? 0 : tenths, 7));
}

void draw_attribute(struct picture *p, const char *name, double value)
{
	buf_printf(p->out, " %s=\"", name);
	draw_number(p->out, value);
	buf_char(p->out, '"');
}

static void share(struct picture *p, const char *name, double value)
{
	char text[40];
	buf_printf(p->out, " %s=\"", name);
	buf_add(p->out, text, num_format_significant(text, sizeof(text), value, 3));
	buf_char(p->out, '"');
}

static void style_attributes(struct picture *p, const struct draw_style *style)
{
	buf_printf(p->out, " class=\"%c-%s\"", style->is_line ? 's' : 'c', palette[style->colour].css);
	if (style->opacity > 0)
		share(p, "opacity", style->opacity);
	if (style->stroke_width > 0)
		share(p, "stroke-width", style->stroke_width);
	if (style->dash != NULL)
		buf_printf(p->out, " stroke-dasharray=\"%s\"", style->dash);
}

void draw_line(struct picture *p, const struct draw_style *style, double x1, double y1, double x2, double y2)
{
	buf_str(p->out, "<line");
	style_attributes(p, style);
	draw_attribute(p, "x1", x1);
	draw_attribute(p, "y1", y1);
	draw_attribute(p, "x2", x2);
	draw_attribute(p, "y2", y2);
	buf_str(p->out, "/>\n");
}

static void set_box(struct picture *p, double x, double y, double width, double height)
{
	draw_attribute(p, "x", x);
	draw_attribute(p, "y", y);
	draw_attribute(p, "width", fmax(width, 0));
	draw_attribute(p, "height", fmax(height, 0));
}

void draw_rect(struct picture *p, const struct draw_style *style, double x, double y, double width, double height)
{
	buf_str(p->out, "<rect");
	style_attributes(p, style);
	set_box(p, x, y, width, height);
	buf_str(p->out, "/>\n");
}

static void hatch_fill(struct picture *p, bool is_wide)
{
	buf_printf(p->out, " fill=\"url(#%s%s)\"", p->id, is_wide ? "gap" : "hatch");
}

void draw_hatched(struct picture *p, bool is_wide, double x, double y, double width, double height)
{
	buf_str(p->out, "<rect");
	hatch_fill(p, is_wide);
	set_box(p, x, y, width, height);
	buf_str(p->out, "/>\n");
}

void draw_path_begin(struct picture *p, const struct draw_style *style)
{
	buf_str(p->out, "<path");
	style_attributes(p, style);
	if (style->is_line)
		buf_str(p->out, " stroke-linejoin=\"round\"");
	buf_str(p->out, " d=\"");
}

void draw_path_hatched(struct picture *p)
{
	buf_str(p->out, "<path");
	hatch_fill(p, false);
	buf_str(p->out, " d=\"");
}

void draw_to(struct picture *p, char command, double x, double y)
{
	buf_char(p->out, command);
	if (command == 'Z')
		return;
	if (command != 'V')
		draw_number(p->out, x);
	if (command != 'V' && command != 'H')
		buf_char(p->out, ' ');
	if (command != 'H')
		draw_number(p->out, y);
}

void draw_path_end(struct picture *p)
{
	buf_str(p->out, "\"/>\n");
}

/* ---- text ---- */

void draw_text_begin(struct picture *p, const struct draw_text *text)
{
	static const char *const anchors[] = {NULL, "middle", "end"};
	buf_printf(p->out, "<text class=\"c-%s\"", palette[text->colour].css);
	draw_attribute(p, "x", text->x);
	draw_attribute(p, "y", text->y);
	if (text->size > 0)
		draw_attribute(p, "font-size", text->size);
	if (text->is_bold)
		buf_str(p->out, " font-weight=\"600\"");
	if (anchors[text->anchor] != NULL)
		buf_printf(p->out, " text-anchor=\"%s\"", anchors[text->anchor]);
	if (text->turned != 0) {
		buf_str(p->out, " transform=\"rotate(");
		draw_number(p->out, text->turned);
		buf_char(p->out, ' ');
		draw_number(p->out, text->x);
		buf_char(p->out, ' ');
		draw_number(p->out, text->y);
		buf_str(p->out, ")\"");
	}
	buf_char(p->out, '>');
}

void draw_text_end(struct picture *p)
{
	buf_str(p->out, "</text>\n");
}

void draw_text(struct picture *p, const struct draw_text *text, const char *words)
{
	draw_text_begin(p, text);
	draw_string(p->out, words);
	draw_text_end(p);
}

void draw_string(struct buf *out, const char *words)
{
	html_text(out, words);
}

// Approximate width of a character relative to the text size. East Asian characters and emoji are twice as wide as letters.
static double advance(uint32_t code)
{
	static const char narrow[] = "iljtfrI.,:;'|!()[]/ ", broad[] = "mwMW@%&<>=+~#";
	if (code >= 0x1100)
		return 1;
	if (code < 0x80 && code > 0 && strchr(narrow, (int)code) != NULL)
		return 0.33;
	if (code < 0x80 && code > 0 && strchr(broad, (int)code) != NULL)
		return 0.85;
	return code < 0x80 && code >= 'A' && code <= 'Z' ? 0.7 : 0.6;
}

// Decodes the next character and returns its length in bytes; 0 at the end. Invalid bytes and characters that XML forbids
// become U+FFFD.
static size_t next_character(const char *at, uint32_t *ret_code)
{
	if (*at == '\0')
		return 0;
	size_t length = utf8_length(at);
	*ret_code = length > 0 ? utf8_code(at, length) : 0xfffd;
	bool is_blank = *ret_code == '\n' || *ret_code == '\t';
	if (is_blank)
		*ret_code = ' ';
	else if (*ret_code < 0x20 || (*ret_code >= 0x7f && *ret_code < 0xa0) || (*ret_code & 0xfffe) == 0xfffe)
		*ret_code = 0xfffd;
	return length > 0 ? length : 1;
}

double draw_width(const char *text, double size)
{
	double width = 0;
	uint32_t code = 0;
	for (size_t n; (n = next_character(text, &code)) > 0; text += n)
		width += advance(code);
	return width * size;
}

static void add_character(struct buf *out, const char *at, size_t length, uint32_t code)
{
	char one[8] = {0};
	if (code == 0xfffd) {
		buf_str(out, UTF8_REPLACEMENT);
		return;
	}
	if (code == ' ')
		one[0] = ' ';
	else
		memcpy(one, at, length);
	html_text(out, one);
}

void draw_name(struct buf *out, const char *name, double max_width)
{
	static const char isolate[] = "\u2068", end_isolate[] = "\u2069", ellipsis[] = "\u2026";
	bool all = max_width <= 0 || draw_width(name, TEXT_SIZE) <= max_width;
	double capacity = all ? INFINITY : max_width - TEXT_SIZE;
	size_t left = NAME_MAX;
	uint32_t code = 0;
	bool is_plain = true;
	if (phrase_unseen(out, name))
		return;
	for (const char *c = name; *c != '\0' && is_plain; c++)
		is_plain = (unsigned char)*c < 0x80;
	if (!is_plain)
		buf_str(out, isolate);
	for (size_t n; (n = next_character(name, &code)) > 0; name += n) {
		capacity -= advance(code) * TEXT_SIZE;
		if (capacity < 0 || left-- == 0) {
			buf_str(out, ellipsis);
			break;
		}
		add_character(out, name, n, code);
	}
	if (!is_plain)
		buf_str(out, end_isolate);
}

void draw_tip_begin(struct picture *p)
{
	buf_str(p->out, "<title>");
}

void draw_tip_end(struct picture *p)
{
	buf_str(p->out, "</title>");
}

enum colour colour_of_block(const struct charts *charts, uint32_t block)
{
	return block < charts->findings->n_blocks ? colour_of_series(charts->block_colors[block]) : COLOUR_IDLE;
}

void picture_heading(struct picture *p, const char *title)
{
	draw_text(p, &(struct draw_text){.x = 0, .y = 13, .colour = COLOUR_INK, .is_bold = true}, title);
}
