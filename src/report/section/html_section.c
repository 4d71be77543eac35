#include "report/section/html_section.h"

#include "analysis/job/job.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/report.h"

#include <string.h>

enum { NAME_HEAD = 96, NAME_TAIL = 32 }; // bytes kept at the begin and the end of a long name

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
	bool is_unseen = phrase_unseen(&unseen, name);
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
		// A UTF-8 character has at most three continuation bytes; more are invalid.
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

void part_cell_marked(struct buf *out, double value, void (*print)(struct buf *, double), const char *mark)
{
	cell_begin(out, value);
	if (isfinite(value))
		print(out, value);
	else
		buf_str(out, "<span class=\"faint\">n/a</span>");
	buf_printf(out, "%s</td>", isfinite(value) ? mark : "");
}

void part_cell(struct buf *out, double value, void (*print)(struct buf *, double))
{
	part_cell_marked(out, value, print, "");
}

void part_cell_energy(struct buf *out, double energy_j, double error_j)
{
	part_cell_energy_per(out, energy_j, error_j, NULL);
}

void part_energy(struct buf *out, double energy_j, double error_j)
{
	human_energy(out, energy_j);
	if (!isfinite(error_j))
		return;
	buf_str(out, " <span class=\"faint\">");
	human_error_of(out, energy_j, error_j);
	buf_str(out, "</span>");
}

void part_cell_energy_per(struct buf *out, double energy_j, double error_j, const char *unit)
{
	if (!isfinite(energy_j)) {
		part_cell(out, energy_j, human_energy);
		return;
	}
	cell_begin(out, energy_j);
	part_energy(out, energy_j, error_j);
	if (unit != NULL) {
		buf_str(out, " <span class=\"faint per\">per ");
		part_name(out, unit);
		buf_str(out, "</span>");
	}
	buf_str(out, "</td>");
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

/* ---- tables ---- */

void part_table_begin(const struct part *part, const char *id, const char *caption, const struct part_column *columns,
	size_t n, bool sortable)
{
	struct buf *out = part->out;
	buf_str(out, "<div class=\"wide\"><table");
	if (id != NULL) // "blocks-table" is labelled by the heading "blocks"
		buf_printf(out, " id=\"%s\" aria-labelledby=\"%.*s\"", id, (int)strcspn(id, "-"), id);
	buf_str(out, sortable ? " class=\"sortable\">" : ">");
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

void part_cell_share(struct buf *out, double share, const char *mark)
{
	buf_str(out, "<td data-value=\"");
	if (isfinite(share))
		buf_double(out, share);
	buf_str(out, "\">");
	if (isfinite(share)) {
		part_share(out, share);
		buf_str(out, "<span class=\"percent\">");
		part_percent(out, share * 100);
		buf_printf(out, "%s</span>", mark);
	}
	buf_str(out, "</td>");
}

/* ---- ranks ---- */

void part_rank(struct buf *out, const struct job_findings *job, size_t rank)
{
	const struct job_rank *r = &job->ranks[rank];
	if (value_ok(r->rank))
		buf_printf(out, "rank %lld", (long long)r->rank);
	else
		part_name(out, r->run != NULL && r->run->where != NULL ? r->run->where : "a run");
}

void part_most_of_all(struct buf *out, const struct job_findings *job, const struct spread *spread)
{
	if (spread->max_at >= 0 && spread->max > spread->min)
		part_rank(out, job, (size_t)spread->max_at);
}

enum { STRIP_WIDTH = 150, STRIP_HEIGHT = 16 };

static void strip_line(struct buf *out, const char *class, double x, double top, double bottom)
{
	buf_printf(out, "<path class=\"%s\" d=\"M", class);
	buf_fixed(out, x, 1);
	buf_char(out, ' ');
	buf_fixed(out, top, 1);
	buf_char(out, 'V');
	buf_fixed(out, bottom, 1);
	buf_str(out, "\"/>");
}

void part_strip(struct buf *out, const double *values, size_t n, const struct spread *spread)
{
	const double scale = (STRIP_WIDTH - 4) / spread->max;
	int64_t most = spread->max > spread->min ? spread->max_at : -1;
	if (!(spread->max > 0))
		return;
	buf_printf(out, "<svg class=\"strip\" aria-hidden=\"true\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">",
		STRIP_WIDTH, STRIP_HEIGHT, STRIP_WIDTH, STRIP_HEIGHT);
	buf_printf(out, "<path class=\"s-line\" d=\"M0 %dH%d\"/>", STRIP_HEIGHT - 2, STRIP_WIDTH);
	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i]) && (int64_t)i != most)
			strip_line(out, "s-target each", 2 + values[i] * scale, 4, STRIP_HEIGHT - 2);
	if (isfinite(spread->mean))
		strip_line(out, "s-faint", 2 + spread->mean * scale, 0, STRIP_HEIGHT);
	if (most >= 0 && isfinite(values[most]))
		strip_line(out, "s-warn", 2 + values[most] * scale, 1, STRIP_HEIGHT - 2);
	buf_str(out, "</svg>");
}
