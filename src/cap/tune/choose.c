/* Chooses the limit. First choice: the minimum of the model that best predicts limits it has not seen, if it is as good
 * as the measurements. Second: the minimum of the smooth curves, if it is lower. Otherwise the best measured limit. */
#include "cap/tune/internal.h"

#include "base/cholesky.h"
#include "base/util.h"

// Minimum gain in the objective, relative to the reference.
static const double EQUAL = 0.005;
static const double DOUBTFUL = 0.01; // minimum gain if the limits do not differ significantly

static const double CROSS_VALIDATED =
	4;                        // maximum mean square error of predicted limits, in units of their noise variance
static const double FITTED = 2.5; // the same for limits used in the fit
static const double SURE = 1.645; // one-sided 95 % quantile of the normal distribution

static const char NOTHING[] = "no limit saves a measurable amount: the reference is kept";

static const char ALIKE[] = "the limits differ by no more than the measurement noise: the reference is kept";

static const char HARDLY[] =
	"the limits hardly differ by more than the measurement noise: use longer windows";

static const char BETTER[] = "smooth curves of energy and time give a better limit than the models: that limit is used";

static size_t best_measured(const struct figures *figures)
{
	size_t best = 0;
	for (size_t i = 1; i < figures->n; i++)
		if (figures->y[i] < figures->y[best])
			best = i;
	return best;
}

static bool may_be_chosen(const struct figures *figures, size_t at)
{
	double limit = figures->grid[at];
	return limit == floor(limit) || at == 0 || at + 1 == figures->n_grid;
}

// Index of the model's minimum over the grid; of equal values the highest limit.
static size_t min_of(const struct figures *figures, const struct choice *choice)
{
	size_t best = 0;
	double least = choice_curve(figures, choice, 0);
	for (size_t g = 1; g < figures->n_grid; g++) {
		double value = choice_curve(figures, choice, g);
		if (value < least - 1e-12 && may_be_chosen(figures, g)) {
			best = g;
			least = value;
		}
	}
	return best;
}

static bool best_model(const struct model_points *points, struct model *ret_model)
{
	static const enum tune_model kinds[] = {TUNE_SEED_MODEL, TUNE_CONVEX_MODEL};
	double least = CROSS_VALIDATED;
	bool found = false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct model model;
		if (!model_fit(kinds[i], points, points->n, NULL, &model))
			continue;
		double loss = model_cross_validate(&model, points);
		if (!(loss < least))
			continue;
		least = loss;
		*ret_model = model;
		found = true;
	}
	return found;
}

// Weighted standard deviation of the limits about the model.
static double residual_of(const struct figures *figures, const struct choice *choice)
{
	double sum = 0, weights = 0;
	for (size_t i = 0; i < figures->n; i++) {
		double weight = pow(figures->s[0] / figures->s[i], 2);
		sum += weight * pow(figures->y[i] - choice_curve(figures, choice, figures->grid_of[i]), 2);
		weights += weight;
	}
	return sqrt(sum / weights);
}

static struct choice choose_measured(const struct figures *figures, const char *why)
{
	struct choice choice = {.residual = (double)NAN, .why = why};
	choice.at = figures->grid_of[best_measured(figures)];
	if (figures->y[0] - figures->y[best_measured(figures)] < EQUAL) {
		choice.at = 0;
		choice.why = NOTHING;
	}
	return choice;
}

/* Whether the limits do not differ: F test of all limits against one common level, with Paulson's approximation of the
 * quantile. */
static bool all_alike(const struct figures *figures, struct arena *arena)
{
	size_t n = figures->n;
	double *factor = arena_alloc(arena, n * n, sizeof(*factor)), *ones = arena_alloc(arena, n, sizeof(*ones));
	double *y = arena_alloc(arena, n, sizeof(*y));
	if (figures->degrees < 3 || factor == NULL || ones == NULL || y == NULL)
		return false;
	memcpy(factor, figures->shape, n * n * sizeof(*factor));
	memcpy(y, figures->y, n * sizeof(*y));
	for (size_t i = 0; i < n; i++)
		ones[i] = 1;
	if (!cholesky_factor(factor, n))
		return false;
	cholesky_solve(factor, n, ones);
	cholesky_solve(factor, n, y);
	double weight = 0, level = 0, squares = 0;
	for (size_t i = 0; i < n; i++) {
		weight += ones[i];
		level += ones[i] * figures->y[i];
		squares += y[i] * figures->y[i];
	}
	double above = (double)(n - 1), below = (double)figures->degrees;
	double f = (squares - level * level / weight) / above / figures->noise_of_objective;
	double a = 2 / (9 * above), b = 2 / (9 * below), root = cbrt(fmax(f, 0));
	return (1 - b) * root - (1 - a) < SURE * sqrt(b * root * root + a);
}

static struct choice choose_by_objective(const struct figures *figures, struct arena *arena)
{
	struct model_points points = figures_points(figures);
	struct choice choice = {.why = ""};
	if (!best_model(&points, &choice.model))
		return choose_measured(figures,
			"no model predicts a limit from the others: the best measured limit is used");
	if (model_loss(&choice.model, &points) > FITTED)
		return choose_measured(figures,
			"the models fit worse than the measurement noise: the best measured limit is used");
	choice.at = min_of(figures, &choice);
	struct choice smooth = {.model = {.kind = TUNE_SPLINE_MODEL}, .why = BETTER};
	smooth.at = min_of(figures, &smooth);
	if (choice_curve(figures, &smooth, choice.at) - choice_curve(figures, &smooth, smooth.at) > EQUAL)
		choice = smooth;
	choice.residual = residual_of(figures, &choice);
	double gain = choice_curve(figures, &choice, 0) - choice_curve(figures, &choice, choice.at);
	bool alike = all_alike(figures, arena);
	if (gain < EQUAL || (gain < DOUBTFUL && alike)) {
		choice.at = 0;
		choice.why = gain < EQUAL ? NOTHING : ALIKE;
	} else if (alike) {
		choice.why = HARDLY;
	}
	return choice;
}

struct choice choose(const struct figures *figures, struct arena *arena)
{
	if (figures->goal != TUNE_SLOWDOWN)
		return choose_by_objective(figures, arena);
	struct choice choice = {.model = {.kind = TUNE_SPLINE_MODEL}};
	choice.residual = residual_of(figures, &choice);
	choice.at = choose_within_bound(figures);
	choice.why = "the bound applies to the fitted curve of time; its error is in the interval of the slowdown";
	if (-figures_curve(figures, TUNE_E, choice.at) < EQUAL) {
		choice.at = 0;
		choice.why = "no limit within the bound saves a measurable amount: the reference is kept";
	}
	return choice;
}

double choice_curve(const struct figures *figures, const struct choice *choice, size_t at)
{
	if (choice->model.kind == TUNE_NO_MODEL)
		return (double)NAN;
	if (choice->model.kind == TUNE_SPLINE_MODEL)
		return figures_curve(figures, TUNE_E, at) + figures->time_exponent * figures_curve(figures, TUNE_T, at);
	return model_at(&choice->model, figures->grid[at] / figures->limit[0]);
}
