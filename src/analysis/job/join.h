/* Shared by join.c and join_link.c, which build a domain's curve. */
#pragma once

#include "analysis/job/internal.h"

struct reading_run { // one recorder's readings, without a long pause
	size_t member, device;
	const struct run_device *from;
	struct slice rows;
	size_t segment;
	int64_t from_ns, to_ns; // times of its first and last reading
};

struct joining {
	const struct job_work *work;
	const struct machine *machine;
	struct joined *domain;
	struct arena *scratch;
	struct reading_run *reading_runs; // n_reading_runs
	size_t n_reading_runs;
	int64_t hole_ns;
	bool counts; // a recorder read a counter

	// state of the join so far
	const struct reading_run *last;
	size_t last_row;  // row of the last reading
	int64_t total_uj; // energy at that row
	int64_t first_ns; // time of the very first reading
};

static inline const struct run *joining_run(const struct joining *j, size_t member)
{
	return &j->work->members[member].from->run;
}

// Adds the energy from the last joined reading to a row of the next piece, or marks it as unknown. -ENOMEM.
int joining_link(struct joining *j, const struct reading_run *next, size_t row);
void joining_count(struct joining *joining, int64_t delta_uj); // adds to total_uj
int joining_add(struct joining *j, struct event event); // adds an event of this domain, whatever its name was; -ENOMEM
int joining_event(struct joining *j, int64_t t_ns, enum event_type type);
