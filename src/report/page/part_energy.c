/* Where the energy went, and where the figures come from. */
#include "report/page/part.h"

#include "base/util.h"
#include "report/html.h"
#include "report/palette.h"
#include "report/picture/picture.h"
#include "report/report.h"
#include "report/words.h"

#include <string.h>

enum { DEPTH_MAX = 3, WORDS_CEILING = 1 << 16 };

static void picture(const struct part *part, enum picture_kind kind, const char *prefix, double width)
{
	const struct picture_look look = {.width = width, .id_prefix = prefix};
	if (!picture_has(part->charts, kind))
		return;
	buf_str(part->out, "<div class=\"picture\">");
	picture_svg(part->charts, kind, &look, part->out);
	buf_str(part->out, "</div>\n");
}

static void attribution(const struct part *part)
{
	struct buf words;
	buf_init(&words, WORDS_CEILING);
	words_attribution(&words, part->f);
	if (words.size > 0 && words.failed == 0) {
		buf_str(part->out, "<p class=\"faint small\">");
		html_text(part->out, words.data);
		buf_str(part->out, "</p>\n");
	}
	buf_finish(&words);
}

void section_ledger(const struct part *part)
{
	const struct findings *f = part->f;
	const struct {
		const char *name, *meaning;
		enum colour colour;
		double energy_j, error_j;
	} rows[] = {
		{"this program", "and all that it started", COLOUR_TARGET, f->ledger.target_j, f->target_error_j},
		{"other programs", "", COLOUR_OTHERS, f->ledger.others_j, NAN},
		{"wattle", "the meter itself", COLOUR_WATTLE, f->ledger.wattle_j, NAN},
		{"idle", "what the machine takes when nothing runs", COLOUR_IDLE, f->ledger.idle_j, NAN},
		{"unattributed", "nothing said whose it was", COLOUR_UNATTRIBUTED, f->ledger.unattributed_j, NAN},
	};
	static const struct part_column columns[] = {{"", "name"}, {"energy"}, {"share"}};
	if (!(f->total_j > 0))
		return;
	buf_str(part->out, "<section>\n");
	part_title(part, "ledger", "Where the energy went");
	buf_str(part->out, "<div class=\"beside-each-other\">\n");
	picture(part, PICTURE_LEDGER, "ledger-", 600);
	part_table_begin(part, "ledger-table", NULL, columns, ARRAY_SIZE(columns), false);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		buf_printf(part->out,
			"<tr><th scope=\"row\" class=\"name\"><span class=\"swatch c-%s\"></span>%s "
			"<span class=\"faint small\">%s</span></th>",
			palette[rows[i].colour].css, rows[i].name, rows[i].meaning);
		part_cell_energy(part->out, rows[i].energy_j, rows[i].error_j);
		part_cell(part->out, rows[i].energy_j / f->total_j * 100, human_percent);
		buf_str(part->out, "</tr>\n");
	}
	part_table_end(part);
	buf_str(part->out, "</div>\n");
	attribution(part);
	buf_str(part->out, "</section>\n");
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

static void domain_row(const struct part *part, const struct domain_finding *d, int depth)
{
	struct buf *out = part->out;
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
	part_cell_energy(out, d->ledger.target_j, d->target_error_j);
	part_cell(out, d->mean_w, human_power);
	part_cell(out, d->max_w, human_power);
	part_cell(out, d->update_period_s, human_time);
	part_cell_count(out, d->gaps);
	buf_str(out, "<td class=\"text\">");
	source(out, d);
	buf_str(out, "</td><td class=\"text\">");
	html_text(out, d->attribution);
	buf_str(out, "</td></tr>\n");
}

static bool is_inside(const struct findings *f, const struct domain_finding *d, const char *outer)
{
	if (outer != NULL)
		return strcmp(d->device->inside, outer) == 0;
	for (size_t i = 0; i < f->n_domains; i++)
		if (strcmp(f->domains[i].device->name, d->device->inside) == 0)
			return false;
	return true; // outermost of those that there are
}

// Each domain under the one that contains it.
static void domain_rows(const struct part *part, const char *outer, int depth)
{
	for (size_t i = 0; i < part->f->n_domains && depth <= DEPTH_MAX; i++) {
		const struct domain_finding *d = &part->f->domains[i];
		if (!is_inside(part->f, d, outer))
			continue;
		domain_row(part, d, depth);
		domain_rows(part, d->device->name, depth + 1);
	}
}

void section_domains(const struct part *part)
{
	static const struct part_column columns[] = {{"", "name"}, {"energy"}, {"this program"}, {"mean"}, {"at most"},
		{"updated every"}, {"gaps"}, {"source", "text"}, {"divided by", "text"}};
	bool any_beside = false;
	if (part->f->n_domains == 0)
		return;
	buf_str(part->out, "<section>\n");
	part_title(part, "domains", "Energy by domain");
	part_table_begin(part, "domains-table", NULL, columns, ARRAY_SIZE(columns), false);
	domain_rows(part, NULL, 0);
	part_table_end(part);
	for (size_t i = 0; i < part->f->n_domains; i++)
		any_beside |= !part->f->domains[i].in_total;
	if (any_beside)
		buf_str(part->out,
			"<p class=\"faint small\">Grey rows are shown, not added: they overlap the others.</p>\n");
	buf_str(part->out, "</section>\n");
}
