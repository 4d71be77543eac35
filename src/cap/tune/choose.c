/* Which limit: the least of the model that foretells limits best which it has not seen, if it is as good as the measurements;
 * else the best measured one. */
#include "cap/tune/figures.h"

#include "base/util.h"

// Against the reference, of the objective: less is no gain.
static const double EQUAL = 0.005;

static const double CROSS_VALIDATED = 4; // mean square of what limits are foretold wrong by, in their own noise: at most
static const double FITTED = 2.5;        // the same for limits that the model has seen
static const double CONTRADICTED = 2;    // standard errors

static const char NOTHING[] = "no limit saves anything that could be measured: the reference stays";

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

// The least of the model over the grid; of equal ones the highest limit.
static size_t least_of(const struct figures *figures, const struct model *model)
{
	size_t best = 0;
	double least = model_at(model, 1);
	for (size_t g = 1; g < figures->n_grid; g++) {
		double value = model_at(model, figures->grid[g] / figures->limit[0]);
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

static double residual_of(const struct model *model, const struct figures *figures)
{
	double sum = 0;
	for (size_t i = 0; i < figures->n; i++)
		sum += pow(figures->y[i] - model_at(model, figures->x[i]), 2);
	return sqrt(sum / (double)figures->n);
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

static struct choice choose_by_objective(struct figures *figures)
{
	struct model_points points = figures_points(figures);
	struct choice choice = {.why = ""};
	if (!best_model(&points, &choice.model))
		return choose_measured(figures, "no model foretells a limit from the others: the best measured limit");
	if (model_loss(&choice.model, &points) > FITTED)
		return choose_measured(figures, "the models fit worse than the measurements scatter: the best measured limit");
	choice.residual = residual_of(&choice.model, figures);
	choice.at = least_of(figures, &choice.model);
	size_t best = best_measured(figures);
	double least = model_at(&choice.model, figures->grid[choice.at] / figures->limit[0]);
	if (least > figures->y[best] + CONTRADICTED * figures->s[best])
		return choose_measured(figures, "the model's best limit is worse than a measured one, which is taken");
	if (model_at(&choice.model, 1) - least < EQUAL) {
		choice.at = 0;
		choice.why = NOTHING;
	}
	return choice;
}

static double residual_of_curve(const struct figures *figures)
{
	double sum = 0;
	for (size_t i = 0; i < figures->n; i++)
		sum += pow(figures->log[TUNE_E][i] - figures_curve(figures, TUNE_E, figures->grid_of[i]), 2);
	return sqrt(sum / (double)figures->n);
}

struct choice choose(struct figures *figures)
{
	if (figures->goal != TUNE_SLOWDOWN)
		return choose_by_objective(figures);
	struct choice choice = {.model = {.kind = TUNE_SPLINE_MODEL}, .residual = residual_of_curve(figures), .why = ""};
	choice.at = choose_within_bound(figures);
	if (-figures_curve(figures, TUNE_E, choice.at) < EQUAL) {
		choice.at = 0;
		choice.why = "no limit within the bound saves anything that could be measured: the reference stays";
	}
	return choice;
}

double choice_curve(const struct figures *figures, const struct choice *choice, size_t at)
{
	if (choice->model.kind == TUNE_NO_MODEL)
		return (double)NAN;
	if (choice->model.kind == TUNE_SPLINE_MODEL)
		return figures_curve(figures, TUNE_E, at);
	return model_at(&choice->model, figures->grid[at] / figures->limit[0]);
}
