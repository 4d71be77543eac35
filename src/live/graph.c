#include "live/session.h"

#include "base/util.h"

#include <errno.h>

static const char *const style_names[GRAPH_STYLES] =
	{[GRAPH_BRAILLE] = "braille", [GRAPH_BLOCK] = "block", [GRAPH_ASCII] = "ascii"};

int graph_style_from_name(const char *name)
{
	for (int i = 0; i < GRAPH_STYLES; i++)
		if (strcmp(name, style_names[i]) == 0)
			return i;
	return -EINVAL;
}

/* ---- graphs over time ---- */

static const struct {
	int across, steps; // values and height steps per cell
} cells_of[GRAPH_STYLES] = {[GRAPH_BRAILLE] = {2, 4}, [GRAPH_BLOCK] = {1, 8}, [GRAPH_ASCII] = {1, 3}};

size_t graph_capacity(enum graph_style style, int width)
{
	return width > 0 ? (size_t)width * (size_t)cells_of[style].across : 0;
}

double graph_top(double value, double least)
{
	static const double steps[] = {1, 2, 5, 10};
	value = value > least ? value : least; // false for NaN
	if (!(value > 0) || !isfinite(value))
		return 1;
	double power = pow(10, floor(log10(value)));
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (value <= steps[i] * power * (1 + 1e-9))
			return steps[i] * power;
	return 10 * power;
}

// Height of a column in steps; 0: unknown.
static int height_of(double value, double top, int steps)
{
	if (isnan(value))
		return 0;
	double level = round(value / top * steps);
	return level < 1 ? 1 : level > steps ? steps : (int)level;
}

static wchar_t block_of(const int *filled)
{
	static const wchar_t blocks[] = L" ▁▂▃▄▅▆▇█";
	return blocks[filled[0]];
}

static wchar_t ascii_of(const int *filled)
{
	static const wchar_t signs[] = L" .:|";
	return signs[filled[0]];
}

static wchar_t braille_of(const int *filled)
{
	static const int dots[2][5] = {{0, 0x40, 0x44, 0x46, 0x47}, {0, 0x80, 0xa0, 0xb0, 0xb8}};
	int bits = dots[0][filled[0]] | dots[1][filled[1]];
	return bits == 0 ? L' ' : (wchar_t)(0x2800 + bits);
}

static wchar_t (*const shapes[GRAPH_STYLES])(
	const int *filled) = {[GRAPH_BRAILLE] = braille_of, [GRAPH_BLOCK] = block_of, [GRAPH_ASCII] = ascii_of};

static enum graph_style style_for(const struct frame *frame, enum graph_style style)
{
	return frame->utf8 ? style : GRAPH_ASCII;
}

// Draws one cell from the fill heights of its columns.
static void draw_cell(struct frame *frame, struct area area, const struct graph *graph, enum graph_style style, int x,
	int row)
{
	int across = cells_of[style].across, steps = cells_of[style].steps, below = (area.height - 1 - row) * steps;
	int filled[2] = {0}, part = 0, all = 0;
	for (int i = 0; i < across; i++) {
		// Aligned at the right edge: the last value is in the last column.
		int from_right = (area.width - x) * across - 1 - i;
		if (from_right >= (int)graph->n)
			continue;
		size_t at = graph->n - 1 - (size_t)from_right;
		int height = height_of(graph->values[at], graph->top, area.height * steps) - below;
		filled[i] = height < 0 ? 0 : height > steps ? steps : height;
		all += filled[i];
		if (graph->parts == NULL || isnan(graph->parts[at]) || filled[i] == 0)
			continue;
		int reach = (int)round(graph->parts[at] / graph->top * area.height * steps) - below;
		part += reach < 0 ? 0 : reach > filled[i] ? filled[i] : reach;
	}
	if (all > 0)
		frame_rune(frame, area.x + x, area.y + row, shapes[style](filled),
			2 * part > all ? graph->part_pen : graph->pen);
}

void graph_draw(struct frame *frame, struct area area, const struct graph *graph)
{
	enum graph_style style = style_for(frame, graph->style);
	for (int row = 0; row < area.height; row++)
		for (int x = 0; x < area.width; x++)
			draw_cell(frame, area, graph, style, x, row);
}

/* ---- bars ---- */

static const struct fill_row {
	wchar_t utf8, ascii;
	const char *utf8_text, *ascii_text;
} fills[FILLS] = {
	[FILL_SOLID] = {L'█', L'#', "█", "#"},
	[FILL_DENSE] = {L'▓', L'=', "▓", "="},
	[FILL_HALF] = {L'▒', L'%', "▒", "%"},
	[FILL_STRIPES] = {L'▚', L'+', "▚", "+"}, // no provenance
	[FILL_THIN] = {L'░', L'-', "░", "-"},
	[FILL_DOT] = {L'·', L'.', "·", "."},
};

const char *fill_sign(const struct frame *frame, enum fill fill)
{
	return frame->utf8 ? fills[fill].utf8_text : fills[fill].ascii_text;
}

enum fill fill_of(enum provenance provenance)
{
	static const enum fill of[PROVENANCE_KINDS] = {[PROVENANCE_MEASURED] = FILL_SOLID,
		[PROVENANCE_DERIVED] = FILL_DENSE,
		[PROVENANCE_ESTIMATED] = FILL_HALF};
	return of[provenance];
}

// Draws the last cell of a solid segment in eighths if such characters exist.
static void draw_tip(struct frame *frame, int x, int y, double share, struct pen pen)
{
	static const wchar_t eighths[] = L" ▏▎▍▌▋▊▉█";
	int n = (int)round(share * 8);
	if (n > 0)
		frame_rune(frame, x, y, eighths[n > 8 ? 8 : n], pen);
}

void bar_draw(struct frame *frame, struct area area, enum graph_style style, const struct bar_segment *segments,
	size_t n)
{
	double from = 0;
	bool has_eighths = style_for(frame, style) != GRAPH_ASCII;
	for (size_t i = 0; i < n; i++) {
		if (!(segments[i].share > 0))
			continue;
		const struct fill_row *fill = &fills[segments[i].fill];
		struct pen pen = {.colour = segments[i].colour};
		double to = from + segments[i].share * area.width;
		to = to > area.width ? area.width : to;
		bool has_tip = i + 1 == n && segments[i].fill == FILL_SOLID && has_eighths;
		int first = (int)round(from), last = has_tip ? (int)floor(to) : (int)round(to);
		for (int x = first; x < last; x++)
			frame_rune(frame, area.x + x, area.y, frame->utf8 ? fill->utf8 : fill->ascii, pen);
		if (has_tip && last < area.width)
			draw_tip(frame, area.x + last, area.y, to - last, pen);
		from = to;
	}
}
