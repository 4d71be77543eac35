/* The panels, each a file or a function; compose.c puts them together. */
#pragma once

#include "live/text.h"
#include "live/view.h"

struct canvas {
	const struct live_view *view;
	struct frame *frame;
	struct area area; // of the panel
};

void panel_head(const struct canvas *canvas);
void panel_total(const struct canvas *canvas);
void panel_ledger(const struct canvas *canvas);
void panel_legend(const struct canvas *canvas);
void panel_machine(const struct canvas *canvas);
void panel_target(const struct canvas *canvas);
void panel_graph(const struct canvas *canvas);
void panel_domains(const struct canvas *canvas);
void panel_spans(const struct canvas *canvas);
void panel_processes(const struct canvas *canvas);
void panel_keys(const struct canvas *canvas);
void panel_help(const struct canvas *canvas); // over all others

// The usual pens.
extern const struct pen pen_plain, pen_faint, pen_bold, pen_warn, pen_title;
