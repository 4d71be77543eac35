#include "analysis/energy/attribute.h"

#include "base/util.h"

/* PSS is read rarely. A value stays valid until RSS, which every sample has, has changed by more than a tenth. */
static bool pss_is_fresh(const struct memory_walk *last, int64_t rss_now)
{
	if (!last->pss_known || !value_ok(last->rss_at_pss) || !value_ok(rss_now))
		return last->pss_known;
	return fabs((double)rss_now - (double)last->rss_at_pss) <= 0.1 * (double)rss_now;
}

struct memory_use {
	double target, wattle; // target NaN: unknown
	enum method method;    // METHOD_PSS or METHOD_RSS
};

static struct memory_use use_next(const struct run *run, struct memory_walk *last)
{
	size_t sample = last->next++;
	for (; last->segment < run->n_segments && slice_samples(run, last->segment).begin <= sample; last->segment++)
		*last = (struct memory_walk){.next = last->next, .segment = last->segment, .system = VALUE_MISSING};
	int64_t rss = run_sum(run, RUN_MAIN_RSS, RUN_DESCENDANTS_RSS, sample);
	int64_t pss = run_sum(run, RUN_MAIN_PSS, RUN_DESCENDANTS_PSS, sample);
	int64_t system = run_value(run, RUN_SYSTEM_MEMORY, sample);
	if (value_ok(system))
		last->system = system;
	if (value_ok(pss)) {
		last->pss = pss;
		last->rss_at_pss = rss;
		last->pss_known = true;
	}
	bool fresh = pss_is_fresh(last, rss);
	int64_t target = fresh ? last->pss : rss, wattle = run_value(run, RUN_SELF_RSS, sample);
	struct memory_use use = {.target = (double)NAN, .method = fresh ? METHOD_PSS : METHOD_RSS};
	if (!value_ok(target) || !value_ok(last->system) || last->system <= 0)
		return use;
	use.target = fmin((double)target / (double)last->system, 1);
	if (value_ok(wattle)) // RSS counts shared pages repeatedly; the target takes precedence
		use.wattle = fmin((double)wattle / (double)last->system, 1 - use.target);
	return use;
}

/* Refresh and standby power depend on the installed memory, not on the memory in use. They are attributed to the
 * programs that hold memory, as a package's static power is to the programs that compute: without them the modules
 * would not have to be powered. "active" subtracts that part first. */
struct shares shares_memory(const struct attribution *a, const struct window *window, struct memory_walk *walk)
{
	struct slice samples = slice_after_near(a->run->t_ns, a->run->n, window->from_ns, window->to_ns, window->first);
	struct shares shares = {.method = METHOD_NONE};
	size_t n = 0;
	while (walk->next < samples.end) {
		bool is_inside = walk->next >= samples.begin;
		struct memory_use use = use_next(a->run, walk);
		if (!is_inside || isnan(use.target))
			continue;
		shares.target += use.target;
		shares.wattle += use.wattle;
		shares.method = use.method;
		n++;
	}
	if (n == 0)
		return (struct shares){.unattributed = 1, .method = METHOD_NONE};
	shares.target /= (double)n;
	shares.wattle /= (double)n;
	return shares;
}
