/* Forecast of the remaining steps: the mean amount per step times their number.
 *
 * The past is divided into groups of about equally many steps. The mean amount per step in a group is the sum of a
 * constant level, a random walk, a line, and noise. The strengths of walk and line relative to the noise are unknown. A
 * forecast is made for each pair of strengths in a list, and the forecasts are mixed by the likelihood of the groups
 * under each (restricted likelihood), as in cap/tune. Steady steps then get a narrow interval, and a barely visible
 * drift gets a wide one. */
#include "analysis/forecast/internal.h"

#include "base/cholesky.h"
#include "base/util.h"

enum { GROUPS = 24, MIN_GROUPS = 6 };

// Variance of the walk from one group to the next, and of the line from first to last, relative to a group's noise
// variance.
static const double walks[] = {0, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 100}, lines[] = {0, 10, 100, 1000};
// Prior probability of a walk and of a line.
static const double WALK_PRIOR = 0.2, LINE_PRIOR = 0.1;
enum { WALKS = ARRAY_SIZE(walks), LINES = ARRAY_SIZE(lines), MODELS = WALKS * LINES };

static const double MIN_WARM_UP = 0.2; // relative to a step: a smaller difference counts as drift

struct groups {
	size_t n;
	double steps[GROUPS], rate[GROUPS]; // amount per step
	double at[GROUPS];                  // middle of the group, scaled to 0 … 1
	double all_steps;
};

struct part { // component of the mixture: Student's t distribution
	double mean, deviation, weight;
};

/* ---- groups ---- */

static struct groups make_groups(const struct interval *intervals, size_t n)
{
	struct groups groups = {0};
	double amount[GROUPS] = {0}, all = 0, done = 0;
	size_t wanted = n < GROUPS ? n : GROUPS;
	for (size_t i = 0; i < n; i++)
		all += intervals[i].steps;
	for (size_t i = 0; i < n; i++) {
		size_t group = (size_t)((done + intervals[i].steps / 2) / all * (double)wanted);
		group = group < wanted ? group : wanted - 1;
		bool is_next = groups.n == 0 || group >= groups.n;
		if (is_next)
			groups.n++;
		groups.steps[groups.n - 1] += intervals[i].steps;
		amount[groups.n - 1] += intervals[i].amount;
		done += intervals[i].steps;
	}
	groups.all_steps = all;
	done = 0;
	for (size_t g = 0; g < groups.n; g++) {
		groups.rate[g] = amount[g] / groups.steps[g];
		groups.at[g] = (done + groups.steps[g] / 2) / all;
		done += groups.steps[g];
	}
	return groups;
}

/* ---- warm-up ---- */

struct fit {
	double weight, mean_x, mean_y, xx, xy, yy;
};

static struct fit fit_groups(const struct groups *groups, size_t from, size_t to)
{
	struct fit fit = {0};
	for (size_t g = from; g < to; g++) {
		double w = groups->steps[g], dx = groups->at[g] - fit.mean_x, dy = groups->rate[g] - fit.mean_y;
		fit.weight += w;
		fit.mean_x += dx * w / fit.weight;
		fit.mean_y += dy * w / fit.weight;
		fit.xx += w * dx * (groups->at[g] - fit.mean_x);
		fit.xy += w * dx * (groups->rate[g] - fit.mean_y);
		fit.yy += w * dy * (groups->rate[g] - fit.mean_y);
	}
	return fit;
}

// Noise around a level: the differences of neighbours are about as large as those of any two groups (von Neumann's
// ratio).
static bool is_flat(const struct groups *groups, size_t from)
{
	double mean = 0, apart = 0, away = 0, n = (double)(groups->n - from);
	for (size_t g = from; g < groups->n; g++)
		mean += groups->rate[g] / n;
	for (size_t g = from; g < groups->n; g++) {
		away += (groups->rate[g] - mean) * (groups->rate[g] - mean);
		apart += g > from ? (groups->rate[g] - groups->rate[g - 1]) * (groups->rate[g] - groups->rate[g - 1])
				  : 0;
	}
	return apart >= away;
}

