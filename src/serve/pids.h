/* Processes that have rows of their own in the metrics: those that use most, a bounded number, and what has ended of them until everybody
 * who scrapes has got it. A row passes on rarely, because each is a new series for whoever scrapes. Counters go on over restarts. Pure. */
#pragma once

#include "base/fields.h"
#include "now/now.h"
#include "serve/told.h"

#include <jansson.h>

enum {
	PIDS_SPARE = 4
}; // so many times `most` are remembered that live and have no row any more, should they get one again

struct pid_row {
	struct now_process now; // as it was last seen; is_gone: it has ended
	enum told_state state;  // NOT: it lives, and what it was told is remembered
	double recent;          // what it used of late: watts, or cores where nothing is metered
	uint64_t left_look;     // LEAVING: since which look, and when that was; 0: in an earlier life of ours
	int64_t left_ns;
	int64_t worked_ns, named_ns;
};

struct pid_table {
	size_t most; // rows of those that live; as many may be leaving. 0: none are wanted
	enum now_arguments arguments;
	struct pid_row *items; // owned
	size_t n, room;
	struct ration ration;
	int64_t swapped_ns;
};

void pids_init(struct pid_table *table, size_t most, enum now_arguments arguments);
void pids_finish(struct pid_table *table);
void pids_look(struct pid_table *table, const struct now *now, uint64_t look);
void pids_forget(struct pid_table *table, const struct told_seen *seen);

/* ---- over restarts (pids_state.c) ---- */

extern const struct object_type pids_type; // data: struct pid_table
// Whether somebody's row would be the same series: a number came to another process like the one that has ended.
bool pids_is_taken(const struct pid_table *table, const struct pid_row *but, pid_t pid, const char *command);
// same_boot: what lived then may live still.
void pids_read(struct pid_table *table, const json_t *array, bool same_boot);
// Whose counters go on, ascending by pid: owned by the caller. NULL: nobody's, or no memory.
struct now_kept_process *pids_kept(const struct pid_table *table, size_t *ret_n);
