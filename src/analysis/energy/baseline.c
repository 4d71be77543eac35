/* The idle power that --attribution active subtracts. A stored baseline, measured while the machine was provably idle
 * and kept with its date, is best. Without one the run's own quietest windows are used; they are an upper bound of the
 * idle power, because a few programs ran even then. */
#include "analysis/energy/attribute.h"

#include "base/util.h"

static const double busy_share_max = 0.05;
// Relative error of a baseline whose error was not measured.
static const double relative_error_stored = 0.05, relative_error_seen = 0.1;

static double measured_power_w(const struct attribution *a, const struct window *window)
{
	return curve_power_w(a->curve, window->segment, window->begin_ns, window->end_ns);
}

static bool is_quiet(const struct attribution *a, const struct window *window)
{
	if (a->device->kind == DOMAIN_GPU || a->device->kind == DOMAIN_GPU_MEMORY)
		return shares_gpu(a, window).method == METHOD_IDLE;
	return window->busy_ns / (window->busy_ns + window->idle_ns) < busy_share_max;
}

static double lowest_quiet_power_w(const struct attribution *a)
{
	double lowest_w = (double)NAN;
	for (size_t i = 0; i < a->windows->n; i++) {
		struct window window = windows_at(a->windows, i);
		if (!is_quiet(a, &window))
			continue;
		double power_w = measured_power_w(a, &window);
		if (power_w > 0 && !(power_w >= lowest_w))
			lowest_w = power_w;
	}
	return lowest_w;
}

void baseline_make(struct attribution *a)
{
	a->idle_w = a->idle_error_w = (double)NAN;
	a->baseline = BASELINE_NOT_ASKED;
	if (!a->active)
		return;
	if (a->device->idle_w > 0) {
		double stated_w = a->device->idle_error_w;
		a->baseline = BASELINE_STORED;
		a->idle_w = a->device->idle_w;
		a->idle_error_w = stated_w > 0 ? stated_w : relative_error_stored * a->idle_w;
		return;
	}
	a->idle_w = lowest_quiet_power_w(a);
	a->idle_error_w = relative_error_seen * a->idle_w;
	a->baseline = isnan(a->idle_w) ? BASELINE_UNKNOWN : BASELINE_SEEN;
}

double baseline_share(const struct attribution *a, const struct window *window)
{
	if (isnan(a->idle_w))
		return 0;
	double power_w = measured_power_w(a, window);
	if (isnan(power_w))
		return 0;
	return power_w > a->idle_w ? a->idle_w / power_w : 1;
}
