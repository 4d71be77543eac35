/* Positions of all parts, over all sizes of a terminal. */
#include "live/session.h"

#include "base/util.h"
#include "rows.h"

static const struct need_row {
	const char *teaches;
	struct live_need need;
} need_rows[] = {
	{"a laptop", {.domains = 5, .processes = 300, .energy = true, .past = true}},
	{"a virtual machine with one estimated package",
		{.domains = 1, .processes = 100, .energy = true, .past = true}},
	{"no energy, and a filter that no process matches", {.domains = 0, .processes = 0, .past = true}},
	{"eight GPUs, two packages, a run with many spans",
		{.domains = 24, .processes = 5000, .spans = 600, .target = true, .energy = true, .past = true}},
	{"a target of one process", {.domains = 3, .processes = 1, .target = true, .energy = true, .past = true}},
	{"single picture: no history",
		{.domains = 5, .processes = 300, .spans = 3, .target = true, .energy = true}},
	{"more domains than any screen has rows",
		{.domains = 10000, .processes = 10000, .spans = 10000, .energy = true, .past = true}},
};

static bool is_inside(struct area area, int columns, int rows)
{
	return area.x >= 0 && area.y >= 0 && area.width >= 0 && area.height >= 0 && area.x + area.width <= columns &&
		area.y + area.height <= rows;
}

static bool overlap(struct area a, struct area b)
{
	return a.width > 0 && a.height > 0 && b.width > 0 && b.height > 0 && a.x < b.x + b.width &&
		b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

static void check_size(const struct live_need *need, int columns, int rows)
{
	struct live_layout layout;
	live_layout(need, columns, rows, &layout);
	int covered = 0;
	for (int i = 0; i < PANELS; i++) {
		struct area area = layout.panels[i];
		if (!is_inside(area, columns, rows))
			fail_msg("%d x %d: panel %d is outside: %d,%d %d x %d", columns, rows, i, area.x, area.y,
				area.width, area.height);
		for (int j = 0; j < i; j++)
			if (overlap(area, layout.panels[j]))
				fail_msg("%d x %d: panels %d and %d overlap", columns, rows, i, j);
		covered += area.height > 0 ? area.width * area.height : 0;
	}
	if (covered > columns * rows)
		fail_msg("%d x %d: more cells than there are", columns, rows);
	if (rows >= 1 && layout.panels[PANEL_TOTAL].height != 1)
		fail_msg("%d x %d: the watts of the machine are not shown", columns, rows);
	if (rows >= 5 && layout.panels[PANEL_KEYS].height != 1)
		fail_msg("%d x %d: the keys are not shown", columns, rows);
	if (rows >= 3 && need->processes > 0 && layout.panels[PANEL_PROCESSES].height < 2)
		fail_msg("%d x %d: no process is shown", columns, rows);
	if (rows >= 24 && need->domains > 0 && layout.panels[PANEL_DOMAINS].height == 0)
		fail_msg("%d x %d: no domain is shown", columns, rows);
	if (rows >= 24 && need->target && layout.panels[PANEL_TARGET].height == 0)
		fail_msg("%d x %d: the target is not shown", columns, rows);
	if (rows >= 24 && need->spans > 0 && layout.panels[PANEL_SPANS].height < 2)
		fail_msg("%d x %d: no span is shown", columns, rows);
	if (!need->energy && layout.panels[PANEL_LEGEND].height + layout.panels[PANEL_GRAPH].height > 0)
		fail_msg("%d x %d: a graph of nothing", columns, rows);
	if (!need->past && layout.panels[PANEL_GRAPH].height > 0)
		fail_msg("%d x %d: a past that is not there", columns, rows);
	if (layout.panels[PANEL_GRAPH].height > 0 && layout.panels[PANEL_GRAPH].height < 3)
		fail_msg("%d x %d: a graph of %d rows says nothing", columns, rows, layout.panels[PANEL_GRAPH].height);
}

static void check_need(void **state)
{
	const struct need_row *row = *state;
	for (int rows = 0; rows <= 110; rows++)
		for (int columns = 0; columns <= 310; columns += columns < 40 ? 1 : 3)
			check_size(&row->need, columns, rows);
}

static const struct size_row {
	const char *teaches;
	int columns, rows;
	struct live_need need;
	int heights[PANELS];
	bool is_wide;
} size_rows[] = {
	{"20 x 5: power, keys and three rows of processes", 20, 5,
		{.domains = 5, .processes = 100, .energy = true, .past = true},
		{[PANEL_HEAD] = 1, [PANEL_TOTAL] = 1, [PANEL_KEYS] = 1, [PANEL_PROCESSES] = 2}, false},
	{"80 x 24: all five domains, a graph, nine processes", 80, 24,
		{.domains = 5, .processes = 100, .energy = true, .past = true},
		{[PANEL_HEAD] = 1,
			[PANEL_TOTAL] = 1,
			[PANEL_LEDGER] = 1,
			[PANEL_LEGEND] = 1,
			[PANEL_MACHINE] = 1,
			[PANEL_DOMAINS] = 5,
			[PANEL_GRAPH] = 4,
			[PANEL_PROCESSES] = 9,
			[PANEL_KEYS] = 1},
		false},
	{"120 x 40 with spans: above the processes", 120, 40,
		{.domains = 3, .processes = 100, .spans = 4, .target = true, .energy = true, .past = true},
		{[PANEL_HEAD] = 1,
			[PANEL_TOTAL] = 1,
			[PANEL_LEDGER] = 1,
			[PANEL_LEGEND] = 1,
			[PANEL_MACHINE] = 1,
			[PANEL_TARGET] = 1,
			[PANEL_DOMAINS] = 3,
			[PANEL_SPANS] = 5,
			[PANEL_GRAPH] = 9,
			[PANEL_PROCESSES] = 16,
			[PANEL_KEYS] = 1},
		false},
	{"200 x 50: graph beside the figures, spans beside the processes", 200, 50,
		{.domains = 3, .processes = 100, .spans = 4, .target = true, .energy = true, .past = true},
		{[PANEL_HEAD] = 1,
			[PANEL_TOTAL] = 1,
			[PANEL_LEDGER] = 1,
			[PANEL_LEGEND] = 1,
			[PANEL_MACHINE] = 1,
			[PANEL_TARGET] = 1,
			[PANEL_DOMAINS] = 10,
			[PANEL_SPANS] = 33,
			[PANEL_GRAPH] = 15,
			[PANEL_PROCESSES] = 33,
			[PANEL_KEYS] = 1},
		true},
};

static void check_heights(void **state)
{
	const struct size_row *row = *state;
	struct live_layout layout;
	live_layout(&row->need, row->columns, row->rows, &layout);
	assert_int_equal(layout.is_wide, row->is_wide);
	for (int i = 0; i < PANELS; i++)
		if (layout.panels[i].height != row->heights[i])
			fail_msg("panel %d has %d rows, expected %d", i, layout.panels[i].height, row->heights[i]);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, need_rows, check_need);
	ROWS_ADD(&tests, size_rows, check_heights);
	return rows_run(&tests, "layout");
}
