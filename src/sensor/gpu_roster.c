#include "sensor/gpu_roster.h"

#include "base/buf.h"
#include "base/util.h"

#include <errno.h>

int gpu_roster_open(struct gpu_roster *roster, const char *list, struct wattle_error *reterr)
{
	*roster = (struct gpu_roster){.list = list, .arena = arena_new()};
	return roster->arena != NULL ? 0 : error_set(reterr, -ENOMEM, "out of memory");
}

void gpu_roster_close(struct gpu_roster *roster)
{
	arena_free(roster->arena);
	free(roster->all);
	*roster = (struct gpu_roster){0};
}

int gpu_roster_next(const struct gpu_roster *roster)
{
	return (int)roster->n;
}

int gpu_roster_add(struct gpu_roster *roster, const struct gpu_candidate *candidates, size_t n, bool *ret_selected)
{
	return 0;
}

int gpu_roster_check(const struct gpu_roster *roster, struct wattle_error *reterr)
{
	return 0;
}
