/* Summary lines of the machine and the target. */
#include "live/internal.h"

#include "base/util.h"

#include <stdio.h>

// Energy so far: of the run, else since monitoring began; NaN: unknown.
static double target_joules(const struct live_view *view)
{
	return view->run != NULL ? view->run->target_j : view->target_j;
}

static void dot(struct line *line)
{
	line_printf(line, pen_faint, " %s ", sign(line->frame, SIGN_DOT));
}

/* Writes text at the right end of a line unless it would touch the text at the left. */
static void at_right(struct line *line, struct pen pen, const char *text)
{
	int width = text_width(line->frame, text);
	if (line->is_cut || line->x + 2 + width > line->end)
		return;
	line_to(line, line->end - width);
	line_text(line, pen, text);
}

void panel_head(const struct canvas *canvas)
{
	const struct live_view *view = canvas->view;
	const struct monitor_sample *now = view->now;
	struct line line = line_in(canvas->frame, canvas->area, 0);
	line_text(&line, pen_bold, "wattle top");
	dot(&line);
	line_text(&line, pen_plain, view->host);
	dot(&line);
	line_text(&line, pen_plain, view->clock);
	if (view->ui->paused) {
		dot(&line);
		line_text(&line, pen_warn, "paused");
	} else if (!view->is_once) {
		dot(&line);
		line_printf(&line, pen_faint, "every %s", figure_span((double)view->ui->interval_ns * 1e-9).text);
	}
	char cost[2 * FIGURE_SIZE + 40];
	snprintf(cost, sizeof(cost), "overhead %s %% of a core, %s", figure_number(now->own_cpu_percent).text,
		figure_memory(value_to_double(now->own_rss_bytes, 1)).text);
	at_right(&line, pen_faint, cost);
	char brief[64];
	snprintf(brief, sizeof(brief), "overhead %s %%", figure_number(now->own_cpu_percent).text);
	if (line.x < line.end)
		at_right(&line, pen_faint, brief);
}

// Prefix of estimated values in all lines.
static const char *guess(enum provenance provenance)
{
	return provenance == PROVENANCE_ESTIMATED ? "~" : "";
}

void panel_total(const struct canvas *canvas)
{
	const struct live_view *view = canvas->view;
	const struct monitor_sample *now = view->now;
	struct line line = line_in(canvas->frame, canvas->area, 0);
	if (now->problem != NULL) {
		line_text(&line, pen_warn, now->problem);
		return;
	}
	line_text(&line, pen_plain, "Power ");
	line_printf(&line, pen_bold, "%s%s", guess(now->provenance), figure_power(now->total_w).text);
	line_printf(&line, now->provenance == PROVENANCE_MEASURED ? pen_faint : pen_warn, " %s",
		provenance_name(now->provenance));
	dot(&line);
	line_printf(&line, pen_plain, "%s%s", guess(now->provenance),
		figure_energy(value_to_double(now->total_energy_uj, 1e-6)).text);
	line_printf(&line, pen_faint, " in %s", figure_span(view->since_s).text);
	char counted[2 * FIGURE_SIZE + 24];
	snprintf(counted, sizeof(counted), "%s processes, %s threads", figure_count(now->processes_seen).text,
		figure_count(now->threads_seen).text);
	at_right(&line, pen_faint, counted);
}

/* ---- power by consumer ---- */

enum { LEDGER_ROWS = 5 };

struct ledger_row {
	const char *name, *brief;
	enum fill fill;
	enum colour colour;
	double power_w;
	bool is_shown;
};

static void ledger_of(const struct live_view *view, struct ledger_row rows[LEDGER_ROWS])
{
	const struct monitor_sum *sum = &view->now->sum;
	const struct ledger_row all[LEDGER_ROWS] = {
		{"target", "target", FILL_SOLID, COLOUR_TARGET, sum->target_w, view->pid != 0},
		{view->pid != 0 ? "others" : "programs", view->pid != 0 ? "others" : "programs", FILL_DENSE,
			COLOUR_OTHERS, sum->others_w, true},
		{"wattle", "wattle", FILL_STRIPES, COLOUR_WATTLE, sum->own_w, true},
		{"idle", "idle", FILL_THIN, COLOUR_IDLE, sum->idle_w, true},
		{"unattributed", "rest", FILL_DOT, COLOUR_UNATTRIBUTED, sum->unattributed_w, true},
	};
	memcpy(rows, all, sizeof(all));
}

void panel_ledger(const struct canvas *canvas)
{
	struct ledger_row rows[LEDGER_ROWS];
	struct bar_segment segments[LEDGER_ROWS];
	ledger_of(canvas->view, rows);
	double sum_w = 0;
	for (size_t i = 0; i < LEDGER_ROWS; i++)
		sum_w += rows[i].is_shown && rows[i].power_w > 0 ? rows[i].power_w : 0;
	if (!(sum_w > 0))
		return;
	for (size_t i = 0; i < LEDGER_ROWS; i++)
		segments[i] = (struct bar_segment){rows[i].is_shown && rows[i].power_w > 0 ? rows[i].power_w / sum_w
											   : 0,
			rows[i].fill, rows[i].colour};
	bar_draw(canvas->frame, canvas->area, canvas->view->ui->style, segments, LEDGER_ROWS);
}

