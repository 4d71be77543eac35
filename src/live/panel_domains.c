/* One row per domain: power, a bar up to its limit, its history, and additional readings. */
#include "live/internal.h"

#include "base/util.h"
#include "metric/metric.h"

#include <stdio.h>

enum { NAME_WIDTH = 11, POWER_WIDTH = 9, LIMIT_WIDTH = 8, BAR_MIN = 8, BAR_MAX = 40, PAST_MIN = 8, PAST_MAX = 60 };

/* Additional columns, most important first; each is shown only if some domain has the value. */
struct extra {
	int width;
	bool (*has)(const struct monitor_domain *domain);
	void (*write)(struct line *line, const struct monitor_domain *domain, int width);
};

// Numbers the domains in the total, so that domains with the same colour are far apart. Parts of a domain share its colour.
static enum colour domain_colour(const struct monitor_sample *now, size_t domain)
{
	const char *inside = now->domains[domain].domain->inside;
	unsigned int number = 0;
	for (size_t i = 0; i < now->n_domains; i++) {
		if (i == domain || (inside[0] != '\0' && strcmp(now->domains[i].domain->name, inside) == 0))
			break;
		number += now->domains[i].in_total;
	}
	return colour_of_series(number);
}

static void write_unit(struct line *line, double value, const char *tag, const char *unit, int width)
{
	char text[FIGURE_SIZE + 16] = "";
	if (!isnan(value))
		snprintf(text, sizeof(text), "%s%.0f%s", tag, value, unit);
	line_column(line, pen_plain, text, width - 1, true);
}

static const char *unit_percent(const struct line *line)
{
	return " %";
}

static const char *unit_celsius(const struct line *line)
{
	return sign(line->frame, SIGN_DEGREE);
}

static const char *unit_megahertz(const struct line *line)
{
	return " MHz";
}

