#include "live/session.h"

#include "base/util.h"

/* Order in which panels get rows. Each step gives one panel the number of rows listed, limited by its need and by the rows
 * left. Processes get their minimum before these steps and all remaining rows after them. */
static const struct step {
	enum panel panel;
	int rows;
} steps[] = {
	{PANEL_TOTAL, 1},
	{PANEL_HEAD, 1},
	{PANEL_KEYS, 1},
	{PANEL_TARGET, 1},
	{PANEL_DOMAINS, 1},
	{PANEL_LEDGER, 1},
	{PANEL_SPANS, 3},
	{PANEL_DOMAINS, 2},
	{PANEL_MACHINE, 1},
	{PANEL_LEGEND, 1},
	{PANEL_DOMAINS, 3},
	{PANEL_DOMAINS, 6},
	{PANEL_GRAPH, 4},
	{PANEL_SPANS, 3},
	{PANEL_GRAPH, 2},
	{PANEL_DOMAINS, 1000},
	{PANEL_SPANS, 4},
	{PANEL_GRAPH, 4},
};
// Minimum useful rows: a title and one span; four rows of graph.
static const int panel_min[PANELS] = {[PANEL_SPANS] = 2, [PANEL_GRAPH] = 4};

enum { GRAPH_MAX = 10, GRAPH_MIN_COLUMNS = 30 };

static int least(int a, int b)
{
	return a < b ? a : b;
}

static int most(int a, int b)
{
	return a > b ? a : b;
}

static void wanted(const struct live_need *need, int columns, int screen, bool is_wide, int *rows)
{
	for (int i = 0; i < PANELS; i++)
		rows[i] = 1;
	rows[PANEL_TARGET] = need->target ? 1 : 0;
	rows[PANEL_LEDGER] = rows[PANEL_LEGEND] = need->energy ? 1 : 0;
	// With few domains, the graph beside them would have few rows.
	rows[PANEL_DOMAINS] = is_wide ? most(need->domains, screen / 5) : need->domains;
	rows[PANEL_SPANS] = need->spans > 0 && !is_wide ? need->spans + 1 : 0;
	rows[PANEL_GRAPH] = columns < GRAPH_MIN_COLUMNS || is_wide || !need->past || !need->energy ? 0 : GRAPH_MAX;
	rows[PANEL_PROCESSES] = need->processes + 1;
}

// Two fifths of the screen, limited by need. A screen of one row shows the total instead.
static int processes_min(int wanted_rows, int rows)
{
	return rows < 2 ? 0 : least(wanted_rows, most(rows * 2 / 5, least(rows - 1, 2)));
}

static void share(const int *want, int rows, int *given)
{
	given[PANEL_PROCESSES] = processes_min(want[PANEL_PROCESSES], rows);
	int left = rows - given[PANEL_PROCESSES];
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		const struct step *step = &steps[i];
		int n = least(least(step->rows, left), want[step->panel] - given[step->panel]);
		if (n < 1 || given[step->panel] + n < panel_min[step->panel])
			continue;
		given[step->panel] += n;
		left -= n;
	}
	given[PANEL_PROCESSES] += left;
}

// Gives rows that the process list does not need to the graph (or to the domains, if the graph is beside them).
static void fill(const int *want, bool is_wide, int rows, int *given)
{
	enum panel larger = is_wide ? PANEL_DOMAINS : PANEL_GRAPH;
	int n = least(given[PANEL_PROCESSES] - want[PANEL_PROCESSES], rows / 3);
	if (n > 0 && given[larger] > 0) {
		given[larger] += n;
		given[PANEL_PROCESSES] -= n;
	}
}

static void stack(const int *given, int columns, struct live_layout *layout)
{
	int y = 0;
	for (int i = 0; i < PANELS; i++) {
		layout->panels[i] = (struct area){.x = 0, .y = y, .width = columns, .height = given[i]};
		y += given[i];
	}
}

static struct area right_of(struct area *left, int width)
{
	enum { GAP = 2 };
	struct area right = *left;
	left->width = width;
	right.x = width + GAP;
	right.width -= width + GAP;
	return right;
}

// The figures keep the larger of 80 columns and half the width; the graph gets the rest. Spans get the last two fifths beside
// the processes.
static void widen(const struct live_need *need, int columns, struct live_layout *layout)
{
	int figures = most(80, columns / 2);
	struct area above = {.x = 0, .y = layout->panels[PANEL_TOTAL].y, .width = columns, .height = 0};
	for (int i = PANEL_TOTAL; i < PANEL_SPANS; i++)
		above.height += layout->panels[i].height;
	struct area graph = right_of(&above, figures);
	for (int i = PANEL_TOTAL; i < PANEL_SPANS; i++)
		layout->panels[i].width = figures;
	if (graph.height >= 3)
		layout->panels[PANEL_GRAPH] = graph;
	if (need->spans > 0)
		layout->panels[PANEL_SPANS] = right_of(&layout->panels[PANEL_PROCESSES], columns * 3 / 5);
}

void live_layout(const struct live_need *need, int columns, int rows, struct live_layout *ret_layout)
{
	int want[PANELS], given[PANELS] = {0};
	columns = most(columns, 0);
	rows = most(rows, 0);
	ret_layout->is_wide = columns >= LAYOUT_WIDE && rows >= 12 && need->past && need->energy;
	wanted(need, columns, rows, ret_layout->is_wide, want);
	share(want, rows, given);
	fill(want, ret_layout->is_wide, rows, given);
	stack(given, columns, ret_layout);
	if (ret_layout->is_wide)
		widen(need, columns, ret_layout);
}
