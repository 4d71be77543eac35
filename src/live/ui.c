#include "live/session.h"

#include "base/util.h"

#include <errno.h>

static const char *const sort_names[SORTS] = {
	[SORT_POWER] = "power",
	[SORT_ENERGY] = "energy",
	[SORT_CPU] = "cpu",
	[SORT_MEMORY] = "memory",
	[SORT_GPU] = "gpu",
	[SORT_GPU_MEMORY] = "gpu-memory",
	[SORT_PID] = "pid",
};

const char *live_sort_name(enum live_sort sort)
{
	return sort_names[sort];
}

int live_sort_from_name(const char *name)
{
	for (int i = 0; i < SORTS; i++)
		if (strcmp(name, sort_names[i]) == 0)
			return i;
	return -EINVAL;
}

const struct live_key_row live_keys[] = {
	{"q", "quit", "quit; so do Ctrl-C and F10"},
	{"p e c m g", "sort", "sort by power, energy, CPU, memory, GPU"},
	{"M n s", NULL, "sort by GPU memory, by process id; by the next column"},
	{"r", "reverse", "reverse the order"},
	{"t", "tree", "processes as a tree, branches sorted by their sum"},
	{"/", "filter", "filter by text in command, user or process ID; Escape: all"},
	{"a", "all", "all processes, or those of the target only"},
	{"b", "graph", "graphs in braille dots, blocks or ASCII"},
	{"o", NULL, "hide or show open spans"},
	{"+ -", NULL, "shorter or longer interval"},
	{"space", "pause", "freeze the display"},
	{"up down", NULL, "select a process; so do PgUp, PgDn, Home, End; Escape: none"},
	{"left right", NULL, "scroll the commands sideways"},
	{"Ctrl-L", NULL, "redraw the screen"},
	{"?", "help", "this help; so do h and F1"},
};
const size_t n_live_keys = ARRAY_SIZE(live_keys);

static const struct {
	uint32_t key;
	enum live_sort sort;
} sort_keys[] = {{'p', SORT_POWER}, {'P', SORT_POWER}, {'e', SORT_ENERGY}, {'E', SORT_ENERGY}, {'c', SORT_CPU},
	{'C', SORT_CPU}, {'m', SORT_MEMORY}, {'M', SORT_GPU_MEMORY}, {'g', SORT_GPU}, {'G', SORT_GPU}, {'n', SORT_PID},
	{'N', SORT_PID}};

static bool *toggle_of(struct live_ui *ui, uint32_t key)
{
	switch (key) {
	case 'r':
		return &ui->reverse;
	case 't':
		return &ui->tree;
	case 'o':
		return &ui->no_spans;
	case ' ':
		return &ui->paused;
	case '?':
	case 'h':
	case KEY_CODE_HELP:
		return &ui->help;
	case 'a':
		return ui->has_target ? &ui->only_target : NULL;
	default:
		return NULL;
	}
}

/* ---- filter ---- */

static void filter_add(struct live_ui *ui, uint32_t rune)
{
	char bytes[5] = {0};
	size_t n = rune < 0x80 ? 1 : rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4, length = strlen(ui->filter);
	static const uint32_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = n - 1; i > 0; i--, rune >>= 6)
		bytes[i] = (char)(0x80 | (rune & 0x3f));
	bytes[0] = (char)(leads[n] | rune);
	if (length + n < sizeof(ui->filter))
		memcpy(ui->filter + length, bytes, n + 1);
}

static void filter_erase(struct live_ui *ui)
{
	size_t length = strlen(ui->filter);
	while (length > 0 && ((unsigned char)ui->filter[length - 1] & 0xc0) == 0x80)
		length--;
	ui->filter[length > 0 ? length - 1 : 0] = '\0';
}

static enum live_action edit(struct live_ui *ui, uint32_t key)
{
	if (key == KEY_CODE_ERASE) {
		filter_erase(ui);
	} else if (key == KEY_CODE_ENTER) {
		ui->editing = false;
	} else if (key == KEY_CODE_ESCAPE) {
		ui->editing = false;
		ui->filter[0] = '\0';
	} else if (key >= ' ' && key <= 0x10ffff) {
		filter_add(ui, key);
	} else {
		return ACTION_NONE;
	}
	ui->first = 0;
	return ACTION_DRAW;
}

/* ---- other keys ---- */

static bool move(struct live_ui *ui, uint32_t key)
{
	enum { SHIFT = 8, SHIFT_MAX = 1024, FAR = 1 << 24 };
	switch (key) {
	case KEY_CODE_UP:
	case 'k':
		ui->moves--;
		return true;
	case KEY_CODE_DOWN:
	case 'j':
		ui->moves++;
		return true;
	case KEY_CODE_PAGE_UP:
		ui->pages--;
		return true;
	case KEY_CODE_PAGE_DOWN:
		ui->pages++;
		return true;
	case KEY_CODE_HOME:
		ui->moves = -FAR;
		ui->shift = 0;
		return true;
	case KEY_CODE_END:
		ui->moves = FAR;
		return true;
	case KEY_CODE_LEFT:
		ui->shift = ui->shift > SHIFT ? ui->shift - SHIFT : 0;
		return true;
	case KEY_CODE_RIGHT:
		ui->shift += ui->shift < SHIFT_MAX ? SHIFT : 0;
		return true;
	default:
		return false;
	}
}

static void change_interval(struct live_ui *ui, bool more_often)
{
	static const int64_t steps_ms[] = {100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000};
	enum { N = ARRAY_SIZE(steps_ms) };
	for (size_t i = 0; i < N; i++) {
		int64_t up = steps_ms[i] * NS_PER_MS, down = steps_ms[N - 1 - i] * NS_PER_MS;
		if (more_often ? down < ui->interval_ns : up > ui->interval_ns) {
			ui->interval_ns = more_often ? down : up;
			return;
		}
	}
}

static bool sort_by(struct live_ui *ui, uint32_t key)
{
	for (size_t i = 0; i < ARRAY_SIZE(sort_keys); i++)
		if (key == sort_keys[i].key) {
			ui->sort = sort_keys[i].sort;
			return true;
		}
	return false;
}

static enum live_action escape(struct live_ui *ui)
{
	if (ui->help) {
		ui->help = false;
	} else if (ui->filter[0] != '\0') {
		ui->filter[0] = '\0';
	} else {
		ui->selected = 0;
		ui->first = 0;
	}
	return ACTION_DRAW;
}

enum live_action live_key(struct live_ui *ui, uint32_t key)
{
	if (key == KEY_CODE_QUIT)
		return ACTION_QUIT;
	if (key == KEY_CODE_REDRAW)
		return ACTION_REDRAW;
	if (ui->editing)
		return edit(ui, key);
	if (key == KEY_CODE_ESCAPE)
		return escape(ui);
	bool *toggle = toggle_of(ui, key);
	if (toggle != NULL) {
		*toggle = !*toggle;
		return ACTION_DRAW;
	}
	if (sort_by(ui, key) || move(ui, key))
		return ACTION_DRAW;
	switch (key) {
	case 'q':
	case 'Q':
		return ACTION_QUIT;
	case 's':
		ui->sort = (enum live_sort)((ui->sort + 1) % SORTS);
		return ACTION_DRAW;
	case 'b':
		ui->style = (enum graph_style)((ui->style + 1) % GRAPH_STYLES);
		return ACTION_DRAW;
	case '/':
		ui->editing = true;
		return ACTION_DRAW;
	case '+':
	case '-':
		change_interval(ui, key == '+');
		return ACTION_DRAW;
	default:
		return ACTION_NONE;
	}
}
