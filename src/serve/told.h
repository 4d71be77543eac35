/* Rows of metrics that come and go with what they tell of: the jobs, or the cgroups, of this machine. Pure.
 *
 * There are never more than so many, whatever runs here: those beyond are summed up as "other", and what is in none of them is the
 * "rest", so each joule that processes were attributed counts in one row. Counters begin at 0 with the job and never fall; what a row
 * told stays told until everybody who scrapes has got it, ended or not. */
#pragma once

#include "base/fields.h"
#include "now/now.h"
#include "serve/ration.h"

#include <jansson.h>

enum { TOLD_USER_SIZE = 64 };

enum told_state {
	TOLD_NOT, // has no row: what it uses counts as "other"
	TOLD_HERE,
	TOLD_LEAVING // has a row still, in which nothing is counted any more, until it has been scraped
};

struct told_row {
	char name[NOW_GROUP_SIZE];
	char user[TOLD_USER_SIZE]; // of a job; "": not known, or not yet
	enum told_state state;
	bool is_here;                   // it has processes
	uint64_t last_look;             // the last at which it had
	int64_t looks;                  // at how many it had
	double energy_j[NOW_RESOURCES]; // counted while it was told
	double cpu_s;
	double recent_j;    // what it used of late: who has much gets a row
	uint64_t left_look; // LEAVING: since which look, and when that was
	int64_t left_ns;
	struct now_group now; // its gauges, while it is here
	uint32_t hash;
};

struct told_table {
	enum now_grouping grouping;
	size_t most;            // rows of those that are here; as many may be leaving. 0: nothing is wanted
	struct told_row *items; // owned
	size_t n, room;
	double other_j[NOW_RESOURCES], other_cpu_s; // of those without a row
	double rest_j[NOW_RESOURCES], rest_cpu_s;   // of what is in none
	int64_t swapped_ns;
	struct ration ration;
};

// What everybody has got who is to get it: whatever was last told at this look, and before this time.
struct told_seen {
	uint64_t look;
	int64_t t_ns;
};

// What was told in an earlier life of ours (look 0) has been seen by nobody in this one.
static inline bool told_was_seen(const struct told_seen *seen, uint64_t left_look, int64_t left_ns)
{
	return left_look > 0 && left_look <= seen->look && left_ns <= seen->t_ns;
}

void told_init(struct told_table *table, enum now_grouping grouping, size_t most);
void told_finish(struct told_table *table);
void told_look(struct told_table *table, const struct now *now, uint64_t look);
void told_forget(struct told_table *table, const struct told_seen *seen);
// False: the row is not to be told (yet): a job of which it is not known whose it is.
bool told_has_row(const struct told_table *table, const struct told_row *row);

/* ---- over restarts (told_state.c) ---- */

extern const struct object_type told_type; // data: struct told_table
void told_read(struct told_table *table, const json_t *object); // whatever of it can be used
struct told_row *told_add(struct told_table *table,
	const char *name); // the one of this name, made if need be; NULL: no memory
