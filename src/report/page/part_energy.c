/* The flame graph, and where the figures come from. */
#include "report/page/part.h"

#include "base/util.h"
#include "report/domain_tree.h"
#include "report/html.h"
#include "report/picture/picture.h"
#include "report/report.h"
#include "report/words.h"


static void picture(const struct part *part, enum picture_kind kind, const char *prefix, double width)
{
	const struct picture_look look = {.width = width, .id_prefix = prefix};
	if (!picture_has(part->charts, kind))
		return;
	buf_str(part->out, "<div class=\"picture\">");
	picture_svg(part->charts, kind, &look, part->out);
	buf_str(part->out, "</div>\n");
}

void section_flame(const struct part *part)
{
	if (!picture_has(part->charts, PICTURE_FLAME))
		return;
	buf_str(part->out, "<section>\n");
	part_title(part, "flame", "Energy by call");
	picture(part, PICTURE_FLAME, "flame-", 1240);
	buf_str(part->out,
		"<p class=\"faint small\">Each bar is a block inside the one above it; its width is the energy that this program "
		"took while it ran, what is inside included.</p>\n</section>\n");
}

/* ---- domains ---- */

static void source(struct buf *out, const struct domain_finding *d)
{
	html_text(out, d->device->source);
	buf_char(out, ' ');
	part_tag(out, d->provenance);
}

static void divided_by(struct buf *out, const struct domain_finding *d)
{
	struct buf words;
	buf_init(&words, 1 << 12);
	words_method(&words, d->attribution);
	html_text(out, words.data);
	buf_finish(&words);
}

struct domain_table {
	struct buf *out;
	bool has_calibration;
};

static void domain_row(void *data, const struct domain_finding *d, int depth)
{
	const struct domain_table *table = data;
	struct buf *out = table->out;
	buf_printf(out, "<tr class=\"inside-%d%s\"><th scope=\"row\" class=\"name\">", depth,
		d->in_total ? "" : " beside");
	part_name(out, d->device->name);
	if (d->device->device[0] != '\0') {
		buf_str(out, " <span class=\"faint small\">");
		part_name(out, d->device->device);
		buf_str(out, "</span>");
	}
	buf_str(out, "</th>");
	part_cell_energy(out, d->energy_j, d->error_j);
	if (table->has_calibration)
		part_cell(out, d->calibration_error_j, human_error);
	part_cell_energy(out, d->ledger.target_j, d->target_error_j);
	part_cell(out, d->mean_w, human_power);
	part_cell(out, d->max_w, human_power);
	part_cell(out, d->update_period_s, human_time);
	part_cell_count(out, d->gaps);
	buf_str(out, "<td class=\"text\">");
	source(out, d);
	buf_str(out, "</td><td class=\"text\">");
	divided_by(out, d);
	buf_str(out, "</td></tr>\n");
}

void section_domains(const struct part *part)
{
	static const struct part_column all[] = {{"", "name"}, {"energy"}, {"calibration"}, {"this program"}, {"mean"},
		{"at most"}, {"updated every"}, {"gaps"}, {"source", "text"}, {"divided by", "text"}};
	struct domain_table table = {part->out, words_has_calibration(part->f)};
	struct part_column columns[ARRAY_SIZE(all)];
	size_t n = part_columns_but(all, ARRAY_SIZE(all), table.has_calibration ? NULL : "calibration", columns);
	bool any_beside = false;
	if (part->f->n_domains == 0)
		return;
	buf_str(part->out, "<section>\n");
	part_title(part, "domains", "Energy by domain");
	part_table_begin(part, "domains-table", NULL, columns, n, false);
	domain_tree(part->f, domain_row, &table);
	part_table_end(part);
	part_paper(part, PAPER_DOMAINS, part->f->n_domains);
	for (size_t i = 0; i < part->f->n_domains; i++)
		any_beside |= !part->f->domains[i].in_total;
	if (any_beside)
		buf_str(part->out,
			"<p class=\"faint small\">Grey rows are shown, not added: they overlap the others.</p>\n");
	buf_str(part->out, "</section>\n");
}
