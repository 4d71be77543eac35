#include "analysis/attribute.h"

#include "base/util.h"

static const struct shares unknown = {.unattributed = 1, .method = METHOD_NONE};

static double measured_power_w(const struct attribution *a, const struct window *window)
{
	return curve_power_w(a->curve, window->segment, window->begin_ns, window->end_ns);
}

/* A baseline measured beforehand and kept would be better; as long as there is none, the run's own quietest moments
 * have to do. They bound the idle power from above: even then a few programs ran. */
double idle_power_w(const struct attribution *a)
{
	static const double busy_share_max = 0.05;
	double lowest_w = (double)NAN;
	for (size_t i = 0; i < a->windows->n; i++) {
		const struct window *window = &a->windows->at[i];
		double busy_share = window->busy_ns / (window->busy_ns + window->idle_ns);
		if (!(busy_share < busy_share_max))
			continue;
		double power_w = measured_power_w(a, window);
		if (power_w > 0 && !(power_w >= lowest_w))
			lowest_w = power_w;
	}
	return lowest_w;
}

static double idle_share(const struct attribution *a, const struct window *window)
{
	double power_w = measured_power_w(a, window);
	if (isnan(a->idle_w) || isnan(power_w))
		return 0;
	return power_w > a->idle_w ? a->idle_w / power_w : 1;
}

static enum method cpu_method(const struct attribution *a)
{
	if (!a->active)
		return METHOD_CPU_TIME;
	return isnan(a->idle_w) ? METHOD_CPU_TIME_NO_BASELINE : METHOD_CPU_TIME_ACTIVE;
}

struct shares shares_cpu(const struct attribution *a, const struct window *window)
{
	if (isnan(window->busy_ns) || isnan(window->target_ns) || isnan(window->wattle_ns))
		return unknown;
	if (!(window->busy_ns > 0))
		return (struct shares){.idle = 1, .method = METHOD_IDLE};
	double idle = idle_share(a, window), busy = 1 - idle;
	return (struct shares){
		.target = busy * window->target_ns / window->busy_ns,
		.wattle = busy * window->wattle_ns / window->busy_ns,
		.idle = idle,
		.method = cpu_method(a),
	};
}
