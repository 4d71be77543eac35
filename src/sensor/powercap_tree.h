/* Every zone of a powercap tree exactly once, whatever the tree's shape. Knows folders, not energy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ZONE_LEVELS_MAX = 6 };

struct zone {
	char id[64];                  // name of its folder: "intel-rapl:0:1"
	char path[160];               // of its folder, relative to the root
	char name[40];                // text of its `name` file: "dram"; "" if that is empty
	char type[32];                // control type: "intel-rapl"
	uint32_t at[ZONE_LEVELS_MAX]; // 0, 1
	size_t n_levels;
	int parent; // index in the list, -1: top level or not there
};

struct zone_list {
	struct zone *zones; // owned; by type, then by number, so that a parent stands before its children
	size_t n, capacity;
};

// A tree that is missing, empty or odd gives fewer zones, not an error; -ENOMEM only. *ret_list is always valid.
int zone_list_find(int root_fd, struct zone_list *ret_list);
// Drops the zones that `wanted` says no to; parents that are dropped leave their children at the top level.
void zone_list_keep(struct zone_list *list, bool (*wanted)(const struct zone *zone));
void zone_list_finish(struct zone_list *list);
