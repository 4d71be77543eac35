/* The list of processes. */
#include "live/internal.h"

#include "base/util.h"

#include <stdio.h>

enum { COMMAND_MIN = 18, COMMAND_PART = 5 }; // minimum columns; 1/5 of the list if that is more

/* Columns from left to right. On narrow screens, columns with the highest rank are dropped first. */
struct column {
	const char *title;
	int width, rank;
	bool to_right, of_gpus, of_parts;
	enum live_sort sort; // SORTS: none
	struct figure (*text)(const struct live_view *view, const struct monitor_process *process);
};

static struct figure pid_text(const struct live_view *view, const struct monitor_process *process)
{
	return figure_count(process->pid);
}

static struct figure user_text(const struct live_view *view, const struct monitor_process *process)
{
	const char *name = view->users != NULL ? view->users->name_of(view->users->data, process->uid) : NULL;
	struct figure figure = figure_count(process->uid != (uid_t)-1 ? (int64_t)process->uid : VALUE_MISSING);
	if (name != NULL)
		text_copy(figure.text, sizeof(figure.text), name);
	return figure;
}

static struct figure power_text(const struct live_view *view, const struct monitor_process *process)
{
	return figure_in_column(process->power_w);
}

static struct figure cpu_power_text(const struct live_view *view, const struct monitor_process *process)
{
	return figure_in_column(process->cpu_w);
}

static struct figure dram_power_text(const struct live_view *view, const struct monitor_process *process)
{
	return figure_in_column(process->dram_w);
}

static struct figure nothing(void)
{
	return (struct figure){"-"};
}

static struct figure gpu_power_text(const struct live_view *view, const struct monitor_process *process)
{
	return isnan(process->gpu_w) ? nothing() : figure_in_column(process->gpu_w);
}

static struct figure energy_text(const struct live_view *view, const struct monitor_process *process)
{
	struct figure figure = figure_in_column(process->energy_j);
	if (process->energy_j >= 99950)
		snprintf(figure.text, sizeof(figure.text), "%.0fk", process->energy_j / 1000);
	return figure;
}

static struct figure cpu_text(const struct live_view *view, const struct monitor_process *process)
{
	struct figure figure = {"n/a"};
	if (!isnan(process->cpu_cores))
		snprintf(figure.text, sizeof(figure.text), process->cpu_cores < 9.995 ? "%.1f" : "%.0f",
			process->cpu_cores * 100);
	return figure;
}

static struct figure memory_text(const struct live_view *view, const struct monitor_process *process)
{
	return figure_bytes(value_to_double(process->rss_bytes, 1));
}

static struct figure gpu_text(const struct live_view *view, const struct monitor_process *process)
{
	struct figure figure = nothing();
	if (!isnan(process->gpu_percent))
		snprintf(figure.text, sizeof(figure.text), "%.0f", process->gpu_percent);
	return figure;
}

static struct figure gpu_memory_text(const struct live_view *view, const struct monitor_process *process)
{
	return value_ok(process->gpu_memory_bytes) ? figure_bytes((double)process->gpu_memory_bytes) : nothing();
}

static struct figure threads_text(const struct live_view *view, const struct monitor_process *process)
{
	return figure_count(process->threads);
}

static struct figure state_text(const struct live_view *view, const struct monitor_process *process)
{
	return (struct figure){{process->is_gone ? '-' : process->state}};
}

static const struct column columns[] = {
	{"PID", 7, 1, true, .sort = SORT_PID, .text = pid_text},
	{"USER", 9, 6, false, .sort = SORTS, .text = user_text},
	{"S", 1, 9, false, .sort = SORTS, .text = state_text},
	{"THR", 4, 8, true, .sort = SORTS, .text = threads_text},
	{"W", 6, 0, true, .sort = SORT_POWER, .text = power_text},
	{"CPU W", 6, 10, true, .of_parts = true, .sort = SORTS, .text = cpu_power_text},
	{"RAM W", 6, 10, true, .of_parts = true, .sort = SORTS, .text = dram_power_text},
	{"GPU W", 6, 10, true, .of_gpus = true, .of_parts = true, .sort = SORTS, .text = gpu_power_text},
	{"J", 6, 5, true, .sort = SORT_ENERGY, .text = energy_text},
	{"CPU%", 6, 2, true, .sort = SORT_CPU, .text = cpu_text},
	{"MEM", 5, 3, true, .sort = SORT_MEMORY, .text = memory_text},
	{"GPU%", 5, 4, true, .of_gpus = true, .sort = SORT_GPU, .text = gpu_text},
	{"GMEM", 5, 4, true, .of_gpus = true, .sort = SORT_GPU_MEMORY, .text = gpu_memory_text},
};

