/* Cumulative figures at instants in ascending order: the target's energy by domain with its error, and its CPU time.
 *
 * Each code block needs only a few instants, and one instant often ends a block and begins another. Each instant is
 * therefore computed once and kept while it is held. */
#pragma once

#include "analysis/energy/attribute.h"
#include "analysis/energy/domains.h"

enum { CHECKPOINT_NONE = UINT32_MAX };

struct checkpoint {
	int64_t t_ns;
	double target_j;               // cumulative, over all domains in the total
	double cpu_ns, cpu_unknown_ns; // cumulative CPU time of the target; cumulative time for which it is unknown
	uint32_t held;                 // reference count
	uint32_t next_free;
};

struct checkpoints {
	const struct findings *findings;
	struct attribution_walk *walks; // same index as findings.domains; attribution NULL: the domain's energy is unknown
	bool any_energy;                // whether a domain in the total has a known energy
	struct cpu_walk {
		const struct windows *windows;
		size_t index, taken; // index of the window; number of windows processed
		struct window window;
		double before_ns, unknown_before_ns;
	} cpu;
	struct checkpoint *at;            // n entries; owned
	struct attribution_point *points; // findings.n_domains per moment; owned
	size_t n, capacity;
	uint32_t free, now;
	struct checkpoint_uncertainty {
		struct edge_uncertainty edge,
			imbalance; // errors from the counter's update times, and from uneven computing
				   // within a window
	} * uncertainties;         // per domain, from `doubted` until now; the latest result
	uint32_t uncertain_from;   // CHECKPOINT_NONE: no result cached
};

int checkpoints_init(struct checkpoints *checkpoints, const struct findings *findings, const struct metering *metering,
	const struct windows *windows, struct arena *arena); // -ENOMEM
void checkpoints_finish(struct checkpoints *checkpoints);
// Advances to the next instant, which must not precede the current one. -ENOMEM.
int checkpoints_go_to(struct checkpoints *checkpoints, int64_t t_ns);

// Holds the current moment until checkpoints_release.
static inline uint32_t checkpoints_hold(struct checkpoints *checkpoints)
{
	checkpoints->at[checkpoints->now].held++;
	return checkpoints->now;
}
void checkpoints_release(struct checkpoints *checkpoints, uint32_t checkpoint);

static inline const struct checkpoint *checkpoints_current(const struct checkpoints *checkpoints)
{
	return &checkpoints->at[checkpoints->now];
}
// Adds the error of the interval from a moment until now, times `fraction`, to the errors of each domain in the total.
void checkpoints_add_errors(struct checkpoints *checkpoints, uint32_t since, double fraction,
	struct part_error *errors);
// The point of one domain at a moment. The domain's energy must be known.
static inline const struct attribution_point *checkpoints_point(const struct checkpoints *checkpoints,
	uint32_t checkpoint, size_t domain)
{
	return &checkpoints->points[checkpoint * checkpoints->findings->n_domains + domain];
}
