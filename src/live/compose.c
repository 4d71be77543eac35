#include "live/internal.h"

const struct pen pen_plain = {.colour = COLOUR_INK},
		 pen_faint = {.colour = COLOUR_FAINT, .cell_attributes = ATTRIBUTE_FAINT},
		 pen_bold = {.colour = COLOUR_INK, .cell_attributes = ATTRIBUTE_BOLD},
		 pen_warn = {.colour = COLOUR_WARN, .cell_attributes = ATTRIBUTE_BOLD};

static void (*const panels[PANELS])(const struct canvas *canvas) = {
	[PANEL_HEAD] = panel_head,
	[PANEL_TOTAL] = panel_total,
	[PANEL_LEDGER] = panel_ledger,
	[PANEL_LEGEND] = panel_legend,
	[PANEL_MACHINE] = panel_machine,
	[PANEL_TARGET] = panel_target,
	[PANEL_GRAPH] = panel_graph,
	[PANEL_DOMAINS] = panel_domains,
	[PANEL_SPANS] = panel_spans,
	[PANEL_PROCESSES] = panel_processes,
	[PANEL_KEYS] = panel_keys,
};

static int bounded(size_t n)
{
	return n < 10000 ? (int)n : 10000;
}

struct live_need live_need_of(const struct live_view *view)
{
	const struct live_run *run = view->run;
	bool has_spans = run != NULL && !view->ui->no_spans;
	return (struct live_need){
		.domains = bounded(view->now->n_domains),
		.processes = bounded(view->rows->n),
		// One row for the message that there are none.
		.spans = has_spans ? bounded(run->n_spans > 0 ? run->n_spans : 1) : 0,
		.target = view->pid != 0,
		.energy = view->now->problem == NULL,
		.past = !view->is_once,
	};
}

int live_list_height(const struct live_layout *layout)
{
	int height = layout->panels[PANEL_PROCESSES].height;
	return height > 1 ? height - 1 : height;
}

void live_compose(const struct live_view *view, const struct live_layout *layout, struct frame *frame)
{
	frame_clear(frame);
	for (int i = 0; i < PANELS; i++) {
		const struct canvas canvas = {view, frame, layout->panels[i]};
		bool is_covered = view->ui->help && i != PANEL_HEAD && i != PANEL_KEYS;
		if (canvas.area.height > 0 && canvas.area.width > 0 && !is_covered)
			panels[i](&canvas);
	}
	if (view->ui->help) {
		int above = layout->panels[PANEL_HEAD].height, below = layout->panels[PANEL_KEYS].height;
		const struct canvas canvas = {view, frame,
			{.y = above, .width = frame->columns, .height = frame->rows - above - below}};
		panel_help(&canvas);
	}
}
