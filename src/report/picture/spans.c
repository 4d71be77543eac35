// Spans as lanes, grouped by thread.
#include "report/picture/internal.h"

#include "base/util.h"

enum { TOP = 24, ROW = 16, GROUP = 15, LANES_MAX = 32, LEFT = 58, RIGHT = 10, BOTTOM = 26 };

// Number of lanes drawn, from the top; a note gives the number of the others.
static size_t lanes_shown(const struct charts *charts)
{
	return charts->n_lanes < LANES_MAX ? charts->n_lanes : LANES_MAX;
}

static bool begins_group(const struct charts *charts, size_t lane)
{
	const struct chart_lane *l = &charts->lanes[lane];
	if (lane > 0 && l->title != NULL && l[-1].title != NULL)
		return strcmp(l[-1].title, l->title) != 0;
	return lane == 0 || l[-1].pid != l->pid || l[-1].tid != l->tid || l[-1].is_range != l->is_range;
}

bool spans_has(const struct charts *charts)
{
	return charts->n_lanes > 0 && charts->axis.length_s > 0;
}

double spans_height(const struct picture *p)
{
	double height = TOP + BOTTOM + 4;
	for (size_t i = 0; i < lanes_shown(p->charts); i++)
		height += ROW + (begins_group(p->charts, i) ? GROUP : 0);
	return height;
}

static void group_name(struct picture *p, const struct chart_lane *lane, double y)
{
	draw_text_begin(p, &(struct draw_text){.x = 0, .y = y + 11, .colour = COLOUR_FAINT, .size = SMALL_TEXT_SIZE});
	if (lane->title != NULL) {
		draw_name(p->out, lane->title, 300);
		draw_text_end(p);
		return;
	}
	draw_name(p->out, lane->process != NULL ? lane->process : "process", 300);
	if (lane->pid != 0)
		buf_printf(p->out, " %d", lane->pid);
	if (lane->is_range)
		buf_str(p->out, ", ranges");
	else if (lane->tid != 0 && lane->tid != lane->pid)
		buf_printf(p->out, ", thread %d", lane->tid);
	draw_text_end(p);
}

static enum colour colour_of_item(const struct charts *charts, const struct chart_item *item)
{
	return item->block != UINT32_MAX ? colour_of_block(charts, item->block) : COLOUR_IDLE;
}

// Draws all boxes of one colour as a single path, because there may be one per pixel.
static void boxes(struct picture *p, const struct plot *plot, const struct chart_lane *lane, enum colour colour,
	double y)
{
	double drawn_to = -1;
	bool any = false;
	for (size_t i = 0; i < lane->n_items; i++) {
		const struct chart_item *item = &lane->items[i];
		double x0 = axis_x(p, plot, item->from_s), x1 = axis_x(p, plot, item->to_s);
		if (colour_of_item(p->charts, item) != colour || x1 < drawn_to)
			continue;
		double end = fmax(x1 - (x1 - x0 > 2 ? 0.5 : 0), x0 + 1);
		if (!any)
			draw_path_begin(p, &(struct draw_style){.colour = colour, .opacity = 0.55});
		any = true;
		draw_to(p, 'M', x0, y);
		draw_to(p, 'H', end, 0);
		draw_to(p, 'V', 0, y + ROW - 2);
		draw_to(p, 'H', x0, 0);
		draw_to(p, 'Z', 0, 0);
		drawn_to = x0 + 1;
	}
	if (any)
		draw_path_end(p);
}

static const char *name_of(const struct picture *p, const struct chart_item *item)
{
	if (item->span != SIZE_MAX)
		return p->f->run->spans[item->span].name;
	return item->block != UINT32_MAX ? p->f->blocks[item->block].name : "several";
}

static void names(struct picture *p, const struct plot *plot, const struct chart_lane *lane, double y)
{
	enum { NARROWEST = 34 };
	for (size_t i = 0; i < lane->n_items; i++) {
		const struct chart_item *item = &lane->items[i];
		double x0 = axis_x(p, plot, item->from_s), width = axis_x(p, plot, item->to_s) - x0;
		if (width < NARROWEST)
			continue;
		draw_text_begin(p,
			&(struct draw_text){.x = x0 + 4,
				.y = y + 11,
				.colour = COLOUR_INK,
				.size = SMALL_TEXT_SIZE - 1});
		draw_name(p->out, name_of(p, item), (width - 8) * TEXT_SIZE / (SMALL_TEXT_SIZE - 1));
		if (item->count > 1)
			buf_printf(p->out, " ×%u", item->count);
		draw_text_end(p);
	}
}

static void draw_lane(struct picture *p, const struct plot *plot, const struct chart_lane *lane, double y)
{
	if (lane->label != NULL) {
		draw_text_begin(p,
			&(struct draw_text){.x = 0, .y = y + 11, .colour = COLOUR_FAINT, .size = SMALL_TEXT_SIZE});
		draw_name(p->out, lane->label, LEFT - 6);
		draw_text_end(p);
	}
	for (unsigned int i = 0; i < CHART_BLOCK_COLORS; i++)
		boxes(p, plot, lane, colour_of_series(i), y);
	boxes(p, plot, lane, COLOUR_IDLE, y);
	names(p, plot, lane, y);
}

void spans_draw(struct picture *p)
{
	const struct charts *charts = p->charts;
	struct plot plot = {.left = LEFT, .right = p->width - RIGHT, .top = TOP, .bottom = p->height - BOTTOM};
	picture_heading(p, "Spans");
	if (charts->n_lanes > lanes_shown(charts)) {
		draw_text_begin(p,
			&(struct draw_text){.x = LEFT, .y = 13, .colour = COLOUR_FAINT, .size = SMALL_TEXT_SIZE});
		buf_printf(p->out, "%zu more lanes are not shown", charts->n_lanes - lanes_shown(charts));
		draw_text_end(p);
	}
	double y = TOP;
	for (size_t i = 0; i < lanes_shown(charts); i++) {
		if (begins_group(charts, i)) {
			group_name(p, &charts->lanes[i], y);
			y += GROUP;
		}
		draw_lane(p, &plot, &charts->lanes[i], y);
		y += ROW;
	}
	axis_time(p, &plot);
}

void spans_description(const struct charts *charts, struct buf *out)
{
	buf_printf(out, "%zu spans in %zu lanes over ", charts->n_spans, charts->n_lanes);
	time_text(out, charts->axis.length_s);
	buf_char(out, '.');
}
