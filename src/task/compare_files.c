#include "task/compare_files.h"

#include "base/util.h"
#include "task/load_blocks.h"

#include <errno.h>

int compare_files(const struct named_file *files, size_t n, const char *statistic, struct arena *arena,
	struct comparison *ret_comparison, struct wattle_error *reterr)
{
	struct compare_session *sessions = arena_alloc(arena, n, sizeof(*sessions));
	struct saved_blocks *results = arena_alloc(arena, n, sizeof(*results));
	if (sessions == NULL || results == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		int r = load_blocks(files[i].file, statistic, arena, &results[i], reterr);
		if (r < 0)
			return r;
		sessions[i] = (struct compare_session){files[i].name, &results[i]};
	}
	return compare_make(sessions, n, arena, ret_comparison, reterr);
}
