#include "report/section/sections.h"

#include "base/util.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { SENTENCE_CEILING = 1 << 16 };

const char *title_of_section(enum section_id id)
{
	static const char *const titles[] = {
#define SECTION(id, name, title, ...) [SECTION_##id] = title,
#include "report/section/sections.def"
	};
	return titles[id];
}

void section_begin(const struct part *part, const char *id, const char *title)
{
	if (!is_page(part)) {
		buf_printf(part->out, "\n  %s%s%s\n", part->style->title, title, part->style->off);
		return;
	}
	buf_printf(part->out, "<section%s>\n<h2 id=\"%s\">", part->half ? " class=\"half-in-print\"" : "", id);
	html_text(part->out, title);
	buf_str(part->out, "</h2>\n");
}

void section_end(const struct part *part)
{
	if (is_page(part))
		buf_str(part->out, "</section>\n");
}

void html_section_note(const struct part *part, const char *sentence)
{
	if (is_page(part)) {
		buf_str(part->out, "<p class=\"faint small\">");
		part_sentence(part->out, sentence);
		buf_str(part->out, "</p>\n");
		return;
	}
	struct buf plain;
	buf_init(&plain, SENTENCE_CEILING);
	buf_str(&plain, "");
	text_wrap(&plain, 0, 2, sentence);
	if (plain.failed == 0)
		buf_printf(part->out, "%s%s%s\n", part->style->faint, plain.data, part->style->off);
	buf_finish(&plain);
}

void html_section_notef(const struct part *part, const char *format, ...)
{
	char sentence[1000];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	html_section_note(part, sentence);
}

void html_section_text(const struct part *part, void (*words)(struct buf *out, const struct findings *f))
{
	struct buf sentence;
	buf_init(&sentence, SENTENCE_CEILING);
	words(&sentence, part->f);
	if (sentence.size > 0 && sentence.failed == 0)
		html_section_note(part, sentence.data);
	buf_finish(&sentence);
}

/* ---- tables ---- */

struct rows part_rows(const struct part *part, const char *list)
{
	const struct document *document = part->document;
	const struct object_at at = {part->job != NULL ? &job_report_type : &report_type, document, NULL, 0, NULL};
	struct rows rows;
	int r = rows_of(&at, list, document->arena, &rows);
	if (r < 0)
		part->out->failed = r;
	rows.of = part->job != NULL ? OF_JOB : OF_RUN;
	return rows;
}

void part_mark_note(const struct part *part, const struct grid *grid, const struct rows *rows)
{
	if (grid_is_marked(grid, rows, is_page(part) ? ON_PAGE : ON_TEXT))
		html_section_note(part, unresolved_note);
}

void part_grid(const struct part *part, const struct grid *grid, struct rows *rows, struct limits limits)
{
	size_t most = is_page(part) ? limits.page : limits.text;
	if (part->is_whole)
		most = SIZE_MAX;
	else if (part->is_brief && most > BRIEF_ROWS_MAX)
		most = BRIEF_ROWS_MAX;
	rows->shown = rows->n < most ? rows->n : most;
	if (!is_page(part)) {
		grid_text(grid, rows, part->out, part->style);
		if (rows->n > rows->shown)
			buf_printf(part->out, "  %s… and %zu more%s%s\n", part->style->faint, rows->n - rows->shown,
				part->is_brief ? " (--all)" : "", part->style->off);
		part_mark_note(part, grid, rows);
		return;
	}
	grid_page(grid, rows, part->out);
	print_limit_mark(part, limits.print_limit, rows->shown);
	if (rows->n > rows->shown)
		buf_printf(part->out, "<p class=\"faint small\">… and %zu more.</p>\n", rows->n - rows->shown);
	part_mark_note(part, grid, rows);
}

/* ---- warnings ---- */

enum { WARNING_CEILING = 1 << 14 };