// Defines has_MEMBER and write_MEMBER for a gauge that is a number with a unit. Memory is written as used and total.
#define GAUGE_percent GAUGE
#define GAUGE_celsius GAUGE
#define GAUGE_megahertz GAUGE
#define GAUGE_bytes(...)
#define GAUGE(member, format, tag)                                                                                     \
	static bool has_##member(const struct monitor_domain *domain)                                                  \
	{                                                                                                              \
		return !isnan(domain->member);                                                                         \
	}                                                                                                              \
	static void write_##member(struct line *line, const struct monitor_domain *domain, int width)                  \
	{                                                                                                              \
		write_unit(line, domain->member, tag, unit_##format(line), width);                                     \
	}
#define DEVICE_LIVE(id, member, unit, format, tag, ...) GAUGE_##format(member, format, tag)
#include "metric/metrics.def"

static bool has_memory(const struct monitor_domain *domain)
{
	return !isnan(domain->memory_used_bytes);
}

static void write_memory(struct line *line, const struct monitor_domain *domain, int width)
{
	char text[2 * FIGURE_SIZE + 2] = "";
	if (has_memory(domain))
		snprintf(text, sizeof(text), "%s/%s", figure_bytes(domain->memory_used_bytes).text,
			figure_bytes(domain->memory_total_bytes).text);
	line_column(line, pen_plain, text, width - 1, true);
}

static bool is_throttled(const struct monitor_domain *domain)
{
	return throttle_held_back(domain->throttle_bits) != 0;
}

static void write_throttling(struct line *line, const struct monitor_domain *domain, int width)
{
	line_column(line, pen_warn, is_throttled(domain) ? "throttled" : "", width - 1, false);
}

static bool has_provenance(const struct monitor_domain *domain)
{
	return true;
}

static void write_provenance(struct line *line, const struct monitor_domain *domain, int width)
{
	enum provenance provenance = domain->domain->provenance;
	line_column(line, provenance == PROVENANCE_MEASURED ? pen_faint : pen_warn, provenance_name(provenance),
		width - 1, false);
}

static void write_source(struct line *line, const struct monitor_domain *domain, int width)
{
	line_column(line, pen_faint, domain->source, width - 1, false);
}

static bool has_device(const struct monitor_domain *domain)
{
	return domain->domain->kind == DOMAIN_GPU;
}

static void write_device(struct line *line, const struct monitor_domain *domain, int width)
{
	line_column(line, pen_faint, domain->domain->device, width - 1, false);
}

static const struct extra extras[] = {
#define EXTRA_percent(member, tag) {5 + sizeof(tag), has_##member, write_##member},
#define EXTRA_celsius(member, tag) {6 + sizeof(tag), has_##member, write_##member},
#define EXTRA_bytes(...)
#define EXTRA_megahertz(...)
#define DEVICE_LIVE(id, member, unit, format, tag, ...) EXTRA_##format(member, tag)
#include "metric/metrics.def"
	{12, has_memory, write_memory},
	{10, is_throttled, write_throttling},
	{10, has_provenance, write_provenance},
	{24, has_device, write_device},
#undef EXTRA_percent
#undef EXTRA_celsius
#undef EXTRA_megahertz
#define EXTRA_percent(...)
#define EXTRA_celsius(...)
#define EXTRA_megahertz(member, tag) {8 + sizeof(tag), has_##member, write_##member},
#define DEVICE_LIVE(id, member, unit, format, tag, ...) EXTRA_##format(member, tag)
#include "metric/metrics.def"
	{10, has_provenance, write_source},
};

struct plan { // columns of this panel
	int name, bar, past;
	bool limit, extras[ARRAY_SIZE(extras)];
};

static bool any_has(const struct monitor_sample *now, bool (*has)(const struct monitor_domain *domain))
{
	for (size_t i = 0; i < now->n_domains; i++)
		if (has(&now->domains[i]))
			return true;
	return false;
}

static bool has_limit(const struct monitor_domain *domain)
{
	return !isnan(domain->cap_w);
}

static struct plan plan_for(const struct monitor_sample *now, int width, bool has_past)
{
	struct plan plan = {.name = width < 40 ? 10 : NAME_WIDTH + 2};
	int left = width - plan.name - POWER_WIDTH;
	plan.limit = any_has(now, has_limit) && left >= LIMIT_WIDTH + BAR_MIN + 2;
	left -= plan.limit ? LIMIT_WIDTH : 0;
	for (size_t i = 0; i < ARRAY_SIZE(extras); i++) {
		// Leaves room for a bar and a history. On narrow screens, numbers are preferred to graphics.
		int keep = width < 60 ? 0 : BAR_MIN + 2 + PAST_MIN;
		plan.extras[i] = any_has(now, extras[i].has) && left - extras[i].width >= keep;
		left -= plan.extras[i] ? extras[i].width : 0;
	}
	if (has_past && left >= BAR_MIN + 3 + PAST_MIN) {
		plan.past = left / 2 < PAST_MAX ? left / 2 : PAST_MAX;
		left -= plan.past + 1;
	}
	left -= plan.limit ? 2 : 3;
	plan.bar = left < BAR_MIN ? 0 : left < BAR_MAX ? left : BAR_MAX;
	return plan;
}

/* ---- one row ---- */

static double largest(const struct monitor_domain *domain)
{
	double most = domain->power_w;
	for (size_t i = 0; i < MONITOR_HISTORY && i < domain->power_history_w.n; i++)
		most = fmax(most, monitor_history_at(&domain->power_history_w, i));
	return most;
}

// The limit if known; else a round number above all shown values.
static double scale_of(const struct monitor_domain *domain)
{
	return domain->cap_w > 0 ? fmax(domain->cap_w, 1) : graph_top(largest(domain), 1);
}

static void draw_bar(const struct canvas *canvas, struct line *line, size_t number, const struct plan *plan)
{
	const struct monitor_domain *domain = &canvas->view->now->domains[number];
	double scale_w = scale_of(domain),
	       target_w = canvas->view->pid != 0 && domain->target_w > 0 ? domain->target_w : 0;
	enum fill fill = fill_of(domain->domain->provenance);
	const struct bar_segment segments[] = {
		{target_w / scale_w, fill, COLOUR_TARGET},
		{(domain->power_w - target_w) / scale_w, fill,
			canvas->view->pid != 0 ? COLOUR_IDLE : domain_colour(canvas->view->now, number)},
	};
	line_text(line, pen_faint, "[");
	struct area bar = {.x = line->x, .y = line->y, .width = plan->bar, .height = 1};
	bar_draw(canvas->frame, bar, canvas->view->ui->style, segments, ARRAY_SIZE(segments));
	line_blank(line, plan->bar);
	line_text(line, pen_faint, "]");
	line_blank(line, plan->limit ? 0 : 1); // a limit follows directly: "]/700 W"
}

static void draw_past(const struct canvas *canvas, struct line *line, size_t number, int width)
{
	const struct monitor_domain *domain = &canvas->view->now->domains[number];
	// Blocks resolve eight heights in one row, dots only four.
	enum graph_style style = !canvas->frame->utf8 || canvas->view->ui->style == GRAPH_ASCII ? GRAPH_ASCII
												: GRAPH_BLOCK;
	double values[MONITOR_HISTORY];
	size_t n = graph_capacity(style, width);
	n = n < MONITOR_HISTORY ? n : MONITOR_HISTORY;
	for (size_t i = 0; i < n; i++)
		values[i] = monitor_history_at(&domain->power_history_w, n - 1 - i);
	const struct graph graph = {.style = style,
		.values = values,
		.n = n,
		.top = graph_top(largest(domain), 1),
		.pen = {.colour = domain_colour(canvas->view->now, number)}};
	graph_draw(canvas->frame, (struct area){.x = line->x, .y = line->y, .width = width, .height = 1}, &graph);
	line_blank(line, width + 1);
}

static void draw_name(struct line *line, const struct monitor_domain *domain, int width)
{
	char text[64];
	const char *name = domain->domain->name;
	// Indents parts of other domains, and domains outside the total.
	snprintf(text, sizeof(text), "%s%s", domain->in_total ? "" : "  ", name);
	line_column(line, domain->in_total ? pen_plain : pen_faint, text, width - 1, false);
	line_blank(line, 1);
}

static void draw_row(const struct canvas *canvas, size_t number, int row, const struct plan *plan)
{
	const struct monitor_domain *domain = &canvas->view->now->domains[number];
	struct line line = line_in(canvas->frame, canvas->area, row);
	char text[FIGURE_SIZE + 8];
	draw_name(&line, domain, plan->name);
	snprintf(text, sizeof(text), "%s%s", domain->domain->provenance == PROVENANCE_ESTIMATED ? "~" : "",
		figure_power(domain->power_w).text);
	line_column(&line, isnan(domain->power_w) ? pen_faint : pen_bold, text, POWER_WIDTH - 1, true);
	line_blank(&line, 1);
	if (plan->bar > 0)
		draw_bar(canvas, &line, number, plan);
	if (plan->limit) {
		text[0] = '\0';
		if (has_limit(domain))
			snprintf(text, sizeof(text), "/%s W", figure_number(domain->cap_w).text);
		line_column(&line, pen_faint, text, LIMIT_WIDTH - 1, false);
		line_blank(&line, 1);
	}
	if (plan->past > 0)
		draw_past(canvas, &line, number, plan->past);
	for (size_t i = 0; i < ARRAY_SIZE(extras); i++)
		if (plan->extras[i]) {
			extras[i].write(&line, domain, extras[i].width);
			line_blank(&line, 1);
		}
}

// Summarises the domains that do not fit in one row.
static void draw_rest(const struct canvas *canvas, const size_t *rest, size_t n, int row)
{
	const struct monitor_sample *now = canvas->view->now;
	struct line line = line_in(canvas->frame, canvas->area, row);
	double sum_w = 0;
	for (size_t i = 0; i < n; i++) {
		const struct monitor_domain *domain = &now->domains[rest[i]];
		if (domain->in_total && !isnan(domain->power_w))
			sum_w += domain->power_w;
	}
	line_printf(&line, pen_faint, "%zu more: %s", n, figure_power(sum_w).text);
}

/* ---- all rows ---- */

enum { ORDERED_MAX = 256 };

static bool lies_in(const struct monitor_sample *now, size_t part, size_t whole)
{
	return part != whole && strcmp(now->domains[part].domain->inside, now->domains[whole].domain->name) == 0;
}

static bool is_outermost(const struct monitor_sample *now, size_t number)
{
	for (size_t i = 0; i < now->n_domains; i++)
		if (lies_in(now, number, i))
			return false;
	return true;
}

// Puts parts below their parent domain; parts of parts follow after the direct parts.
static size_t order_domains(const struct monitor_sample *now, size_t *order)
{
	size_t n = 0;
	for (size_t i = 0; i < now->n_domains && n < ORDERED_MAX; i++) {
		if (!is_outermost(now, i))
			continue;
		size_t first = n;
		order[n++] = i;
		for (size_t at = first; at < n; at++)
			for (size_t part = 0; part < now->n_domains && n < ORDERED_MAX; part++)
				if (lies_in(now, part, order[at]))
					order[n++] = part;
	}
	return n;
}

void panel_domains(const struct canvas *canvas)
{
	const struct monitor_sample *now = canvas->view->now;
	size_t order[ORDERED_MAX];
	size_t n = order_domains(now, order);
	const struct plan plan = plan_for(now, canvas->area.width, !canvas->view->is_once);
	size_t height = (size_t)canvas->area.height;
	size_t shown = n <= height ? n : height - 1;
	for (size_t i = 0; i < shown; i++)
		draw_row(canvas, order[i], (int)i, &plan);
	if (shown < n)
		draw_rest(canvas, order + shown, n - shown, (int)shown);
}
