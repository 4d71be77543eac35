/* A figure with label, value, errors and remark: a line on a terminal, a tile on a page. */
#include "report/section/sections.h"

#include "base/utf8.h"
#include "report/html.h"

#include <string.h>

enum { LABEL_COLUMN = 2, REMARK_COLUMNS = TEXT_WIDTH - REMARK_COLUMN, WORD_COLUMNS = 12 };

// In the summary after a run a figure has two lines at most, if no word is longer than WORD_COLUMNS.
static void add_remark(struct buf *out, const struct figure_line *line)
{
	size_t used = utf8_text_columns(out->data, out->size),
	       first = used < REMARK_COLUMN ? REMARK_COLUMNS : TEXT_WIDTH - used;
	struct buf fitted;
	buf_init(&fitted, LINE_CEILING);
	text_fit(&fitted, line->note.data, first + REMARK_COLUMNS - WORD_COLUMNS, false);
	text_wrap(out, 0, REMARK_COLUMN, line->part->is_summary && fitted.failed == 0 ? fitted.data : line->note.data);
	buf_finish(&fitted);
}

void line_begin(struct figure_line *line, const struct part *part, const char *label)
{
	*line = (struct figure_line){.part = part, .label = label};
	buf_init(&line->value, LINE_CEILING);
	buf_init(&line->error, LINE_CEILING);
	buf_init(&line->note, LINE_CEILING);
	buf_str(&line->value, "");
	buf_str(&line->error, "");
	buf_str(&line->note, "");
}

struct buf *line_also(struct figure_line *line)
{
	buf_str(&line->note, line->note.size > 0 ? ", " : "");
	return &line->note;
}

static void text_line(const struct figure_line *line)
{
	const struct style *style = line->part->style;
	struct buf *out = line->part->out;
	struct buf plain;
	buf_init(&plain, LINE_CEILING);
	buf_pad_to(&plain, 0, LABEL_COLUMN);
	buf_str(&plain, line->label);
	buf_pad_to(&plain, 0, VALUE_COLUMN);
	buf_printf(&plain, "%s%s%s", line->value.data, line->error.size > 0 ? " " : "", line->error.data);
	size_t remark_at = plain.size;
	if (line->note.size > 0) {
		buf_str(&plain, "  "); // separator after a value wider than its column
		add_remark(&plain, line);
	}
	if (plain.failed == 0) { // inserted after the layout, because escape sequences have no width
		buf_printf(out, "%s%.*s%s", style->title, VALUE_COLUMN, plain.data, style->off);
		buf_add(out, plain.data + VALUE_COLUMN, remark_at - VALUE_COLUMN);
		buf_printf(out, "%s%s%s\n", style->faint, plain.data + remark_at, style->off);
	}
	buf_finish(&plain);
}

static void page_tile(const struct figure_line *line)
{
	struct part_tile tile;
	part_tile_begin(&tile, line->label);
	html_text(&tile.figure, line->value.data);
	if (line->error.size > 0)
		buf_printf(&tile.figure, " <span class=\"error\">%s</span>", line->error.data);
	html_text(&tile.note, line->note.data);
	part_tile_end(line->part, &tile);
}

void line_end(struct figure_line *line)
{
	if (line->value.failed == 0 && line->error.failed == 0 && line->note.failed == 0)
		(is_page(line->part) ? page_tile : text_line)(line);
	buf_finish(&line->value);
	buf_finish(&line->error);
	buf_finish(&line->note);
}

void line_count(struct buf *out, int64_t n, const char *one, const char *plural)
{
	buf_printf(out, "%lld %s%s", (long long)n, one, n == 1 ? "" : plural);
}
