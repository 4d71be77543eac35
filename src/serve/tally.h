/* What counting came to since it began, over restarts too: energy by whose it is, jobs, cgroups, processes. What the metrics tell besides the last
 * look. */
#pragma once

#include "serve/pids.h"
#include "serve/scrapers.h"
#include "serve/told.h"

struct tally {
	struct now_added sums[NOW_RESOURCES];
	struct told_table groups[NOW_GROUPINGS];
	struct pid_table processes;
	struct scrapers scrapers; // who has been told
	int64_t since_wall_ns;    // Unix time; VALUE_MISSING: not known yet
};

struct tally_options {
	size_t most[NOW_GROUPINGS]; // rows; 0: none
	size_t most_processes;
	enum now_arguments arguments; // of kept processes: as the looks show them
};

void tally_init(struct tally *tally, const struct tally_options *options);
void tally_finish(struct tally *tally);
void tally_look(struct tally *tally, const struct now *now, uint64_t look);
void tally_forget(struct tally *tally, const struct told_seen *seen);
// Parts of an object, and back; whatever can't be read counts from 0.
extern const struct object_type tally_type; // data: struct tally
void tally_read(struct tally *tally, const json_t *object, bool same_boot, int64_t t_ns);
// Over all resources.
struct now_added tally_sum(const struct tally *tally);
