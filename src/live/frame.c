#include "live/session.h"

#include "base/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int frame_init(struct frame *frame, int columns, int rows, bool utf8)
{
	columns = columns > 0 ? columns : 0;
	rows = rows > 0 ? rows : 0;
	struct cell *cells = calloc_array((size_t)columns * (size_t)rows, sizeof(*cells));
	if (cells == NULL)
		return -ENOMEM;
	*frame = (struct frame){.columns = columns, .rows = rows, .utf8 = utf8, .cells = cells};
	frame_clear(frame);
	return 0;
}

void frame_finish(struct frame *frame)
{
	free(frame->cells);
	*frame = (struct frame){0};
}

void frame_clear(struct frame *frame)
{
	static const struct cell blank = {.runes = {L' '}, .width = 1, .colour = COLOUR_INK};
	for (size_t i = 0; i < (size_t)frame->columns * (size_t)frame->rows; i++)
		frame->cells[i] = blank;
}

const struct cell *frame_cell(const struct frame *frame, int x, int y)
{
	if (x < 0 || y < 0 || x >= frame->columns || y >= frame->rows)
		return NULL;
	return &frame->cells[(size_t)y * (size_t)frame->columns + (size_t)x];
}

static struct cell *cell_at(struct frame *frame, int x, int y)
{
	if (x < 0 || y < 0 || x >= frame->columns || y >= frame->rows)
		return NULL;
	return &frame->cells[(size_t)y * (size_t)frame->columns + (size_t)x];
}

// Clears the other half of a wide character that is overwritten.
static void part(struct frame *frame, int x, int y)
{
	struct cell *cell = cell_at(frame, x, y);
	struct cell *other = cell == NULL || cell->width == 1 ? NULL
							      : cell_at(frame, cell->width == 2 ? x + 1 : x - 1, y);
	if (other == NULL)
		return;
	other->runes[0] = L' ';
	other->runes[1] = other->runes[2] = 0;
	other->width = 1;
}

static void put(struct frame *frame, int x, int y, wchar_t rune, int width, struct pen pen)
{
	for (int i = 0; i < width; i++) {
		part(frame, x + i, y);
		struct cell *cell = cell_at(frame, x + i, y);
		if (cell == NULL)
			continue;
		*cell = (struct cell){.runes = {i == 0 ? rune : 0},
			.width = (uint8_t)(i == 0 ? width : 0),
			.colour = (uint8_t)pen.colour,
			.cell_attributes = (uint8_t)pen.cell_attributes};
	}
}

void frame_rune(struct frame *frame, int x, int y, wchar_t rune, struct pen pen)
{
	put(frame, x, y, rune, 1, pen);
}

void frame_set_attributes(struct frame *frame, struct area area, unsigned int cell_attributes)
{
	for (int y = area.y; y < area.y + area.height; y++)
		for (int x = area.x; x < area.x + area.width; x++) {
			struct cell *cell = cell_at(frame, x, y);
			if (cell != NULL)
				cell->cell_attributes |= (uint8_t)cell_attributes;
		}
}

/* ---- characters ---- */

// Decodes the next character of a UTF-8 text and its length in bytes; U+FFFD if invalid.
static wchar_t next_rune(const unsigned char *text, size_t *ret_bytes)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
	*ret_bytes = 1;
	for (size_t n = 0; n < ARRAY_SIZE(forms); n++) {
		if ((text[0] & forms[n].mask) != forms[n].lead)
			continue;
		uint32_t rune = text[0] & (unsigned char)~forms[n].mask;
		for (size_t i = 1; i <= n; i++) {
			if ((text[i] & 0xc0) != 0x80)
				return 0xfffd;
			rune = rune << 6 | (text[i] & 0x3f);
		}
		if (rune < forms[n].least || rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000))
			return 0xfffd;
		*ret_bytes = n + 1;
		return (wchar_t)rune;
	}
	return 0xfffd;
}

// True for direction marks and isolates, which would reverse the rest of the line, and for line and paragraph separators.
static bool is_formatting(wchar_t rune)
{
	return rune == 0x61c || rune == 0xfeff || (rune >= 0x200b && rune <= 0x200f) ||
		(rune >= 0x2028 && rune <= 0x202e) || (rune >= 0x2060 && rune <= 0x206f) ||
		(rune >= 0xe0000 && rune <= 0xe0fff);
}

// The displayed character and its width; 0: it combines with the previous one.
static wchar_t shown_rune(const struct frame *frame, wchar_t rune, int *ret_width)
{
	*ret_width = 1;
	if (rune >= 0x20 && rune < 0x7f)
		return rune;
	if (!frame->utf8 || rune < 0xa0 || rune == 0xfffd || is_formatting(rune))
		return L'?';
	int width = wcwidth(rune);
	if (width < 0)
		return L'?';
	*ret_width = width;
	return rune;
}

