/* Compact number formatting. */
#pragma once

#include "live/session.h"

#include <stddef.h>
#include <stdint.h>

enum { FIGURE_SIZE = 32 };
struct figure {
	char text[FIGURE_SIZE];
};

// Three digits and no unit: "0.031", "1.23", "62.3", "142", "1421"; "n/a".
struct figure figure_number(double value);
struct figure figure_in_column(double value); // for aligned columns: "0.03", "1.23", "62.31", "142.1", "1421"; 0 is "0"
struct figure figure_bytes(double bytes);     // "812K", "12.3M", "1.21G": decimal units
struct figure figure_memory(double bytes);    // with a unit: "1.21 GB"
struct figure figure_count(int64_t value);
struct figure figure_span(double seconds);    // "8.31s", "2:05", "1:02:05", "3d04h"
struct figure figure_power(double power_w);   // with a unit, as in reports
struct figure figure_energy(double energy_j); // with a unit, as in reports

/* The panels, each a file or a function; compose.c assembles them. */

struct canvas {
	const struct live_view *view;
	struct frame *frame;
	struct area area; // area of the panel
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
void panel_help(const struct canvas *canvas); // drawn over all others

// Standard pens.
extern const struct pen pen_plain, pen_faint, pen_bold, pen_warn;
