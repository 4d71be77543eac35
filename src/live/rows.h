/* Which processes stand in the list, and in what order. Pure. */
#pragma once

#include "live/ui.h"
#include "now/now.h"

enum { TREE_DEPTH_MOST = 24 }; // of the lines that are drawn; what lies deeper stands at that depth

struct live_row {
	const struct now_process *process;
	uint32_t trunks; // bit d: at depth d a sibling comes after this branch
	uint8_t depth;   // 0: a root, or no tree
	bool is_last;    // of its siblings
};

struct live_rows {
	struct live_row *rows; // owned
	size_t n, room;
	struct row_node *nodes; // owned scratch
};

// The names of users: a function of whoever knows them; NULL: unknown.
struct user_names {
	const char *(*name_of)(void *data, uid_t uid);
	void *data;
};

void live_rows_finish(struct live_rows *rows);
// Filters and sorts; -ENOMEM, the old rows are gone then. Unknown values come last, also in reverse.
int live_rows_make(struct live_rows *rows, const struct now *now, const struct live_ui *ui,
	const struct user_names *users);
// Makes the moves of the selection and scrolls so that it is seen; the list has `height` rows. Its row is returned, or -1.
int live_rows_select(const struct live_rows *rows, struct live_ui *ui, int height);
double live_sort_value(const struct now_process *process, enum live_sort sort); // NaN unknown
