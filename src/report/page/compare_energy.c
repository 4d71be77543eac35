/* Energy of each run by owner and by domain. */
#include "report/page/compare.h"

#include "base/util.h"
#include "report/palette.h"
#include "report/report.h"
#include "report/section/html_section.h"

#include <string.h>

static const struct {
	enum colour colour;
	const char *title;
	size_t offset;
} shares[] = {
	{COLOUR_TARGET, "the program", offsetof(struct ledger, target_j)},
	{COLOUR_OTHERS, "other programs", offsetof(struct ledger, others_j)},
	{COLOUR_WATTLE, "wattle itself", offsetof(struct ledger, wattle_j)},
	{COLOUR_IDLE, "idle", offsetof(struct ledger, idle_j)},
	{COLOUR_UNATTRIBUTED, "unattributed", offsetof(struct ledger, unattributed_j)},
};

static double share_j(const struct ledger *ledger, size_t share)
{
	double j;
	memcpy(&j, (const char *)ledger + shares[share].offset, sizeof(j));
	return j;
}

static const struct findings *findings_of(const struct compare_page *page, size_t run)
{
	return page->runs[run].charts != NULL ? page->runs[run].charts->findings : NULL;
}

/* ---- bars on a common scale ---- */

enum { BAR_WIDTH = 1000, BAR_HEIGHT = 22 };

static void bar(struct buf *out, const struct findings *f, double largest_j)
{
	double x = 0;
	buf_printf(out,
		"<svg class=\"ledger-bar\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\"><title>",
		BAR_WIDTH, BAR_HEIGHT);
	for (size_t s = 0; s < ARRAY_SIZE(shares); s++) {
		buf_printf(out, "%s%s ", s > 0 ? ", " : "", shares[s].title);
		human_energy(out, share_j(&f->ledger, s));
	}
	buf_str(out, "</title>");
	for (size_t s = 0; s < ARRAY_SIZE(shares); s++) {
		double width = BAR_WIDTH * share_j(&f->ledger, s) / largest_j;
		if (!(width > 0))
			continue;
		buf_printf(out, "<rect class=\"c-%s\" height=\"%d\" x=\"", palette[shares[s].colour].css, BAR_HEIGHT);
		buf_fixed(out, x, 1);
		buf_str(out, "\" width=\"");
		buf_fixed(out, width, 1);
		buf_str(out, "\"/>");
		x += width;
	}
	buf_str(out, "</svg>");
}

static void bar_row(const struct compare_page *page, size_t i, double largest_j)
{
	struct buf *out = page->out;
	const struct findings *f = findings_of(page, i);
	if (f == NULL || isnan(f->total_j))
		return;
	buf_str(out, "<tr><th scope=\"row\" class=\"name\">");
	part_name(out, page->runs[i].name); // no run colour: colours mean owners here
	buf_str(out, "</th><td class=\"bar-cell\">");
	bar(out, f, largest_j);
	buf_str(out, "</td><td>");
	human_energy(out, f->total_j);
	buf_str(out, "</td></tr>\n");
}

void compare_ledgers(const struct compare_page *page)
{
	double largest_j = 0;
	for (size_t i = 0; i < page->n_runs; i++)
		if (findings_of(page, i) != NULL)
			largest_j = fmax(largest_j, findings_of(page, i)->total_j);
	if (!(largest_j > 0))
		return;
	struct buf *out = page->out;
	buf_str(out, "<h2>Attributed energy</h2>\n<p class=\"small colours\">");
	for (size_t s = 0; s < ARRAY_SIZE(shares); s++)
		buf_printf(out, "<span><span class=\"swatch c-%s\"></span>%s</span> ", palette[shares[s].colour].css,
			shares[s].title);
	buf_str(out, "</p>\n<div class=\"wide\"><table id=\"ledgers\"><tbody>\n");
	for (size_t i = 0; i < page->n_runs; i++)
		bar_row(page, i, largest_j);
	buf_str(out, "</tbody></table></div>\n");
}

/* ---- domains ---- */

static const struct domain_finding *domain_named(const struct findings *f, const char *name)
{
	for (size_t d = 0; f != NULL && d < f->n_domains; d++)
		if (strcmp(f->domains[d].device->name, name) == 0)
			return &f->domains[d];
	return NULL;
}

static bool is_in_earlier(const struct compare_page *page, size_t run, const char *name)
{
	for (size_t i = 0; i < run; i++)
		if (domain_named(findings_of(page, i), name) != NULL)
			return true;
	return false;
}

static void domain_line(const struct compare_page *page, struct compare_table *table, const char *name)
{
	struct compare_line *line = compare_line_add(page, table, name, human_energy);
	if (line == NULL)
		return;
	line->is_name = true;
	for (size_t i = 0; i < page->n_runs; i++) {
		const struct domain_finding *domain = domain_named(findings_of(page, i), name);
		if (domain != NULL)
			line->figures[i] = (struct compare_figure){domain->energy_j, domain->error_j};
	}
	compare_line_finish(page, table);
}

void compare_domains(const struct compare_page *page)
{
	struct compare_table table = {.id = "domains", .head = "Domain"};
	for (size_t i = 0; i < page->n_runs; i++) {
		const struct findings *f = findings_of(page, i);
		for (size_t d = 0; f != NULL && d < f->n_domains; d++)
			if (!is_in_earlier(page, i, f->domains[d].device->name))
				domain_line(page, &table, f->domains[d].device->name);
	}
	if (table.n_lines > 0)
		buf_str(page->out, "<h2>Energy by domain</h2>\n");
	compare_table_write(page, &table);
}