/* Number of initial groups that were a different phase: two levels fit all groups clearly better than one level and
 * better than a line. The cut is where the remainder determines its level best (MSER: White 1997). */
static size_t find_warm_up(const struct groups *groups)
{
	struct fit whole = fit_groups(groups, 0, groups->n);
	double line = whole.yy - (whole.xx > 0 ? whole.xy * whole.xy / whole.xx : 0), best = (double)INFINITY;
	size_t cut = 0;
	for (size_t g = 1; g <= groups->n / 2 && groups->n - g >= MIN_GROUPS; g++) {
		struct fit rest = fit_groups(groups, g, groups->n);
		double score = rest.yy / (rest.weight * rest.weight);
		if (score < best) {
			best = score;
			cut = g;
		}
	}
	if (cut == 0)
		return 0;
	struct fit head = fit_groups(groups, 0, cut), rest = fit_groups(groups, cut, groups->n);
	double two = head.yy + rest.yy, n = (double)groups->n;
	if (fabs(head.mean_y - rest.mean_y) < MIN_WARM_UP * rest.mean_y)
		return 0;
	double min_gain = exp(3 * log(n) / n); // 1.5 × Schwarz's criterion for a second level and its position
	return two * min_gain < whole.yy && two < line && is_flat(groups, cut) ? cut : 0;
}

static void drop_warm_up(struct groups *groups, size_t cut)
{
	double gone = 0;
	for (size_t g = 0; g < cut; g++)
		gone += groups->steps[g];
	double scale = groups->all_steps / (groups->all_steps - gone), shift = gone / groups->all_steps;
	groups->n -= cut;
	groups->all_steps -= gone;
	for (size_t g = 0; g < groups->n; g++) {
		groups->steps[g] = groups->steps[g + cut];
		groups->rate[g] = groups->rate[g + cut];
		groups->at[g] = (groups->at[g + cut] - shift) * scale;
	}
}

/* ---- one pair of strengths ---- */

// Covariance of walk and line at two scaled times; the line is 0 in the middle of the past.
static double covariance(double walk, double line, double a, double b)
{
	return walk * fmin(a, b) + line * (a - 0.5) * (b - 0.5);
}

/* Kriging: the best linear forecast of the mean over the remaining time, with an unknown level. `ahead` is the
 * remaining time relative to the past. weight gets the logarithm of the likelihood. */
static struct part forecast_with(const struct groups *groups, double walk, double line, double ahead,
	double noise_ahead)
{
	size_t n = groups->n;
	double v[GROUPS * GROUPS], to[GROUPS], ones[GROUPS], rates[GROUPS], solved[GROUPS];
	double group_steps = groups->all_steps / (double)n;
	walk *= (double)n; // from the variance per group to that over the whole past
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j <= i; j++)
			v[i * n + j] = covariance(walk, line, groups->at[i], groups->at[j]);
		v[i * n + i] += group_steps / groups->steps[i];
		to[i] = covariance(walk, line, groups->at[i], 1) + line * (groups->at[i] - 0.5) * ahead / 2;
		ones[i] = 1;
		rates[i] = groups->rate[i];
		solved[i] = groups->rate[i];
	}
	double middle = 0.5 + ahead / 2, own = walk * (1 + ahead / 3) + line * middle * middle + noise_ahead;
	if (!cholesky_factor(v, n))
		return (struct part){0, 0, -(double)INFINITY};
	double log_determinant = 0;
	for (size_t i = 0; i < n; i++)
		log_determinant += 2 * log(v[i * n + i]);
	double known[GROUPS];
	for (size_t i = 0; i < n; i++)
		known[i] = to[i];
	cholesky_solve(v, n, known);
	cholesky_solve(v, n, ones);
	double information = 0, of_to = 0, sum = 0;
	for (size_t i = 0; i < n; i++) {
		information += ones[i];
		of_to += known[i];
		sum += ones[i] * rates[i];
	}
	double level = sum / information;
	for (size_t i = 0; i < n; i++)
		solved[i] -= level;
	double mean = level + dot_product(known, solved, n);
	double residual[GROUPS];
	for (size_t i = 0; i < n; i++)
		residual[i] = solved[i];
	cholesky_solve(v, n, solved);
	double squares = dot_product(residual, solved, n), degrees = (double)(n - 1);
	squares = fmax(squares, fmax(1e-18 * level * level, 1e-300)); // lower limit for data without scatter: rounding
								      // error of doubles
	double variance = own - dot_product(to, known, n) + (1 - of_to) * (1 - of_to) / information;
	return (struct part){
		.mean = mean,
		.deviation = sqrt(fmax(variance, 0) * squares / degrees),
		.weight = -0.5 * (log_determinant + log(information) + degrees * log(squares)),
	};
}

