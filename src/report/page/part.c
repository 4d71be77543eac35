#include "report/page/part.h"

#include "base/util.h"
#include "report/html.h"
#include "report/parts.h"
#include "report/report.h"
#include "report/words.h"

#include <string.h>

enum { NAME_HEAD = 96, NAME_TAIL = 32 }; // bytes of a long name that are shown

void part_title(const struct part *part, const char *id, const char *title)
{
	buf_printf(part->out, "<h2 id=\"%s\">%s</h2>\n", id, title);
}

/* ---- names ---- */

static bool is_inside_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static void cut_text(struct buf *out, const char *name, size_t from, size_t to)
{
	struct buf piece;
	buf_init(&piece, NAME_HEAD + NAME_TAIL + 8);
	buf_add(&piece, name + from, to - from);
	html_text(out, piece.data);
	buf_finish(&piece);
}

void part_name(struct buf *out, const char *name)
{
	struct buf unseen;
	buf_init(&unseen, 128);
	bool is_unseen = words_unseen(&unseen, name);
	if (is_unseen)
		buf_printf(out, "<span class=\"faint\">%s</span>", unseen.data);
	buf_finish(&unseen);
	if (is_unseen)
		return;
	size_t length = strlen(name), head = NAME_HEAD, tail = length - NAME_TAIL;
	buf_str(out, "<bdi>");
	if (length <= NAME_HEAD + NAME_TAIL) {
		html_text(out, name);
	} else {
		// A character has three such bytes at most; more of them are none's.
		for (int i = 0; i < 3 && is_inside_character(name[head]); i++)
			head--;
		for (int i = 0; i < 3 && is_inside_character(name[tail]); i++)
			tail++;
		cut_text(out, name, 0, head);
		buf_str(out, "…");
		cut_text(out, name, tail, length);
	}
	buf_str(out, "</bdi>");
}

/* ---- cells ---- */

static void cell_begin(struct buf *out, double value)
{
	buf_str(out, "<td data-value=\"");
	if (isfinite(value))
		buf_double(out, value);
	buf_str(out, "\">");
}

void part_cell(struct buf *out, double value, void (*print)(struct buf *, double))
{
	cell_begin(out, value);
	if (isfinite(value))
		print(out, value);
	else
		buf_str(out, "<span class=\"faint\">n/a</span>");
	buf_str(out, "</td>");
}

void part_cell_count(struct buf *out, int64_t value)
{
	part_cell(out, value_to_double(value, 1), human_whole);
}

void part_cell_energy(struct buf *out, double energy_j, double error_j)
{
	part_cell_energy_per(out, energy_j, error_j, NULL);
}

static void value_and_error(struct buf *out, double energy_j, double error_j)
{
	if (error_j > 0 && error_j >= fabs(energy_j)) {
		buf_str(out, "&lt; ");
		human_energy(out, fmax(energy_j, 0) + error_j);
		return;
	}
	human_energy(out, energy_j);
	if (!isfinite(error_j))
		return;
	buf_str(out, " <span class=\"faint\">");
	human_error(out, error_j);
	buf_str(out, "</span>");
}

void part_cell_energy_per(struct buf *out, double energy_j, double error_j, const char *unit)
{
	if (!isfinite(energy_j)) {
		part_cell(out, energy_j, human_energy);
		return;
	}
	cell_begin(out, energy_j);
	value_and_error(out, energy_j, error_j);
	if (unit != NULL) {
		buf_str(out, " <span class=\"faint per\">per ");
		part_name(out, unit);
		buf_str(out, "</span>");
	}
	buf_str(out, "</td>");
}

size_t part_columns_but(const struct part_column *all, size_t n, const char *name, struct part_column *ret_columns)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (name == NULL || strcmp(all[i].title, name) != 0)
			ret_columns[kept++] = all[i];
	return kept;
}

void part_tag(struct buf *out, enum provenance provenance)
{
	const char *name = provenance_name(provenance);
	buf_printf(out, "<span class=\"tag tag-%s\">%s</span>", name, name);
}

void part_percent(struct buf *out, double percent)
{
	if (percent > 0 && percent < 0.05)
		buf_str(out, "&lt; 0.1 %");
	else if (percent == 0)
		buf_str(out, "0 %");
	else
		human_percent(out, percent);
}

void part_share(struct buf *out, double share)
{
	share = fmin(fmax(share, 0), 1);
	buf_str(out,
		"<svg class=\"share\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
		"<rect class=\"c-target\" height=\"10\" width=\"");
	buf_fixed(out, 100 * (isfinite(share) ? share : 0), 1);
	buf_str(out, "\"/></svg>");
}

bool part_has_time(const struct part *part)
{
	return part->charts->axis.n > 0 && (part->charts->n_charts > 0 || part->charts->n_items > 0);
}

/* ---- tables ---- */

void part_table_begin(const struct part *part, const char *id, const char *caption, const struct part_column *columns,
	size_t n, bool sortable)
{
	struct buf *out = part->out;
	// "blocks-table" stands under the heading "blocks".
	buf_printf(out, "<div class=\"wide\"><table id=\"%s\" aria-labelledby=\"%.*s\"%s>", id, (int)strcspn(id, "-"),
		id, sortable ? " class=\"sortable\"" : "");
	if (caption != NULL)
		buf_printf(out, "<caption>%s</caption>", caption);
	buf_str(out, "\n<thead><tr>");
	for (size_t i = 0; i < n; i++) {
		buf_str(out, "<th scope=\"col\"");
		if (columns[i].class != NULL)
			buf_printf(out, " class=\"%s\"", columns[i].class);
		if (columns[i].sort != NULL && sortable)
			buf_printf(out, " aria-sort=\"%s\"", columns[i].sort);
		buf_printf(out, ">%s</th>", columns[i].title);
	}
	buf_str(out, "</tr></thead>\n<tbody>\n");
}

void part_table_end(const struct part *part)
{
	buf_str(part->out, "</table></div>\n");
}

void part_cell_share(struct buf *out, double share)
{
	buf_str(out, "<td data-value=\"");
	if (isfinite(share))
		buf_double(out, share);
	buf_str(out, "\">");
	if (isfinite(share)) {
		part_share(out, share);
		buf_str(out, "<span class=\"percent\">");
		part_percent(out, share * 100);
		buf_str(out, "</span>");
	}
	buf_str(out, "</td>");
}