static bool has_gpus(const struct monitor_sample *now)
{
	for (size_t i = 0; i < now->n_domains; i++)
		if (now->domains[i].domain->kind == DOMAIN_GPU)
			return true;
	return false;
}

// Drops ranks one by one until commands have enough room.
static void choose(const struct canvas *canvas, bool *shown)
{
	bool gpus = has_gpus(canvas->view->now);
	int command = canvas->area.width / COMMAND_PART;
	command = command > COMMAND_MIN ? command : COMMAND_MIN;
	for (int rank = 10; rank >= 0; rank--) {
		int width = 0;
		for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
			shown[i] = columns[i].rank <= rank && (gpus || !columns[i].of_gpus);
			width += shown[i] ? columns[i].width + 1 : 0;
		}
		if (width + command <= canvas->area.width || rank == 0)
			return;
	}
}

/* ---- rows ---- */

static void draw_title(const struct canvas *canvas, const bool *shown)
{
	const struct live_ui *ui = canvas->view->ui;
	struct line line = line_in(canvas->frame, canvas->area, 0);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (!shown[i])
			continue;
		char title[24];
		bool is_sorted = columns[i].sort == ui->sort;
		snprintf(title, sizeof(title), "%s%s", columns[i].title,
			is_sorted ? sign(canvas->frame, ui->reverse != (ui->sort == SORT_PID) ? SIGN_UP : SIGN_DOWN)
				  : "");
		line_column(&line, is_sorted ? pen_bold : pen_plain, title, columns[i].width, columns[i].to_right);
		line_blank(&line, 1);
	}
	line_text(&line, pen_plain, "COMMAND");
	bool is_part = ui->only_target && ui->has_target, is_filtered = ui->filter[0] != '\0';
	if (is_part || is_filtered)
		line_printf(&line, pen_plain, " (%s%s%s)", is_part ? "of the target" : "",
			is_part && is_filtered ? ", " : "", ui->filter);
	frame_set_attributes(canvas->frame, (struct area){canvas->area.x, canvas->area.y, canvas->area.width, 1},
		ATTRIBUTE_REVERSE);
}

static void draw_branches(struct line *line, const struct live_row *row)
{
	for (int depth = 1; depth < row->depth; depth++)
		line_text(line, pen_faint, row->branch_bits & 1U << depth ? sign(line->frame, SIGN_TREE_LINE) : "  ");
	if (row->depth > 0) {
		line_text(line, pen_faint, sign(line->frame, row->is_last ? SIGN_LAST : SIGN_BRANCH));
		line_blank(line, 1);
	}
}

// Skips `shift` whole characters. The text may contain invalid bytes.
static const char *shifted(const struct frame *frame, const char *text, int shift)
{
	while (shift > 0 && *text != '\0') {
		size_t bytes = 1;
		while (frame->utf8 && ((unsigned char)text[bytes] & 0xc0) == 0x80)
			bytes++;
		text += bytes;
		shift--;
	}
	return text;
}

static void draw_row(const struct canvas *canvas, const struct live_row *row, int at, const bool *shown)
{
	const struct live_view *view = canvas->view;
	const struct monitor_process *process = row->process;
	struct line line = line_in(canvas->frame, canvas->area, at);
	struct pen pen = pen_plain;
	if (process->is_gone)
		pen = pen_faint;
	else if (process->is_target)
		pen.colour = COLOUR_TARGET;
	else if (process->is_own)
		pen.colour = COLOUR_WATTLE;
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (!shown[i])
			continue;
		struct figure text = columns[i].text(view, process);
		bool is_nothing = strcmp(text.text, "n/a") == 0 || strcmp(text.text, "-") == 0 ||
			strcmp(text.text, "0") == 0;
		line_column(&line, is_nothing ? pen_faint : pen, text.text, columns[i].width, columns[i].to_right);
		line_blank(&line, 1);
	}
	draw_branches(&line, row);
	line_text(&line, pen, shifted(canvas->frame, process->command, view->ui->shift));
	if (process->is_gone && !line.is_cut)
		line_text(&line, pen_faint, " (ended)");
}

void panel_processes(const struct canvas *canvas)
{
	const struct live_view *view = canvas->view;
	bool shown[ARRAY_SIZE(columns)];
	choose(canvas, shown);
	int title = canvas->area.height > 1;
	if (title)
		draw_title(canvas, shown);
	for (int i = title; i < canvas->area.height; i++) {
		size_t number = (size_t)(view->ui->first + i - title);
		if (number >= view->rows->n)
			return;
		draw_row(canvas, &view->rows->rows[number], i, shown);
		if ((int)number == view->selected && !view->is_once)
			frame_set_attributes(canvas->frame,
				(struct area){canvas->area.x, canvas->area.y + i, canvas->area.width, 1},
				ATTRIBUTE_REVERSE);
	}
}
