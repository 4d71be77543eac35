/* The panels, each a file or a function; compose.c puts them together. */
#pragma once

#include "live/text.h"
#include "live/view.h"

struct canvas {
	const struct live_view *view;
	struct frame *frame;
	struct area area; // of the panel
};

void part_head(const struct canvas *canvas);
void part_total(const struct canvas *canvas);
void part_ledger(const struct canvas *canvas);
void part_legend(const struct canvas *canvas);
void part_machine(const struct canvas *canvas);
void part_target(const struct canvas *canvas);
void part_graph(const struct canvas *canvas);
void part_domains(const struct canvas *canvas);
void part_spans(const struct canvas *canvas);
void part_processes(const struct canvas *canvas);
void part_keys(const struct canvas *canvas);
void part_help(const struct canvas *canvas); // over all others

// The usual pens.
extern const struct pen pen_plain, pen_faint, pen_bold, pen_warn, pen_title;
enum colour domain_colour(const struct now *now, size_t domain);
double target_joules(const struct live_view *view); // so far: of the run, else since it is looked at; NaN
