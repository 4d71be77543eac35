/* Cumulative figures at instants in ascending order: the target's energy by domain with its error, and its CPU time.
 *
 * Each code block needs only a few instants, and one instant often ends a block and begins another. Each instant is
 * therefore computed once and kept while it is held. */
#pragma once

#include "analysis/energy/attribute.h"
#include "analysis/energy/domains.h"

enum { MOMENT_NONE = UINT32_MAX };

struct moment {
	int64_t t_ns;
	double target_j;               // cumulative, over all domains in the total
	double cpu_ns, cpu_unknown_ns; // cumulative CPU time of the target; cumulative time for which it is unknown
	uint32_t held;                 // reference count
	uint32_t next_free;
};

struct moments {
	const struct findings *findings;
	struct attribution_walk *walks; // same index as findings.domains; attribution NULL: the domain's energy is unknown
	bool any_energy;                // whether a domain in the total has a known energy
	struct cpu_walk {
		const struct windows *windows;
		size_t index, taken; // index of the window; number of windows processed
		struct window window;
		double before_ns, unknown_before_ns;
	} cpu;
	struct moment *at;                // n entries; owned
	struct attribution_point *points; // findings.n_domains per moment; owned
	size_t n, capacity;
	uint32_t free, now;
	struct moment_doubt {
		struct edge_doubt edge, uneven; // errors from the counter's update times, and from uneven computing
						// within a window
	} *doubts;        // per domain, from `doubted` until now; the latest result
	uint32_t doubted; // MOMENT_NONE: no result cached
};

int moments_init(struct moments *moments, const struct findings *findings, const struct metering *metering,
	const struct windows *windows, struct arena *arena); // -ENOMEM
void moments_finish(struct moments *moments);
// Advances to the next instant, which must not precede the current one. -ENOMEM.
int moments_go_to(struct moments *moments, int64_t t_ns);

// Holds the current moment until moments_let_go.
static inline uint32_t moments_hold(struct moments *moments)
{
	moments->at[moments->now].held++;
	return moments->now;
}
void moments_let_go(struct moments *moments, uint32_t moment);

static inline const struct moment *moments_now(const struct moments *moments)
{
	return &moments->at[moments->now];
}
// Adds the error of the interval from a moment until now, times `fraction`, to the errors of each domain in the total.
void moments_add_errors(struct moments *moments, uint32_t since, double fraction, struct part_error *errors);
// The point of one domain at a moment. The domain's energy must be known.
static inline const struct attribution_point *moments_point(const struct moments *moments, uint32_t moment,
	size_t domain)
{
	return &moments->points[moment * moments->findings->n_domains + domain];
}
