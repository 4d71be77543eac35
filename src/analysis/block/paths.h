/* The distinct stacks of blocks: a tree with the processes as its roots. */
#pragma once

#include "analysis/keys.h"

#include <stdint.h>

enum { PATH_NONE = UINT32_MAX };

struct path {
	uint32_t parent;        // PATH_NONE: a process
	uint32_t name;          // number of the block; for a process, of its label
	uint32_t depth;         // 0: a process
	double self_j, self_ns; // while this was the innermost one
};

struct paths {            // {0} is an empty one
	struct keys keys; // owned
	struct path *at;  // keys.n of them, parents first; owned
	size_t capacity;
};

/* PATH_NONE: no memory. A block below STACK_DEPTH_MAX counts for its parent, which limits the length of anything made
 * from a path. */
uint32_t paths_root(struct paths *paths, uint32_t label);
uint32_t paths_child(struct paths *paths, uint32_t parent, uint32_t block);
void paths_finish(struct paths *paths);