static struct buf wrapped_warning(const char *warning)
{
	struct buf plain;
	buf_init(&plain, WARNING_CEILING);
	buf_str(&plain, "  ! ");
	text_wrap(&plain, 0, 4, warning);
	buf_char(&plain, '\n');
	return plain;
}

static size_t count_lines(const char *text)
{
	size_t n = 0;
	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

// Writes the first lines of a text, the last line ends with "…" if text is omitted.
static void add_lines(const struct part *part, const char *text, size_t lines)
{
	size_t size = 0;
	for (size_t i = 0; i < lines && text[size] != '\0'; i++)
		size += strcspn(text + size, "\n") + 1;
	bool is_cut = text[size] != '\0';
	buf_str(part->out, part->style->warning);
	buf_add(part->out, text, is_cut ? size - 1 : size);
	if (is_cut) { // a full line has no room for it
		char *last = part->out->data + part->out->size;
		while (last[-1] != ' ')
			last--;
		part->out->size = (size_t)(last - part->out->data);
		buf_str(part->out, "…\n");
	}
	part->out->data[--part->out->size] = '\0';
	buf_printf(part->out, "%s\n", part->style->off);
}

static void text_warnings(const struct part *part, size_t warnings_max, size_t lines)
{
	const size_t n = part->document->n_warnings;
	size_t shown = 0;
	for (; shown < n && shown < warnings_max; shown++) {
		struct buf plain = wrapped_warning(part->document->warnings[shown]);
		size_t wanted = plain.failed == 0 ? count_lines(plain.data) : 0;
		size_t room = lines - (shown + 1 < n && lines > 0); // without the line that counts the others
		bool fits = wanted <= room || (shown == 0 && room > 0);
		if (fits && wanted > 0)
			add_lines(part, plain.data, room);
		buf_finish(&plain);
		if (!fits)
			break;
		lines -= wanted < room ? wanted : room;
	}
	if (shown < n && lines > 0)
		buf_printf(part->out, "  %s! %s%zu%s warning%s%s\n", part->style->warning, shown > 0 ? "… and " : "",
			n - shown, shown > 0 ? " more" : "", n - shown == 1 ? "" : "s", part->style->off);
}

size_t warning_lines(const struct part *part)
{
	size_t lines = 0;
	for (size_t i = 0; i < part->document->n_warnings; i++) {
		struct buf plain = wrapped_warning(part->document->warnings[i]);
		lines += plain.failed == 0 ? count_lines(plain.data) : 0;
		buf_finish(&plain);
	}
	return lines;
}

void warnings_within(const struct part *part, size_t lines)
{
	text_warnings(part, SIZE_MAX, lines);
}

void part_warnings(const struct part *part)
{
	struct part_notes notes = {.out = part->out};
	if (!is_page(part)) {
		buf_str(part->out, part->document->n_warnings > 0 ? "\n" : "");
		text_warnings(part, part->is_brief ? BRIEF_WARNINGS_MAX : SIZE_MAX, SIZE_MAX);
		return;
	}
	for (size_t i = 0; i < part->document->n_warnings; i++)
		part_note(&notes, part->document->warnings[i]);
	part_notes_end(&notes);
}

/* ---- bars ---- */

void part_bar(struct buf *out, const char *class, const char *title, const struct bar_piece *pieces, size_t n)
{
	buf_printf(out, "<svg class=\"%s\" role=\"img\" width=\"100%%\"><title>%s</title>", class, title);
	for (size_t i = 0; i < n; i++) {
		if (!(pieces[i].share > 0) || isnan(pieces[i].from))
			continue;
		buf_str(out, "<rect height=\"100%\" x=\"");
		buf_fixed(out, 100 * pieces[i].from, 3);
		buf_str(out, "%\" width=\"");
		buf_fixed(out, 100 * pieces[i].share, 3);
		if (pieces[i].is_hatched)
			buf_str(out, "%\" fill=\"url(#hatch)\"/>");
		else
			buf_printf(out, "%%\" class=\"c-%s\"/>", pieces[i].css);
	}
	buf_str(out, "</svg>");
}
