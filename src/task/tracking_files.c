#include "task/task.h"

#include <errno.h>

int tracking_files_blocks(const char *tracking_file, const char *sub_tracking_file, struct arena *arena,
	struct tracking_findings *ret_findings, struct wattle_error *reterr)
{
	struct tracking_table *table = NULL;
	struct sub_tracking_call *calls;
	size_t n;
	int r = 0;
	if (tracking_file != NULL) {
		table = arena_alloc(arena, 1, sizeof(*table));
		r = table != NULL ? tracking_table_read(tracking_file, arena, table, reterr)
				  : error_set(reterr, -ENOMEM, "%s: out of memory", tracking_file);
	}
	if (r == 0)
		r = sub_tracking_read(sub_tracking_file, arena, &calls, &n, NULL, reterr);
	if (r < 0)
		return r;
	r = tracking_blocks_make(table, calls, n, arena, ret_findings);
	return r < 0 ? error_set(reterr, r, "%s: out of memory", sub_tracking_file) : 0;
}