static int legend_width(const struct ledger_row *rows, bool is_brief)
{
	int width = 0;
	for (size_t i = 0; i < LEDGER_ROWS; i++)
		if (rows[i].is_shown)
			width += 5 + (int)strlen(is_brief ? rows[i].brief : rows[i].name) +
				(int)strlen(figure_power(rows[i].power_w).text);
	return width - 2;
}

void panel_legend(const struct canvas *canvas)
{
	struct ledger_row rows[LEDGER_ROWS];
	ledger_of(canvas->view, rows);
	struct line line = line_in(canvas->frame, canvas->area, 0);
	bool is_brief = legend_width(rows, false) > canvas->area.width;
	for (size_t i = 0; i < LEDGER_ROWS; i++) {
		if (!rows[i].is_shown)
			continue;
		line_blank(&line, line.x > canvas->area.x ? 2 : 0);
		line_text(&line, (struct pen){.colour = rows[i].colour}, fill_sign(canvas->frame, rows[i].fill));
		line_printf(&line, pen_faint, " %s ", is_brief ? rows[i].brief : rows[i].name);
		line_text(&line, pen_plain, figure_power(rows[i].power_w).text);
	}
}

/* ---- cores and memory ---- */

static void gauge(const struct canvas *canvas, struct line *line, const char *name, double share, enum colour colour,
	int width)
{
	line_printf(line, pen_plain, "%s ", name);
	const struct bar_segment segment = {share, FILL_SOLID, colour};
	struct area bar = {.x = line->x + 1, .y = line->y, .width = width, .height = 1};
	line_text(line, pen_faint, "[");
	if (bar.x + bar.width < line->end)
		bar_draw(canvas->frame, bar, canvas->view->ui->style, &segment, 1);
	line_blank(line, width);
	line_text(line, pen_faint, "] ");
}

void panel_machine(const struct canvas *canvas)
{
	const struct monitor_sample *now = canvas->view->now;
	struct line line = line_in(canvas->frame, canvas->area, 0);
	double used = value_to_double(now->memory_used_bytes, 1), all = value_to_double(now->memory_total_bytes, 1);
	double cores = value_to_double(now->cores, 1);
	int width = canvas->area.width / 2 - 29;
	if (width > 40)
		width = 40;
	if (width >= 5) {
		gauge(canvas, &line, "CPU", now->busy_cores / cores, COLOUR_SERIES_2, width);
		line_printf(&line, pen_plain, "%s of %s cores", figure_number(now->busy_cores).text,
			figure_count(now->cores).text);
		line_to(&line, canvas->area.x + canvas->area.width / 2 + 1);
		gauge(canvas, &line, "Memory", used / all, COLOUR_SERIES_4, width);
		line_printf(&line, pen_plain, "%s of %s", figure_memory(used).text, figure_memory(all).text);
		return;
	}
	line_printf(&line, pen_plain, "CPU %s/%s", figure_number(now->busy_cores).text, figure_count(now->cores).text);
	dot(&line);
	line_printf(&line, pen_plain, "memory %s/%s", figure_memory(used).text, figure_memory(all).text);
}

/* ---- the target ---- */

static const char *target_state(const struct live_view *view)
{
	if (view->run != NULL && view->run->is_over)
		return "the run has ended";
	if (view->now->target_is_gone)
		return "has ended";
	if (view->run != NULL && view->run->is_late)
		return "no new samples";
	if (view->run != NULL && view->run->is_adding_up)
		return "adding up earlier samples";
	return NULL;
}

static double target_seconds(const struct live_view *view)
{
	const struct live_run *run = view->run;
	if (run == NULL)
		return view->since_s;
	return value_ok(run->stored_ns) ? (double)(run->stored_ns - run->start_ns) * 1e-9 : (double)NAN;
}

static const char *target_command(const struct live_view *view)
{
	if (view->run != NULL && view->run->command != NULL)
		return view->run->command;
	for (size_t i = 0; i < view->now->n_processes; i++)
		if (view->now->processes[i].pid == view->pid)
			return view->now->processes[i].command;
	return "";
}

void panel_target(const struct canvas *canvas)
{
	const struct live_view *view = canvas->view;
	struct line line = line_in(canvas->frame, canvas->area, 0);
	const char *state = target_state(view);
	line_text(&line, (struct pen){.colour = COLOUR_TARGET, .cell_attributes = ATTRIBUTE_BOLD},
		view->run != NULL ? "Run " : "Target ");
	line_text(&line, pen_bold, figure_power(view->now->sum.target_w).text);
	dot(&line);
	line_text(&line, pen_bold, figure_energy(target_joules(view)).text);
	line_printf(&line, pen_faint, " in %s", figure_span(target_seconds(view)).text);
	if (view->now->target_ram_bytes > 0) {
		dot(&line);
		line_printf(&line, pen_plain, "RAM %s", figure_memory(view->now->target_ram_bytes).text);
	}
	if (state != NULL) {
		dot(&line);
		line_text(&line, pen_warn, state);
	}
	dot(&line);
	line_printf(&line, pen_faint, "pid %lld ", (long long)view->pid);
	line_text(&line, pen_plain, target_command(view));
}
