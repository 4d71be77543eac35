#include "analysis/block/paths.h"

#include "analysis/findings.h"
#include "base/util.h"
#include "span/ring.h"

#include <assert.h>

static_assert((int)STACK_DEPTH_MAX >= (int)SPAN_DEPTH_MAX, "each nesting depth that libwattle allows has a path");

static uint32_t number(struct paths *paths, struct path path)
{
	uint32_t met = paths->keys.n;
	struct path *at = array_reserve(paths->at, met, &paths->capacity, sizeof(*at), 64);
	if (at == NULL)
		return PATH_NONE;
	paths->at = at;
	uint32_t n = keys_number(&paths->keys, keys_pair(path.parent, path.name));
	if (n == met)
		at[n] = path;
	return n;
}

uint32_t paths_root(struct paths *paths, uint32_t label)
{
	return number(paths, (struct path){.parent = PATH_NONE, .name = label});
}

uint32_t paths_child(struct paths *paths, uint32_t parent, uint32_t block)
{
	uint32_t depth = paths->at[parent].depth + 1;
	if (depth > STACK_DEPTH_MAX)
		return parent;
	return number(paths, (struct path){.parent = parent, .name = block, .depth = depth});
}

void paths_finish(struct paths *paths)
{
	keys_finish(&paths->keys);
	free(paths->at);
	*paths = (struct paths){0};
}
