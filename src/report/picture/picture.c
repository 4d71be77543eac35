#include "report/picture/picture.h"

#include "base/util.h"
#include "report/picture/internal.h"

#include <stdio.h>

enum { DEFAULT_WIDTH = 720 };

struct kind {
	const char *name, *title;
	const char *chart; // chart id; NULL: not a chart
	bool (*has)(const struct charts *charts);
	double (*height)(const struct picture *p);
	void (*draw)(struct picture *p);
	void (*words)(const struct charts *charts, struct buf *out);
};

static const struct kind kinds[PICTURE_KINDS] = {
	[PICTURE_POWER] = {"power", "Power", "power"},
	[PICTURE_CPU] = {"cpu", "CPU", "cpu"},
	[PICTURE_MEMORY] = {"memory", "Memory", "memory"},
	[PICTURE_GPU_UTILIZATION] = {"gpu_utilization", "GPU utilization", "gpu_utilization"},
	[PICTURE_GPU_MEMORY] = {"gpu_memory", "GPU memory", "gpu_memory"},
	[PICTURE_TEMPERATURE] = {"temperature", "Temperature", "temperature"},
	[PICTURE_CLOCK] = {"clock", "Clocks", "clock"},
	[PICTURE_SPANS] = {"spans", "Spans", NULL, spans_has, spans_height, spans_draw, spans_description},
	[PICTURE_LEDGER] = {"ledger", "Attributed energy", NULL, ledger_has, ledger_height, ledger_draw,
		ledger_description},
	[PICTURE_FLAME] = {"flame", "Energy of this program by nested blocks", NULL, flame_has, flame_height,
		flame_draw, flame_description},
	[PICTURE_BLOCKS] = {"blocks", "Energy of code blocks", NULL, blocks_has, blocks_height, blocks_draw,
		blocks_description},
};

const char *picture_name(enum picture_kind kind)
{
	return kinds[kind].name;
}

bool picture_has(const struct charts *charts, enum picture_kind kind)
{
	if (kinds[kind].chart != NULL)
		return charts_find(charts, kinds[kind].chart) != NULL;
	return kinds[kind].has(charts);
}

static void stripe_pattern(struct picture *p, const char *name, int distance, enum colour colour, const char *opacity)
{
	buf_printf(p->out,
		"<pattern id=\"%s%s\" width=\"%d\" height=\"%d\" patternUnits=\"userSpaceOnUse\" "
		"patternTransform=\"rotate(45)\"><path class=\"s-%s\" stroke-width=\"1.6\" opacity=\"%s\" "
		"d=\"M0 0V%d\"/></pattern>",
		p->id, name, distance, distance, palette[colour].css, opacity, distance);
}

// A stand-alone file has no page style sheet, so it defines the classes itself.
static void light_style(struct buf *out)
{
	buf_str(out, "<style>");
	for (size_t i = 0; i < COLOURS; i++)
		buf_printf(out, ".c-%s{fill:#%06x}.s-%s{stroke:#%06x;fill:none}", palette[i].css, palette[i].light,
			palette[i].css, palette[i].light);
	buf_str(out, "</style>\n");
}

static void begin(struct picture *p)
{
	bool is_file = p->look->is_file;
	if (is_file)
		buf_str(p->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	buf_str(p->out, "<svg");
	if (is_file) {
		buf_str(p->out, " xmlns=\"http://www.w3.org/2000/svg\" font-family=\"Helvetica, Arial, sans-serif\"");
		draw_attribute(p, "width", p->width);
		draw_attribute(p, "height", p->height);
	}
	buf_str(p->out, " viewBox=\"0 0 ");
	draw_number(p->out, p->width);
	buf_char(p->out, ' ');
	draw_number(p->out, p->height);
	buf_printf(p->out, "\" font-size=\"%d\" role=\"img\" aria-labelledby=\"%st %sd\">\n", TEXT_SIZE, p->id, p->id);
}

static void words(struct picture *p)
{
	const struct kind *kind = &kinds[p->kind];
	buf_printf(p->out, "<title id=\"%st\">%s</title>\n<desc id=\"%sd\">", p->id, kind->title, p->id);
	if (kind->chart != NULL)
		chart_description(p->out, p->charts, charts_find(p->charts, kind->chart));
	else
		kind->words(p->charts, p->out);
	buf_str(p->out, "</desc>\n");
}

void picture_svg(const struct charts *charts, enum picture_kind kind, const struct picture_style *look, struct buf *out)
{
	const struct kind *row = &kinds[kind];
	char id[96];
	if (!picture_has(charts, kind))
		return;
	snprintf(id, sizeof(id), "%s%s-", look->id_prefix != NULL ? look->id_prefix : "", row->name);
	struct picture p = {.charts = charts,
		.f = charts->findings,
		.look = look,
		.id = id,
		.kind = kind,
		.out = out,
		.width = look->width > 0 ? look->width : DEFAULT_WIDTH};
	const struct chart *chart = row->chart != NULL ? charts_find(charts, row->chart) : NULL;
	double height = chart != NULL ? picture_chart_height(&p, chart) : row->height(&p);
	p.height = look->height > 0 ? look->height : height;
	begin(&p);
	words(&p);
	if (look->is_file) {
		light_style(out);
		draw_rect(&p, &(struct draw_style){.colour = COLOUR_BACK}, 0, 0, p.width, p.height);
	}
	buf_str(out, "<defs>");
	stripe_pattern(&p, "hatch", 5, COLOUR_BACK, ".55");
	stripe_pattern(&p, "gap", 7, COLOUR_FAINT, ".45");
	buf_str(out, "</defs>\n");
	if (chart != NULL)
		picture_chart(&p, chart);
	else
		row->draw(&p);
	buf_str(out, "</svg>\n");
}
