#include "cap/tune/internal.h"

#include "base/util.h"

#include <errno.h>

static const struct goal_row {
	const char *title, *unit;
	double time_exponent;
} goals[] = {
	[TUNE_ED2P] = {"ED²P", "J·s²", 2},
	[TUNE_EDP] = {"EDP", "J·s", 1},
	[TUNE_ENERGY] = {"energy", "J", 0},
	[TUNE_SLOWDOWN] = {"energy", "J", 0},
};

const char *const tune_goal_names[] = {
	[TUNE_ED2P] = "ed2p",
	[TUNE_EDP] = "edp",
	[TUNE_ENERGY] = "energy",
	[TUNE_SLOWDOWN] = "slowdown",
	NULL,
};

const char *tune_goal_name(enum tune_goal goal)
{
	return tune_goal_names[goal];
}

const char *tune_goal_title(enum tune_goal goal)
{
	return goals[goal].title;
}

const char *tune_goal_unit(enum tune_goal goal)
{
	return goals[goal].unit;
}

double tune_time_exponent(enum tune_goal goal)
{
	return goals[goal].time_exponent;
}

const char *const tune_model_names[] = {
	[TUNE_NO_MODEL] = "none",
	[TUNE_SEED_MODEL] = "exp+sigmoid",
	[TUNE_CONVEX_MODEL] = "convex",
	[TUNE_SPLINE_MODEL] = "spline",
	NULL,
};

const char *tune_model_name(enum tune_model model)
{
	return tune_model_names[model];
}

int tune_candidates(double min, double max, double default_, double from_percent, size_t n, double *ret_values,
	size_t *ret_n)
{
	if (!(default_ > 0 && isfinite(default_)) || !(from_percent > 0 && from_percent <= 100) || n < 2)
		return -ERANGE;
	double top = isnan(max) ? default_ : fmin(default_, max), bottom = default_ * from_percent / 100;
	if (!isnan(min))
		bottom = fmax(bottom, min);
	if (!(bottom < top))
		return -ERANGE;
	// Evenly spaced from the default downwards; values below the device's minimum become the minimum, which is
	// listed once.
	double step = default_ * (1 - from_percent / 100) / (double)(n - 1);
	size_t count = 0;
	for (size_t i = 0; i < n; i++) {
		double value = i == n - 1 ? bottom : fmax(fmin(default_ - step * (double)i, top), bottom);
		if (count == 0 || value < ret_values[count - 1])
			ret_values[count++] = value;
	}
	*ret_n = count;
	return 0;
}
