// Energy bars: by owner, and by domain.
#include "report/picture/internal.h"

#include "base/util.h"
#include "report/phrases.h"
#include "report/report.h"

enum {
	BAR_TOP = 24,
	BAR_HEIGHT = 26,
	THIN_TOP = 56,
	THIN_HEIGHT = 10,
	LEGEND_TOP = 84,
	ROW = 17,
	SWATCH = 10,
	TAIL = 16
};

static const struct {
	size_t offset;
	const char *words;
	enum colour colour;
} owners[] = {
	{offsetof(struct ledger, target_j), "this program", COLOUR_TARGET},
	{offsetof(struct ledger, others_j), "other programs", COLOUR_OTHERS},
	{offsetof(struct ledger, wattle_j), "wattle itself", COLOUR_WATTLE},
	{offsetof(struct ledger, idle_j), "idle", COLOUR_IDLE},
	{offsetof(struct ledger, unattributed_j), "unattributed", COLOUR_UNATTRIBUTED},
};

static double part_of(const struct findings *f, size_t owner)
{
	double value;
	memcpy(&value, (const char *)&f->ledger + owners[owner].offset, sizeof(value));
	return value;
}

bool ledger_has(const struct charts *charts)
{
	return charts->findings->total_j > 0;
}

struct keys_row { // position in the legend
	struct picture *p;
	double x, y;
	bool draws; // false: only computes the height
};

static void draw_key(const struct keys_row *row, enum colour colour, const char *name, double name_width,
	const char *figure)
{
	struct picture *p = row->p;
	draw_rect(p, &(struct draw_style){.colour = colour}, row->x, row->y - SWATCH + 1, SWATCH, SWATCH);
	draw_text_begin(p, &(struct draw_text){.x = row->x + TAIL, .y = row->y, .colour = COLOUR_INK});
	draw_name(p->out, name, name_width);
	draw_string(p->out, figure != NULL ? figure : "");
	draw_text_end(p);
}

static void key(struct keys_row *row, enum colour colour, const char *name, double energy_j, double total_j,
	const char *tag)
{
	enum { NAME_WIDTH = 180, GAP = 20 };
	struct picture *p = row->p;
	struct buf figure;
	buf_init(&figure, 64);
	buf_char(&figure, ' ');
	human_energy(&figure, energy_j);
	buf_str(&figure, " (");
	human_percent(&figure, 100 * energy_j / total_j);
	buf_printf(&figure, ")%s", tag);
	double width = TAIL + fmin(draw_width(name, TEXT_SIZE), NAME_WIDTH) +
		draw_width(figure.data != NULL ? figure.data : "", TEXT_SIZE);
	if (row->x + width > p->width && row->x > 0) {
		row->x = 0;
		row->y += ROW;
	}
	if (row->draws)
		draw_key(row, colour, name, NAME_WIDTH, figure.data);
	row->x += width + GAP;
	buf_finish(&figure);
}

static void share(struct picture *p, enum colour colour, double x, double width, double y, double height)
{
	draw_rect(p, &(struct draw_style){.colour = colour}, x, y, fmax(width - 1, fmin(width, 0.5)), height);
}

static void by_owner(struct picture *p)
{
	double x = 0;
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
		double width = part_of(p->f, i) / p->f->total_j * p->width;
		if (width > 0)
			share(p, owners[i].colour, x, width, BAR_TOP, BAR_HEIGHT);
		x += width > 0 ? width : 0;
	}
	if (p->f->provenance == PROVENANCE_ESTIMATED)
		draw_hatched(p, false, 0, BAR_TOP, p->width, BAR_HEIGHT);
}

static bool counts(const struct domain_finding *domain)
{
	return domain->in_total && domain->energy_j > 0;
}

static void by_domain(struct picture *p)
{
	double x = 0;
	for (size_t d = 0; d < p->f->n_domains; d++) {
		const struct domain_finding *domain = &p->f->domains[d];
		if (!counts(domain))
			continue;
		double width = domain->energy_j / p->f->total_j * p->width;
		share(p, colour_of_device(p->f, domain->device), x, width, THIN_TOP, THIN_HEIGHT);
		if (domain->provenance == PROVENANCE_ESTIMATED)
			draw_hatched(p, false, x, THIN_TOP, width, THIN_HEIGHT);
		x += width;
	}
}

static const char *tag_of(enum provenance provenance)
{
	static const char *const tags[PROVENANCE_KINDS] = {"", ", derived", ", estimated"};
	return tags[provenance];
}

// Returns the lower edge of the legend.
static double legend(struct picture *p, bool draws)
{
	const struct findings *f = p->f;
	struct keys_row row = {.p = p, .y = LEGEND_TOP, .draws = draws};
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++)
		if (part_of(f, i) > 0)
			key(&row, owners[i].colour, owners[i].words, part_of(f, i), f->total_j, "");
	row.x = 0;
	row.y += ROW + 4;
	for (size_t d = 0; d < f->n_domains; d++)
		if (counts(&f->domains[d]))
			key(&row, colour_of_device(f, f->domains[d].device), f->domains[d].device->name,
				f->domains[d].energy_j, f->total_j, tag_of(f->domains[d].provenance));
	return row.y;
}

double ledger_height(const struct picture *p)
{
	struct picture unseen = *p;
	return legend(&unseen, false) + 8;
}

void ledger_draw(struct picture *p)
{
	const struct findings *f = p->f;
	draw_text_begin(p, &(struct draw_text){.x = 0, .y = 13, .colour = COLOUR_INK, .is_bold = true});
	human_energy(p->out, f->total_j);
	buf_char(p->out, ' ');
	phrase_energy_error(p->out, f->total_j, f->error_j, f->calibration_error_j);
	buf_printf(p->out, "<tspan font-weight=\"400\"> %s: by owner and by domain</tspan>",
		provenance_name(f->provenance));
	draw_text_end(p);
	by_owner(p);
	by_domain(p);
	legend(p, true);
}

void ledger_description(const struct charts *charts, struct buf *out)
{
	const struct findings *f = charts->findings;
	human_energy(out, f->total_j);
	buf_char(out, ' ');
	phrase_energy_error(out, f->total_j, f->error_j, f->calibration_error_j);
	buf_printf(out, ", %s.", provenance_name(f->provenance));
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
		if (!(part_of(f, i) > 0))
			continue;
		buf_printf(out, " %s ", owners[i].words);
		human_energy(out, part_of(f, i));
		buf_str(out, i + 1 < ARRAY_SIZE(owners) ? ";" : ".");
	}
	for (size_t d = 0; d < f->n_domains; d++) {
		if (!counts(&f->domains[d]))
			continue;
		buf_char(out, ' ');
		draw_name(out, f->domains[d].device->name, 0);
		buf_printf(out, " (%s) ", provenance_name(f->domains[d].provenance));
		human_energy(out, f->domains[d].energy_j);
		buf_char(out, ';');
	}
}
