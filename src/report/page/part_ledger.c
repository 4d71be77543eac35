/* Where the energy went: a bar of whose it is, a thin one of which part of the machine took it, and both as figures. The bars have no
 * scale of their own, shares are per cent of their width: they are right at any width, and no word in them is too small to be read. */
#include "report/page/part.h"

#include "analysis/facts.h"
#include "base/util.h"
#include "report/html.h"
#include "report/palette.h"
#include "report/picture/chart_picture.h"
#include "report/report.h"
#include "report/words.h"

#include <string.h>

enum { WORDS_CEILING = 1 << 16 };

struct owner {
	const char *name, *meaning;
	enum colour colour;
	double energy_j, error_j;
	const char *untold; // why nothing is known of it
};

/* ---- bars ---- */

static void bar_begin(const struct part *part, const char *class, const char *title)
{
	// The id of its hatching must not be another bar's.
	buf_printf(part->out,
		"<svg class=\"ledger-bar %s\" role=\"img\" width=\"100%%\"><title>%s</title><defs><pattern id=\"hatch-%s\" "
		"width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
		"<rect class=\"c-back\" width=\"2\" height=\"6\"/></pattern></defs>",
		class, title, class);
}

static void bar_share(struct buf *out, double from, double share, const char *class, bool is_hatch)
{
	buf_str(out, "<rect height=\"100%\" x=\"");
	buf_fixed(out, 100 * from, 3);
	buf_str(out, "%\" width=\"");
	buf_fixed(out, 100 * share, 3);
	buf_printf(out, is_hatch ? "%%\" fill=\"url(#hatch-%s)\"/>" : "%%\" class=\"c-%s\"/>", class);
}

static void bar_by_owner(const struct part *part, const struct owner *owners, size_t n)
{
	const struct findings *f = part->f;
	double from = 0;
	bar_begin(part, "by-owner", "By whom");
	for (size_t i = 0; i < n; i++) {
		double share = owners[i].energy_j / f->total_j;
		if (!(share > 0))
			continue;
		bar_share(part->out, from, share, palette[owners[i].colour].css, false);
		from += share;
	}
	if (f->provenance == PROVENANCE_ESTIMATED)
		bar_share(part->out, 0, 1, "by-owner", true);
	buf_str(part->out, "</svg>\n");
}

static bool counts(const struct domain_finding *domain)
{
	return domain->in_total && domain->energy_j > 0;
}

static void bar_by_domain(const struct part *part)
{
	const struct findings *f = part->f;
	double from = 0;
	bar_begin(part, "by-domain", "By which part of the machine");
	for (size_t i = 0; i < f->n_domains; i++) {
		const struct domain_finding *domain = &f->domains[i];
		if (!counts(domain))
			continue;
		double share = domain->energy_j / f->total_j;
		bar_share(part->out, from, share, palette[colour_of_device(f, domain->device)].css, false);
		if (domain->provenance == PROVENANCE_ESTIMATED)
			bar_share(part->out, from, share, "by-domain", true);
		from += share;
	}
	buf_str(part->out, "</svg>\n");
}

static void key(const struct part *part, const struct domain_finding *domain)
{
	struct buf *out = part->out;
	buf_printf(out, "<li><span class=\"swatch c-%s\"></span>",
		palette[colour_of_device(part->f, domain->device)].css);
	part_name(out, domain->device->name);
	buf_char(out, ' ');
	human_energy(out, domain->energy_j);
	buf_str(out, " <span class=\"faint\">");
	part_percent(out, 100 * domain->energy_j / part->f->total_j);
	buf_str(out, "</span>");
	if (domain->provenance != PROVENANCE_MEASURED) {
		buf_char(out, ' ');
		part_tag(out, domain->provenance);
	}
	buf_str(out, "</li>\n");
}

static void bars(const struct part *part, const struct owner *owners, size_t n)
{
	const struct findings *f = part->f;
	struct buf *out = part->out;
	buf_str(out, "<div class=\"ledger\">\n<p><strong>");
	human_energy(out, f->total_j);
	buf_char(out, ' ');
	words_energy_error(out, f->error_j, f->calibration_error_j);
	buf_printf(out, "</strong> %s: by whom, and by which part of the machine</p>\n",
		provenance_name(f->provenance));
	bar_by_owner(part, owners, n);
	bar_by_domain(part);
	buf_str(out, "<ul class=\"keys small\">\n");
	for (size_t i = 0; i < f->n_domains; i++)
		if (counts(&f->domains[i]))
			key(part, &f->domains[i]);
	buf_str(out, "</ul>\n</div>\n");
}

/* ---- figures ---- */

static void owner_row(const struct part *part, const struct owner *owner)
{
	struct buf *out = part->out;
	buf_printf(out,
		"<tr><th scope=\"row\" class=\"name\"><span class=\"swatch c-%s\"></span>%s "
		"<span class=\"faint small\">%s</span></th>",
		palette[owner->colour].css, owner->name, owner->untold != NULL ? "" : owner->meaning);
	if (owner->untold != NULL) {
		buf_printf(out, "<td colspan=\"2\" class=\"untold faint small\">%s</td></tr>\n", owner->untold);
		return;
	}
	part_cell_energy(out, owner->energy_j, owner->error_j);
	part_cell(out, owner->energy_j / part->f->total_j * 100, part_percent);
	buf_str(out, "</tr>\n");
}

static void figures(const struct part *part, const struct owner *owners, size_t n)
{
	static const struct part_column columns[] = {{"", "name"}, {"energy"}, {"share"}};
	part_table_begin(part, "ledger-table", NULL, columns, ARRAY_SIZE(columns), false);
	for (size_t i = 0; i < n; i++)
		owner_row(part, &owners[i]);
	part_table_end(part);
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

/* Why there are no joules of an idle machine though it has some: 0 would read as if it took nothing. NULL: there are, or it is 0. */
static const char *idle_untold(const struct part *part)
{
	const char *mode = run_fact(part->run, FACT_ATTRIBUTION);
	if (!isnan(part->f->ledger.idle_j))
		return NULL;
	if (mode != NULL && strcmp(mode, "busy") == 0)
		return "not told apart (attribution: busy)";
	for (size_t i = 0; i < part->f->n_domains; i++)
		if (part->f->domains[i].in_total &&
			strstr(part->f->domains[i].attribution, "idle power unknown") != NULL)
			return "not told apart (idle power unknown)";
	return "n/a";
}

void section_ledger(const struct part *part)
{
	const struct findings *f = part->f;
	const struct ledger *ledger = &f->ledger;
	const struct owner owners[] = {
		{"this program", "and all that it started", COLOUR_TARGET, ledger->target_j, f->target_error_j, NULL},
		{"other programs", "", COLOUR_OTHERS, ledger->others_j, NAN, NULL},
		{"wattle", "the meter itself", COLOUR_WATTLE, ledger->wattle_j, NAN, NULL},
		{"idle", "what the machine takes when nothing runs", COLOUR_IDLE, ledger->idle_j, NAN,
			idle_untold(part)},
		{"unattributed", "nothing said whose it was", COLOUR_UNATTRIBUTED, ledger->unattributed_j, NAN, NULL},
	};
	if (!(f->total_j > 0))
		return;
	buf_str(part->out, "<section>\n");
	part_title(part, "ledger", "Where the energy went");
	buf_str(part->out, "<div class=\"beside-each-other\">\n");
	bars(part, owners, ARRAY_SIZE(owners));
	figures(part, owners, ARRAY_SIZE(owners));
	buf_str(part->out, "</div>\n");
	attribution(part);
	buf_str(part->out, "</section>\n");
}
