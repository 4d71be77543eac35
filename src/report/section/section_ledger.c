/* Attributed energy: the ledger as a table and as bars. */
#include "report/section/sections.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "report/palette.h"
#include "report/phrases.h"
#include "report/picture/picture.h"
#include "report/report.h"

#include <string.h>

enum { TEXT_BAR_COLUMNS = 34 };

const struct owner owners[OWNERS] = {
	{"this program", "and its child processes", "target", offsetof(struct ledger, target_j)},
	{"other programs", "", "others", offsetof(struct ledger, others_j)},
	{"wattle", "measurement overhead", "wattle", offsetof(struct ledger, wattle_j)},
	{"idle", "power drawn when nothing runs", "idle", offsetof(struct ledger, idle_j)},
	{"unattributed", "owner unknown", "unattributed", offsetof(struct ledger, unattributed_j)},
};

double owner_j(const struct ledger *ledger, size_t owner)
{
	double energy_j;
	memcpy(&energy_j, (const char *)ledger + owners[owner].offset, sizeof(energy_j));
	return energy_j;
}

const char *owner_name(size_t owner, bool is_of_job)
{
	return owner == 0 && is_of_job ? "this job" : owners[owner].name;
}

void ledger_bar(struct buf *out, const char *class, const struct ledger *ledger, double whole_j, bool is_of_job)
{
	struct bar_piece pieces[OWNERS];
	struct buf title;
	double from = 0;
	buf_init(&title, 1 << 12);
	for (size_t i = 0; i < OWNERS; i++) {
		pieces[i] = (struct bar_piece){owners[i].css, from, owner_j(ledger, i) / whole_j, false};
		from += pieces[i].share > 0 ? pieces[i].share : 0;
		buf_printf(&title, "%s%s ", i > 0 ? ", " : "", owner_name(i, is_of_job));
		human_energy(&title, owner_j(ledger, i));
	}
	part_bar(out, class, title.data, pieces, OWNERS);
	buf_finish(&title);
}

static void key(struct buf *out, const char *css, const char *name, double energy_j, double total_j)
{
	buf_printf(out, "<li><span class=\"swatch c-%s\"></span>", css);
	part_name(out, name);
	buf_char(out, ' ');
	human_energy(out, energy_j);
	buf_str(out, " <span class=\"faint\">");
	part_percent(out, 100 * energy_j / total_j);
	buf_str(out, "</span>");
}

void ledger_keys(const struct part *part)
{
	buf_str(part->out, "<ul class=\"keys small\">\n");
	for (size_t i = 0; i < OWNERS; i++) {
		if (!(owner_j(&part->f->ledger, i) > 0))
			continue;
		key(part->out, owners[i].css, owner_name(i, part->job != NULL), owner_j(&part->f->ledger, i),
			part->f->total_j);
		buf_str(part->out, "</li>\n");
	}
	buf_str(part->out, "</ul>\n");
}

static bool counts(const struct domain_finding *domain)
{
	return domain->in_total && domain->energy_j > 0;
}

// Bar of the domains' shares; estimated domains are hatched.
static void domain_bar(const struct part *part)
{
	const struct findings *f = part->f;
	struct bar_piece *pieces = calloc_array(2 * f->n_domains + 1, sizeof(*pieces));
	size_t n = 0;
	double from = 0;
	for (size_t i = 0; pieces != NULL && i < f->n_domains; i++) {
		const struct domain_finding *d = &f->domains[i];
		if (!counts(d))
			continue;
		double share = d->energy_j / f->total_j;
		pieces[n++] = (struct bar_piece){palette[colour_of_device(f, d->device)].css, from, share, false};
		if (d->provenance == PROVENANCE_ESTIMATED)
			pieces[n++] = (struct bar_piece){NULL, from, share, true};
		from += share;
	}
	part_bar(part->out, "ledger-bar by-domain", "Energy by domain", pieces, n);
	free(pieces);
}

static void bars(const struct part *part)
{
	const struct findings *f = part->f;
	struct buf *out = part->out;
	buf_str(out, "<div class=\"ledger\">\n<p><strong>");
	human_energy(out, f->total_j);
	buf_char(out, ' ');
	phrase_energy_error(out, f->total_j, f->error_j, f->calibration_error_j);
	buf_printf(out,
		"</strong> %s: by owner and by domain"
		"<svg width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"6\" height=\"6\" "
		"patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect class=\"c-back\" width=\"2\" "
		"height=\"6\"/></pattern></defs></svg></p>\n",
		provenance_name(f->provenance));
	ledger_bar(out, "ledger-bar by-owner", &f->ledger, f->total_j, part->job != NULL);
	domain_bar(part);
	buf_str(out, "<ul class=\"keys small\">\n");
	for (size_t i = 0; i < f->n_domains; i++) {
		const struct domain_finding *d = &f->domains[i];
		if (!counts(d))
			continue;
		key(out, palette[colour_of_device(f, d->device)].css, d->device->name, d->energy_j, f->total_j);
		if (d->provenance != PROVENANCE_MEASURED) {
			buf_char(out, ' ');
			part_tag(out, d->provenance);
		}
		buf_str(out, "</li>\n");
	}
	buf_str(out, "</ul>\n</div>\n");
}

