/* How join.c and join_link.c make a domain's curve together. */
#pragma once

#include "analysis/job/parts.h"

struct piece { // one recorder's readings, without a long pause
	size_t member, device;
	const struct run_device *from;
	struct slice rows;
	size_t segment;
	int64_t from_ns, to_ns; // of its first and last reading
};

struct joining {
	const struct job_work *work;
	const struct machine *machine;
	struct joined *domain;
	struct arena *scratch;
	struct piece *pieces; // n_pieces
	size_t n_pieces;
	int64_t hole_ns;
	bool counts; // there is a counter that somebody read

	// what has been joined so far
	const struct piece *last;
	size_t last_row;  // of its last reading
	int64_t total_uj; // there
	int64_t first_ns; // the first reading of all
};

static inline const struct run *joining_run(const struct joining *j, size_t member)
{
	return &j->work->members[member].from->run;
}

// Adds the joules from the last reading so far to a row of the next piece, or says that they are not known. -ENOMEM.
int joining_link(struct joining *j, const struct piece *next, size_t row);
void joining_count(struct joining *joining, int64_t delta_uj); // adds to what was counted so far
int joining_add(struct joining *j, struct event event); // of this domain, whatever its name was; -ENOMEM
int joining_event(struct joining *j, int64_t t_ns, enum event_type type);
