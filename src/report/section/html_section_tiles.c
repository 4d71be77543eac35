/* Headline tiles, and the notes below them. */
#include "report/section/html_section.h"

#include "base/util.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/report.h"

#include <string.h>

enum { TILE_CEILING = 1 << 16 };

void part_tile_begin(struct part_tile *tile, const char *title)
{
	tile->title = title;
	buf_init(&tile->figure, TILE_CEILING);
	buf_init(&tile->note, TILE_CEILING);
}

void part_tile_end(const struct part *part, struct part_tile *tile)
{
	buf_printf(part->out, "<div class=\"tile\"><dt>%s</dt><dd class=\"figure\">", tile->title);
	if (tile->figure.failed == 0)
		buf_add(part->out, tile->figure.data, tile->figure.size);
	buf_str(part->out, "</dd>");
	if (tile->note.size > 0 && tile->note.failed == 0)
		buf_printf(part->out, "<dd class=\"remark\">%s</dd>", tile->note.data);
	buf_str(part->out, "</div>\n");
	buf_finish(&tile->figure);
	buf_finish(&tile->note);
}

/* ---- notes ---- */

void part_sentence(struct buf *out, const char *text)
{
	const char *begin = strchr(text, '`'), *end = begin != NULL ? strchr(begin + 1, '`') : NULL;
	if (end == NULL) {
		html_text(out, text);
		return;
	}
	struct buf piece;
	buf_init(&piece, strlen(text) + 1);
	buf_add(&piece, text, (size_t)(begin - text));
	html_text(out, piece.data);
	buf_clear(&piece);
	buf_add(&piece, begin + 1, (size_t)(end - begin - 1));
	buf_str(out, "<code>");
	html_text(out, piece.data);
	buf_str(out, "</code>");
	buf_finish(&piece);
	part_sentence(out, end + 1);
}

void part_note(void *data, const char *text)
{
	struct part_notes *notes = data;
	buf_str(notes->out,
		notes->any ? "<li>" : "<ul class=\"notes\" aria-label=\"Notes on these figures\">\n<li>");
	notes->any = true;
	part_sentence(notes->out, text);
	buf_str(notes->out, "</li>\n");
}

void part_notes_end(const struct part_notes *notes)
{
	if (notes->any)
		buf_str(notes->out, "</ul>\n");
}
