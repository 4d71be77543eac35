/* Untrusted texts in cells of the terminal. */
#include "live/session.h"

#include "base/util.h"
#include "rows.h"

#include <locale.h>

static const struct text_row {
	const char *teaches;
	const char *text;
	int columns;
	bool utf8;
	const char *shown;
	int width; // width of the whole text
} text_rows[] = {
	{"a text that fits", "python train.py", 20, true, "python train.py\n", 15},
	{"text too long: cut, with an ellipsis", "python train.py", 10, true, "python tr…\n", 15},
	{"text of exactly the width: not cut", "python train.py", 15, true, "python train.py\n", 15},
	{"ellipsis without UTF-8", "python train.py", 10, false, "python tr~\n", 15},
	{"accented letters", "caf\xc3\xa9", 10, true, "caf\xc3\xa9\n", 4},
	{"without UTF-8: each other character is one '?'", "caf\xc3\xa9", 10, false, "caf?\n", 4},
	{"combining accent: attached to the letter before it", "cafe\xcc\x81!", 10, true, "cafe\xcc\x81!\n", 5},
	{"many combining accents: two are kept", "a\xcc\x81\xcc\x81\xcc\x81\xcc\x81|", 10, true, "a\xcc\x81\xcc\x81|\n",
		2},
	{"wide character: two cells", "\xe7\x81\xab|", 10, true, "\xe7\x81\xab|\n", 3},
	{"wide character that only half fits: left out", "ab\xe7\x81\xab", 3, true, "ab…\n", 4},
	{"an emoji", "\xf0\x9f\x94\xa5 hot", 10, true, "\xf0\x9f\x94\xa5 hot\n", 6},
	{"escape sequence: shown as text", "\x1b[31mred\x07", 20, true, "?[31mred?\n", 9},
	{"C1 control characters: replaced",
		"a\xc2\x9b"
		"31m",
		20, true, "a?31m\n", 5},
	{"bidirectional control characters: made visible",
		"a\xe2\x80\xae"
		"b",
		20, true, "a?b\n", 3},
	{"right-to-left letters: stay in their order", "\xd7\xa9\xd7\x9c", 20, true, "\xd7\xa9\xd7\x9c\n", 2},
	{"bytes that are not UTF-8: replaced", "a\xff\xc3(", 20, true, "a?\?(\n", 4},
	{"truncated character: replaced", "a\xe7\x81", 20, true, "a?\?\n", 3},
	{"overlong encoding: replaced",
		"a\xc0\xaf"
		"b",
		20, true, "a?\?b\n", 4},
	{"line break: stays on the line", "a\nb", 20, true, "a?b\n", 3},
	{"no room", "abc", 0, true, "\n", 3},
	{"room for the ellipsis only", "abc", 1, true, "…\n", 3},
};

static const char *shown(struct frame *frame, struct buf *out)
{
	buf_init(out, 1 << 20);
	frame_text(frame, out);
	return out->data;
}

static void check_text(void **state)
{
	const struct text_row *row = *state;
	struct frame frame;
	struct buf out;
	assert_int_equal(frame_init(&frame, row->columns, 1, row->utf8), 0);
	struct line line = line_in(&frame, (struct area){.width = row->columns, .height = 1}, 0);
	line_text(&line, (struct pen){.colour = COLOUR_INK}, row->text);
	assert_string_equal(shown(&frame, &out), row->shown);
	assert_int_equal(text_width(&frame, row->text), row->width);
	buf_finish(&out);
	frame_finish(&frame);
}

static void columns_are_cut_and_aligned(void **state)
{
	struct frame frame;
	struct buf out;
	const struct pen pen = {.colour = COLOUR_INK};
	assert_int_equal(frame_init(&frame, 24, 1, true), 0);
	struct line line = line_in(&frame, (struct area){.width = 24, .height = 1}, 0);
	line_column(&line, pen, "12", 5, true);
	line_blank(&line, 1);
	line_column(&line, pen, "root", 6, false);
	line_column(&line, pen, "much too long", 6, true);
	line_text(&line, pen, "|end");
	assert_string_equal(shown(&frame, &out), "   12 root  much …|end\n");
	buf_finish(&out);
	frame_finish(&frame);
}

static void half_a_wide_character_never_stays(void **state)
{
	struct frame frame;
	struct buf out;
	const struct pen pen = {.colour = COLOUR_INK};
	assert_int_equal(frame_init(&frame, 6, 1, true), 0);
	struct line line = line_in(&frame, (struct area){.width = 6, .height = 1}, 0);
	line_text(&line, pen, "\xe7\x81\xab\xe7\x81\xab");
	frame_rune(&frame, 1, 0, L'|', pen); // over the right half of the first one
	frame_rune(&frame, 2, 0, L'|', pen); // over the left half of the second one
	assert_string_equal(shown(&frame, &out), " ||\n");
	buf_finish(&out);
	frame_finish(&frame);
}

static void nothing_is_drawn_outside(void **state)
{
	struct frame frame;
	const struct pen pen = {.colour = COLOUR_INK};
	assert_int_equal(frame_init(&frame, 3, 2, true), 0);
	for (int y = -2; y < 4; y++)
		for (int x = -2; x < 6; x++)
			frame_rune(&frame, x, y, L'x', pen);
	struct line line = line_in(&frame, (struct area){.x = 2, .y = 1, .width = 100, .height = 1}, 0);
	line_text(&line, pen, "\xe7\x81\xab\xe7\x81\xab");
	line = line_in(&frame, (struct area){.y = 5, .width = 3, .height = 9}, 3);
	line_text(&line, pen, "abc");
	frame_set_attributes(&frame, (struct area){-5, -5, 100, 100}, ATTRIBUTE_BOLD);
	assert_null(frame_cell(&frame, 3, 0));
	frame_finish(&frame);
	assert_int_equal(frame_init(&frame, -1, 5, true), 0);
	frame_rune(&frame, 0, 0, L'x', pen);
	frame_finish(&frame);
}

int main(void)
{
	struct rows tests = {0};
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
		return 77;
	ROWS_ADD(&tests, text_rows, check_text);
	ROWS_ADD_ONE(&tests, "columns are cut and aligned", columns_are_cut_and_aligned);
	ROWS_ADD_ONE(&tests, "overwritten half of a wide character: the other half is cleared",
		half_a_wide_character_never_stays);
	ROWS_ADD_ONE(&tests, "drawing outside the frame: ignored", nothing_is_drawn_outside);
	return rows_run(&tests, "frame");
}
