/* What is known of instants, asked for in ascending order: the target's energy by domain with its error, and its CPU time.
 *
 * Code blocks are told from a handful of instants each, and an instant often begins one thing and ends another; so it is
 * measured once, and kept as long as somebody holds it. */
#pragma once

#include "analysis/energy/attribute.h"
#include "analysis/energy/domains.h"

enum { MOMENT_NONE = UINT32_MAX };

struct moment {
	int64_t t_ns;
	double target_j;               // up to here, of all domains in the total
	double cpu_ns, cpu_unknown_ns; // of the target up to here; time for which that is not known
	uint32_t held;                 // how often
	uint32_t next_free;
};

struct moments {
	const struct findings *findings;
	struct attribution_walk *walks; // as findings.domains; attribution NULL: the domain's energy is not known
	bool any_energy;                // of a domain in the total
	struct cpu_walk {
		const struct windows *windows;
		size_t index, taken; // of the window; how many were looked at
		struct window window;
		double before_ns, unknown_before_ns;
	} cpu;
	struct moment *at;                // n of them; owned
	struct attribution_point *points; // findings.n_domains for each; owned
	size_t n, capacity;
	uint32_t free, now;
	struct moment_doubt {
		struct edge_doubt edge, uneven; // of the counter's updates; of when within a window the target computed
	} *doubts;        // of each domain, from `doubted` until now; the latest ones asked for
	uint32_t doubted; // MOMENT_NONE: none were
};

int moments_init(struct moments *moments, const struct findings *findings, const struct metering *metering,
	const struct windows *windows, struct arena *arena); // -ENOMEM
void moments_finish(struct moments *moments);
// The next instant, now; not before the one before. -ENOMEM.
int moments_go_to(struct moments *moments, int64_t t_ns);

// Keeps what is now until it is let go.
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
// Adds the error of the time from a moment until now, `fraction` of it, to those of each domain in the total.
void moments_add_errors(struct moments *moments, uint32_t since, double fraction, struct part_error *errors);
// Of a domain, whose energy must be known.
static inline const struct attribution_point *moments_point(const struct moments *moments, uint32_t moment,
	size_t domain)
{
	return &moments->points[moment * moments->findings->n_domains + domain];
}
