/* Results of `wattle cap tune`, if this is the run file of a search. */
#include "report/section/sections.h"

#include "base/arena.h"
#include "report/cap_report.h"

#include <stdio.h>

static const char KEY[] = "cap_tune"; // docs/run-file.md

void section_tune(const struct part *part)
{
	const char *stored = run_metadata(part->run, KEY);
	struct arena *arena = stored != NULL ? arena_new() : NULL;
	struct cap_tune_report *reports;
	size_t n;
	if (arena == NULL)
		return;
	if (cap_tune_read(stored, arena, &reports, &n) == 0) {
		section_begin(part, "tune", "Search for the best power limit");
		for (size_t i = 0; i < n; i++)
			cap_tune_part(&reports[i], part->out, i, "h3");
		section_end(part);
	}
	arena_free(arena);
}