static bool put_upon(struct frame *frame, int x, int y, wchar_t rune)
{
	struct cell *cell = cell_at(frame, x - 1, y);
	if (cell != NULL && cell->width == 0)
		cell = cell_at(frame, x - 2, y);
	for (size_t i = 1; cell != NULL && i < CELL_RUNES; i++)
		if (cell->runes[i] == 0) {
			cell->runes[i] = rune;
			return true;
		}
	return false;
}

int text_width(const struct frame *frame, const char *text)
{
	int sum = 0, width;
	size_t bytes;
	for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at += bytes) {
		shown_rune(frame, next_rune(at, &bytes), &width);
		sum += width;
		if (sum > 1 << 20) // wider than any terminal
			break;
	}
	return sum;
}

const char *sign(const struct frame *frame, enum sign which)
{
	static const char *const signs[SIGNS][2] = {
		[SIGN_MORE] = {"~", "…"},
		[SIGN_DOT] = {"|", "·"},
		[SIGN_DOWN] = {"v", "▼"},
		[SIGN_UP] = {"^", "▲"},
		[SIGN_BRANCH] = {"|-", "├─"},
		[SIGN_LAST] = {"`-", "└─"},
		[SIGN_TREE_LINE] = {"| ", "│ "},
		[SIGN_DEGREE] = {" C", " °C"},
	};
	return signs[which][frame->utf8];
}

/* ---- lines ---- */

struct line line_in(struct frame *frame, struct area area, int row)
{
	int end = area.x + area.width < frame->columns ? area.x + area.width : frame->columns;
	bool is_there = row >= 0 && row < area.height;
	return (struct line){.frame = frame, .x = area.x, .y = area.y + row, .end = is_there ? end : area.x};
}

static void cut(struct line *line, struct pen pen)
{
	line->is_cut = true;
	size_t bytes;
	if (line->x < line->end)
		put(line->frame, line->x, line->y,
			next_rune((const unsigned char *)sign(line->frame, SIGN_MORE), &bytes), 1, pen);
	line->x = line->end;
}

// True if the text, including its combining marks, fits into `room` cells.
static bool fits(const struct frame *frame, const unsigned char *text, int capacity)
{
	return text_width(frame, (const char *)text) <= capacity;
}

void line_text(struct line *line, struct pen pen, const char *text)
{
	size_t bytes;
	int width;
	bool all = !line->is_cut && fits(line->frame, (const unsigned char *)text, line->end - line->x);
	for (const unsigned char *at = (const unsigned char *)text; *at != '\0' && !line->is_cut; at += bytes) {
		wchar_t rune = shown_rune(line->frame, next_rune(at, &bytes), &width);
		if (width == 0) {
			put_upon(line->frame, line->x, line->y, rune);
			continue;
		}
		if (!all && line->x + width > line->end - 1) {
			cut(line, pen);
			return;
		}
		put(line->frame, line->x, line->y, rune, width, pen);
		line->x += width;
	}
}

void line_printf(struct line *line, struct pen pen, const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	line_text(line, pen, text);
}

void line_to(struct line *line, int x)
{
	if (line->x < x)
		line->x = x < line->end ? x : line->end;
}

void line_blank(struct line *line, int n)
{
	line_to(line, line->x + n);
}

void line_column(struct line *line, struct pen pen, const char *text, int width, bool to_right)
{
	int end = line->x + width < line->end ? line->x + width : line->end;
	struct line column = {.frame = line->frame, .x = line->x, .y = line->y, .end = end};
	int capacity = end - line->x, used = text_width(line->frame, text);
	if (to_right && used < capacity)
		column.x += capacity - used;
	line_text(&column, pen, text);
	line->x = end;
}

/* ---- text output ---- */

static void add_rune(struct buf *out, wchar_t wide)
{
	uint32_t rune = (uint32_t)wide;
	if (rune < 0x80) {
		buf_char(out, (char)rune);
		return;
	}
	int more = rune < 0x800 ? 1 : rune < 0x10000 ? 2 : 3;
	static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
	buf_char(out, (char)(leads[more] | rune >> (6 * more)));
	while (more-- > 0)
		buf_char(out, (char)(0x80 | (rune >> (6 * more) & 0x3f)));
}

void frame_text(const struct frame *frame, struct buf *out)
{
	for (int y = 0; y < frame->rows; y++) {
		int end = frame->columns;
		while (end > 0 && frame_cell(frame, end - 1, y)->runes[0] == L' ')
			end--;
		for (int x = 0; x < end; x++) {
			const struct cell *cell = frame_cell(frame, x, y);
			for (size_t i = 0; i < CELL_RUNES && cell->runes[i] != 0; i++)
				add_rune(out, cell->runes[i]);
		}
		buf_char(out, '\n');
	}
}
