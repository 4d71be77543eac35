#include "analysis/energy/attribute.h"

#include "base/sums.h"
#include "base/util.h"

#include <errno.h>

// What was read last so far in a segment; neither PSS nor the machine's memory is read at every sample.
struct readings {
	int64_t pss, rss_then, system;
	bool pss_known;
};

// Main and descendants together; VALUE_MISSING if one of them is.
static int64_t both(const struct run *run, enum run_metric main, enum run_metric descendants, size_t sample)
{
	return value_sum(run->values[main][sample], run->values[descendants][sample]);
}

/* PSS is read seldom. It still holds as long as RSS, which every sample has, has moved by less than a tenth since. */
static bool pss_is_fresh(const struct readings *last, int64_t rss_now)
{
	if (!last->pss_known || !value_ok(last->rss_then) || !value_ok(rss_now))
		return last->pss_known;
	return fabs((double)rss_now - (double)last->rss_then) <= 0.1 * (double)rss_now;
}

static void use_at(const struct run *run, size_t sample, struct readings *last, struct memory_use *use)
{
	int64_t rss = both(run, RUN_MAIN_RSS, RUN_DESCENDANTS_RSS, sample);
	int64_t pss = both(run, RUN_MAIN_PSS, RUN_DESCENDANTS_PSS, sample);
	if (value_ok(run->values[RUN_SYSTEM_MEMORY][sample]))
		last->system = run->values[RUN_SYSTEM_MEMORY][sample];
	if (value_ok(pss)) {
		last->pss = pss;
		last->rss_then = rss;
		last->pss_known = true;
	}
	bool fresh = pss_is_fresh(last, rss);
	int64_t target = fresh ? last->pss : rss, wattle = run->values[RUN_SELF_RSS][sample];
	use->method[sample] = fresh ? METHOD_PSS : METHOD_RSS;
	use->target[sample] = (double)NAN;
	if (!value_ok(target) || !value_ok(last->system) || last->system <= 0)
		return;
	use->target[sample] = fmin((double)target / (double)last->system, 1);
	if (value_ok(wattle)) // RSS counts pages that others share; the target comes first
		use->wattle[sample] = fmin((double)wattle / (double)last->system, 1 - use->target[sample]);
}

int memory_use_make(const struct run *run, struct arena *arena, struct memory_use *ret_use)
{
	struct memory_use use = {
		.target = arena_alloc(arena, run->n, sizeof(double)),
		.wattle = arena_alloc(arena, run->n, sizeof(double)),
		.method = arena_alloc(arena, run->n, sizeof(enum method)),
	};
	if (use.target == NULL || use.wattle == NULL || use.method == NULL)
		return -ENOMEM;
	for (size_t s = 0; s < run->n_segments; s++) {
		struct slice samples = slice_samples(run, s);
		struct readings last = {.system = VALUE_MISSING};
		for (size_t i = samples.begin; i < samples.end; i++)
			use_at(run, i, &last, &use);
	}
	*ret_use = use;
	return 0;
}

/* Refresh and standby power follow the memory that is built in, not that in use. They are given to those who hold memory,
 * as a package's standing power is to those who compute: without them the modules would not have to be on. "active" takes
 * that part off first. */
struct shares shares_memory(const struct attribution *a, const struct window *window)
{
	const struct memory_use *use = a->memory;
	struct slice samples = slice_after_near(a->run->t_ns, a->run->n, window->from_ns, window->to_ns, window->first);
	struct shares shares = {.method = METHOD_NONE};
	size_t n = 0;
	for (size_t i = samples.begin; i < samples.end; i++) {
		if (isnan(use->target[i]))
			continue;
		shares.target += use->target[i];
		shares.wattle += use->wattle[i];
		shares.method = use->method[i];
		n++;
	}
	if (n == 0)
		return (struct shares){.unattributed = 1, .method = METHOD_NONE};
	shares.target /= (double)n;
	shares.wattle /= (double)n;
	return shares;
}
