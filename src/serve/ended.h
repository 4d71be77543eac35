/* Processes that have ended and were not scraped since: those with the most energy of them. Pure. */
#pragma once

#include "serve/told.h"

struct ended_process {
	struct now_process now; // as it was last seen
	uint64_t look;          // at which it was gone, and when that was
	int64_t t_ns;
};

struct ended_list {
	size_t most;                 // 0: none are wanted
	struct ended_process *items; // owned
	size_t n;
};

int ended_init(struct ended_list *list, size_t most); // -ENOMEM
void ended_finish(struct ended_list *list);
void ended_look(struct ended_list *list, const struct now *now, uint64_t look);
void ended_forget(struct ended_list *list, const struct told_seen *seen);
// Whether a row of this process would be the same series as that of one which has ended: its number came to another like it.
bool ended_has(const struct ended_list *list, const struct now_process *process);