/* ---- the mixture ---- */

// Student's distribution by a normal approximation (Wallace 1959), error about 0.002.
static double t_below(double t, double degrees)
{
	double z = sqrt(degrees * log1p(t * t / degrees)) * (8 * degrees + 1) / (8 * degrees + 3);
	return 0.5 * erfc(-copysign(z, t) / M_SQRT2);
}

static double mixture_below(const struct part *parts, size_t n, double degrees, double x)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		if (parts[i].deviation > 0)
			sum += parts[i].weight * t_below((x - parts[i].mean) / parts[i].deviation, degrees);
		else
			sum += x >= parts[i].mean ? parts[i].weight : 0;
	return sum;
}

static double mixture_quantile(const struct part *parts, size_t n, double degrees, double share)
{
	double low = parts[0].mean, high = low, spread = 0;
	for (size_t i = 0; i < n; i++) {
		low = fmin(low, parts[i].mean);
		high = fmax(high, parts[i].mean);
		spread = fmax(spread, parts[i].deviation);
	}
	low -= 40 * spread;
	high += 40 * spread;
	for (int i = 0; i < 45; i++) { // to 1e-12 of the spread
		double middle = low + (high - low) / 2;
		if (mixture_below(parts, n, degrees, middle) < share)
			low = middle;
		else
			high = middle;
	}
	return high;
}

// Moves components with a significant weight to the front; returns their number.
static size_t set_weights(struct part *parts, size_t n)
{
	static const double least = 1e-4;
	double most = -(double)INFINITY, all = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, parts[i].weight);
	for (size_t i = 0; i < n; i++) {
		double prior = (i / LINES > 0 ? WALK_PRIOR / (WALKS - 1) : 1 - WALK_PRIOR) *
			(i % LINES > 0 ? LINE_PRIOR / (LINES - 1) : 1 - LINE_PRIOR);
		parts[i].weight = prior * exp(parts[i].weight - most);
		all += parts[i].weight;
	}
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		parts[i].weight /= all;
		if (parts[i].weight >= least)
			parts[kept++] = parts[i];
	}
	return kept;
}

struct estimate rate_estimate(const struct interval *intervals, size_t n, double steps_to_come)
{
	struct groups groups = make_groups(intervals, n);
	drop_warm_up(&groups, find_warm_up(&groups));
	struct part parts[MODELS];
	double ahead = steps_to_come / groups.all_steps;
	double noise_ahead = groups.all_steps / (double)groups.n / steps_to_come;
	for (size_t i = 0; i < MODELS; i++)
		parts[i] = forecast_with(&groups, walks[i / LINES], lines[i % LINES], ahead, noise_ahead);
	size_t kept = set_weights(parts, MODELS);
	double degrees = (double)(groups.n - 1);
	return (struct estimate){
		.mean = fmax(mixture_quantile(parts, kept, degrees, 0.5), 0) * steps_to_come,
		.low = fmax(mixture_quantile(parts, kept, degrees, 0.025), 0) * steps_to_come,
		.high = fmax(mixture_quantile(parts, kept, degrees, 0.975), 0) * steps_to_come,
	};
}
