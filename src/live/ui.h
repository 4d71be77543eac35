/* What the person at the keys has chosen, and what a key changes in it. */
#pragma once

#include "live/graph.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum live_sort { SORT_POWER, SORT_ENERGY, SORT_CPU, SORT_MEMORY, SORT_GPU, SORT_GPU_MEMORY, SORT_PID, SORTS };
const char *live_sort_name(enum live_sort sort); // "power", "energy" …
int live_sort_from_name(const char *name);       // or -EINVAL

enum { FILTER_SIZE = 64 };

struct live_ui {
	enum live_sort sort;
	bool reverse, tree, only_target, paused, help, editing, no_spans;
	bool has_target; // there is one to show alone
	enum graph_style style;
	char filter[FILTER_SIZE]; // part of a command, user or pid; "" none
	pid_t selected;           // 0: none
	int moves;                // of the selection, not made yet; the drawing knows how far a page is
	int pages;
	int first; // row of the list that stands at its top
	int shift; // columns by which commands are moved to the left
	int64_t interval_ns;
};

/* Keys that are no characters; characters are their code points. */
enum live_key {
	KEY_CODE_UP = 0x200000,
	KEY_CODE_DOWN,
	KEY_CODE_LEFT,
	KEY_CODE_RIGHT,
	KEY_CODE_PAGE_UP,
	KEY_CODE_PAGE_DOWN,
	KEY_CODE_HOME,
	KEY_CODE_END,
	KEY_CODE_ERASE,
	KEY_CODE_ENTER,
	KEY_CODE_ESCAPE,
	KEY_CODE_HELP,
	KEY_CODE_QUIT,
	KEY_CODE_REDRAW
};

enum live_action { ACTION_NONE, ACTION_DRAW, ACTION_REDRAW /* from an empty screen */, ACTION_QUIT };
enum live_action live_key(struct live_ui *ui, uint32_t key);

/* The keys as help and the last line tell them. */
struct live_key_row {
	const char *keys, *brief, *does; // brief NULL: not in the last line
};
extern const struct live_key_row live_keys[];
extern const size_t n_live_keys;
