/* Processes summed up by job and by cgroup. */
#pragma once

#include "now/processes.h"

struct group_table {
	const struct wattle_env *env; // borrowed
	bool wanted[NOW_GROUPINGS];
	struct now_group *groups[NOW_GROUPINGS]; // owned; a process_row holds index + 1; free rows have no processes
	size_t n[NOW_GROUPINGS], room[NOW_GROUPINGS];
	char *scratch; // owned; NULL: nothing is wanted
};

int group_table_open(struct group_table *table, const struct now_options *options); // -ENOMEM
void group_table_close(struct group_table *table);
// After the processes were read: finds out who belongs where, of those that are new and of a few others, for some move.
void group_table_look(struct group_table *table, struct process_table *processes);
// After everything was divided.
void group_table_sum(struct group_table *table, const struct process_table *processes);
