/* Where what stands on the screen: a pure function of its size and of how much there is to show. */
#pragma once

#include "live/frame.h"

enum panel {
	PANEL_HEAD,      // name, host, time; what looking costs
	PANEL_TOTAL,     // watts and joules of the machine
	PANEL_LEDGER,    // whose watts they are, as a bar
	PANEL_LEGEND,    // and in figures
	PANEL_MACHINE,   // cores and memory
	PANEL_TARGET,    // the run or process that is looked at
	PANEL_GRAPH,     // power over time
	PANEL_DOMAINS,   // a row each
	PANEL_SPANS,     // running now; its first row is a title
	PANEL_PROCESSES, // its first row is a title
	PANEL_KEYS,
	PANELS
};

struct live_need { // rows that there would be
	int domains, spans, processes;
	bool target;
	bool energy; // there is some: watts to draw
	bool past;   // there is one: more than one look
};

struct live_layout {
	struct area panels[PANELS]; // of no height: not shown
	bool is_wide;               // the graph stands beside the figures, spans beside processes
};

enum { LAYOUT_WIDE = 140 };

void live_layout(const struct live_need *need, int columns, int rows, struct live_layout *ret_layout);