struct owned {
	size_t owner;
	const struct part *part;
	double energy_j, error_j, share_percent;
};

static bool is_idle(const struct owned *owned)
{
	return owners[owned->owner].offset == offsetof(struct ledger, idle_j);
}

// Why idle energy is missing although the machine has idle power: 0 would suggest that it used none.
static const char *why_no_idle(const struct part *part)
{
	const char *mode = run_metadata(part->run, META_KEY_ATTRIBUTION);
	if (mode != NULL && strcmp(mode, "busy") == 0)
		return "; not separated (attribution: busy)";
	for (size_t i = 0; i < part->f->n_domains; i++)
		if (part->f->domains[i].in_total &&
			strstr(part->f->domains[i].attribution, "idle power unknown") != NULL)
			return "; not separated (idle power unknown)";
	return "";
}

static void owned_name(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct owned *owned = row->data;
	const struct owner *owner = &owners[owned->owner];
	const char *name = owner_name(owned->owner, owned->part->job != NULL);
	if (is_page)
		buf_printf(out, "<span class=\"swatch c-%s\"></span>%s <span class=\"faint small\">%s%s</span>",
			owner->css, name, owner->meaning,
			is_idle(owned) && isnan(owned->energy_j) ? why_no_idle(owned->part) : "");
	else
		buf_str(out, name);
}

static void share(struct buf *out, const struct object_at *row, bool is_page)
{
	double share_percent = ((const struct owned *)row->data)->share_percent;
	if (isnan(share_percent))
		buf_str(out, "<span class=\"faint\">n/a</span>");
	else
		part_percent(out, share_percent);
}

// A bar with a resolution of eighths of a column.
static void text_bar(struct buf *out, const struct object_at *row, bool is_page)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	double percent = ((const struct owned *)row->data)->share_percent;
	long n = percent > 0 ? lround(percent / 100 * TEXT_BAR_COLUMNS * 8) : 0;
	for (; n >= 8; n -= 8)
		buf_str(out, "█");
	buf_str(out, eighths[n]);
}

static const struct field owned_fields[] = {
	FIELD(struct owned, energy_j, "J", "energy attributed to the owner", .title = "energy"),
	FIELD(struct owned, error_j, "J", "half of the 95 % interval"),
	FIELD(struct owned, share_percent, "%", "share of the total", .title = "share"),
};
static const struct object_type owned_type = OBJECT_TYPE("owned", "Row of the ledger.", owned_fields);
static const struct column owned_columns[] = {
	{NULL, "", COLUMN_NAME, .write = owned_name},
	{"energy_j", .only = ON_TEXT},
	{"energy_j", .only = ON_PAGE, .error = "error_j"},
	{"share_percent", .only = ON_TEXT},
	{"share_percent", .only = ON_PAGE, .write = share},
	{NULL, "", COLUMN_TEXT, ON_TEXT, .write = text_bar},
};
static const struct grid owned_grid = GRID("ledger-table", owned_columns, .is_fixed = true);

void section_ledger(const struct part *part)
{
	const struct findings *f = part->f;
	struct owned owned[OWNERS];
	struct object_at at[OWNERS];
	struct rows rows = {.at = at, .n = OWNERS};
	if (!(f->total_j > 0))
		return;
	for (size_t i = 0; i < OWNERS; i++) {
		double energy_j = owner_j(&f->ledger, i);
		owned[i] = (struct owned){i, part, energy_j, i == 0 ? f->target_error_j : (double)NAN,
			energy_j / f->total_j * 100};
		at[i] = (struct object_at){.type = &owned_type, .data = &owned[i]};
	}
	section_begin(part, "ledger", title_of_section(SECTION_LEDGER));
	if (is_page(part)) {
		buf_str(part->out, "<div class=\"beside-each-other\">\n");
		bars(part);
	}
	part_grid(part, &owned_grid, &rows, (struct limits){OWNERS, OWNERS, PRINT_NONE});
	if (is_page(part))
		buf_str(part->out, "</div>\n");
	html_section_text(part, phrase_attribution);
	section_end(part);
}
