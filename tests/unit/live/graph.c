/* Values drawn as dots and blocks, shares as bars. */
#include "live/session.h"

#include "base/util.h"
#include "rows.h"

#include <math.h>

enum { VALUES = 8 };
#define GAP ((double)NAN)

static const struct graph_row {
	const char *teaches;
	enum graph_style style;
	int width, height;
	bool utf8;
	size_t n;
	double values[VALUES];
	double top;
	const char *shown;
} graph_rows[] = {
	{"braille: two values a cell, four steps", GRAPH_BRAILLE, 2, 1, true, 4, {1, 2, 3, 4}, 4,
		"\xe2\xa3\xa0\xe2\xa3\xbe\n"},
	{"value 0 has the lowest dot", GRAPH_BRAILLE, 1, 1, true, 2, {0, 0}, 4, "\xe2\xa3\x80\n"},
	{"unknown value: no dot", GRAPH_BRAILLE, 1, 1, true, 2, {GAP, 0}, 4, "\xe2\xa2\x80\n"},
	{"the newest value is at the right edge", GRAPH_BLOCK, 4, 1, true, 1, {8}, 8, "   \xe2\x96\x88\n"},
	{"blocks: one value a cell, eight steps", GRAPH_BLOCK, 3, 1, true, 3, {1, 4, 8}, 8,
		"\xe2\x96\x81\xe2\x96\x84\xe2\x96\x88\n"},
	{"two rows", GRAPH_BLOCK, 3, 2, true, 3, {4, 8, 12}, 16,
		"  \xe2\x96\x84\n\xe2\x96\x84\xe2\x96\x88\xe2\x96\x88\n"},
	{"a value above the maximum fills the column", GRAPH_BLOCK, 1, 1, true, 1, {100}, 8, "\xe2\x96\x88\n"},
	{"without UTF-8: ASCII in every style", GRAPH_BRAILLE, 3, 1, false, 3, {1, 2, 3}, 3, ".:|\n"},
	{"ASCII has three steps", GRAPH_ASCII, 3, 2, true, 3, {1, 3, 6}, 6, "  |\n.||\n"},
	{"more values than columns: the oldest are left out", GRAPH_BLOCK, 2, 1, true, 3, {8, 1, 8}, 8,
		"\xe2\x96\x81\xe2\x96\x88\n"},
	{"no values", GRAPH_BRAILLE, 2, 1, true, 0, {0}, 1, "\n"},
};

static void compare(struct frame *frame, const char *expected)
{
	struct buf out;
	buf_init(&out, 1 << 16);
	frame_text(frame, &out);
	assert_string_equal(out.data, expected);
	buf_finish(&out);
	frame_finish(frame);
}

static void check_graph(void **state)
{
	const struct graph_row *row = *state;
	struct frame frame;
	assert_int_equal(frame_init(&frame, row->width, row->height, row->utf8), 0);
	const struct graph graph = {.style = row->style,
		.values = row->values,
		.n = row->n,
		.top = row->top,
		.pen = {.colour = COLOUR_OTHERS}};
	graph_draw(&frame, (struct area){.width = row->width, .height = row->height}, &graph);
	compare(&frame, row->shown);
}

static void a_part_has_its_own_colour(void **state)
{
	struct frame frame;
	const double values[] = {16}, parts[] = {8};
	assert_int_equal(frame_init(&frame, 1, 2, true), 0);
	const struct graph graph = {.style = GRAPH_BLOCK,
		.values = values,
		.parts = parts,
		.n = 1,
		.top = 16,
		.pen = {.colour = COLOUR_OTHERS},
		.part_pen = {.colour = COLOUR_TARGET}};
	graph_draw(&frame, (struct area){.width = 1, .height = 2}, &graph);
	assert_int_equal(frame_cell(&frame, 0, 0)->colour, COLOUR_OTHERS);
	assert_int_equal(frame_cell(&frame, 0, 1)->colour, COLOUR_TARGET);
	frame_finish(&frame);
}

static const struct top_row {
	const char *teaches;
	double value, least, top;
} top_rows[] = {
	{"axis scale: 1, 2 or 5 times a power of ten", 3.1, 0, 5},
	{"axis scale: a round value is kept", 200, 0, 200},
	{"axis scale: just above a round value: the next one", 200.1, 0, 500},
	{"axis scale: at least the minimum", 0.02, 1, 1},
	{"axis scale: no known value", GAP, 0, 1},
	{"bar: share 0", 0, 0, 1},
	{"axis scale: infinite value", INFINITY, 0, 1},
};

static void check_top(void **state)
{
	const struct top_row *row = *state;
	assert_float_equal(graph_top(row->value, row->least), row->top, 1e-9);
}

static const struct bar_row {
	const char *teaches;
	bool utf8;
	struct bar_segment segments[3];
	const char *shown;
} bar_rows[] = {
	{"bar: half", true, {{0.5, FILL_SOLID, COLOUR_TARGET}}, "\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\n"},
	{"bar: without UTF-8", false, {{0.5, FILL_SOLID, COLOUR_TARGET}}, "####\n"},
	{"bar: eighths of a cell", true, {{0}, {0}, {0.3125, FILL_SOLID, COLOUR_TARGET}},
		"\xe2\x96\x88\xe2\x96\x88\xe2\x96\x8c\n"},
	{"bar: parts are distinguishable without colour", false,
		{{0.25, FILL_SOLID, COLOUR_TARGET}, {0.25, FILL_DENSE, COLOUR_OTHERS}, {0.5, FILL_THIN, COLOUR_IDLE}},
		"##==----\n"},
	{"bar: estimated values are hatched", true, {{0.25, FILL_HALF, COLOUR_TARGET}}, "\xe2\x96\x92\xe2\x96\x92\n"},
	{"bar: a share above 1 fills it", false, {{3, FILL_SOLID, COLOUR_TARGET}, {1, FILL_DENSE, COLOUR_IDLE}},
		"########\n"},
	{"bar: unknown and negative shares are empty", false,
		{{GAP, FILL_SOLID, COLOUR_TARGET}, {-1, FILL_DENSE, COLOUR_IDLE}, {0.5, FILL_THIN, COLOUR_IDLE}},
		"----\n"},
};

static void check_bar(void **state)
{
	const struct bar_row *row = *state;
	struct frame frame;
	assert_int_equal(frame_init(&frame, 8, 1, row->utf8), 0);
	bar_draw(&frame, (struct area){.width = 8, .height = 1}, GRAPH_BRAILLE, row->segments,
		ARRAY_SIZE(row->segments));
	compare(&frame, row->shown);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, graph_rows, check_graph);
	ROWS_ADD_ONE(&tests, "graph: the target's share has a colour of its own", a_part_has_its_own_colour);
	ROWS_ADD(&tests, top_rows, check_top);
	ROWS_ADD(&tests, bar_rows, check_bar);
	return rows_run(&tests, "graph");
}
