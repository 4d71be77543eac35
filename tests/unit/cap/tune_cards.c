/* Accuracy of the tuner: searches on simulated cards with known optimum: how often the chosen limit is
 * within 3 % of the optimum, how often the intervals contain the true value, how many windows it took.
 *
 * test_cap_tune_cards [SEEDS]     a few seeds by default; docs/appendix/cap-tune.md states results of 1000 */
#include "tune_card.h"

#include "rows.h"

#include <stdlib.h>
#include <string.h>

enum { SECONDS = 30, LIMITS = 8, GOALS = 4, SLOWDOWN_PERCENT = 5 };

static const double NOISE = 0.02, DRIFT = 0.05;
static const double GOOD = 1.03; // of the optimal objective

struct figures_of_goal {
	double searches, good, others, saving_held, slowdown_held, windows, full_windows, slow, slower;
};

static struct {
	int seeds;
	struct figures_of_goal goals[GOALS];
} all = {.seeds = 8};

static double objective(struct truth truth, enum tune_goal goal)
{
	static const double exponents[] = {[TUNE_ED2P] = 2, [TUNE_EDP] = 1, [TUNE_ENERGY] = 0, [TUNE_SLOWDOWN] = 0};
	return truth.energy_j * pow(truth.time_s, exponents[goal]);
}

// The optimum, by exhaustive search.
static double best_objective(const struct card *card, enum tune_goal goal, double high_w, double low_w)
{
	struct truth reference = card_at(card, high_w);
	double best = objective(reference, goal);
	for (double limit_w = low_w; limit_w < high_w; limit_w += 0.1) {
		struct truth truth = card_at(card, limit_w);
		if (goal != TUNE_SLOWDOWN || truth.time_s <= reference.time_s * (1 + SLOWDOWN_PERCENT / 100.0))
			best = fmin(best, objective(truth, goal));
	}
	return best;
}

static bool holds(struct tune_interval interval, double truth)
{
	return truth >= interval.low - 1e-6 && truth <= interval.high + 1e-6;
}

static size_t search(struct tuner *tuner, const struct card *card, struct rng *rng)
{
	struct weather weather = {.noise = NOISE,
		.drift = DRIFT * (2 * dice_uniform(rng) - 1),
		.search_s = 500,
		.phase = 2 * M_PI * dice_uniform(rng)};
	double clock_s = 0, seconds;
	size_t limit, n = 0;
	for (; tuner_next(tuner, &limit, &seconds); n++) {
		struct tune_window window = card_window(card, tuner_limit(tuner, limit), seconds, &weather, &clock_s,
			rng);
		window.limit = limit;
		tuner_add(tuner, &window);
	}
	return n;
}

static void judge(const struct card *card, enum tune_goal goal, const struct tune_result *result, double best,
	struct figures_of_goal *figures)
{
	struct truth reference = card_at(card, result->limits[0].limit), chosen = card_at(card, result->chosen);
	double slowdown = 100 * (chosen.time_s / reference.time_s - 1);
	figures->searches++;
	figures->good += objective(chosen, goal) <= GOOD * best;
	figures->slow += goal == TUNE_SLOWDOWN && slowdown > SLOWDOWN_PERCENT + 0.01;
	figures->slower += goal == TUNE_SLOWDOWN && slowdown > SLOWDOWN_PERCENT + 100 * NOISE;
	if (result->chosen >= result->limits[0].limit)
		return;
	figures->others++;
	figures->saving_held += holds(result->saving_percent, 100 * (1 - chosen.energy_j / reference.energy_j));
	figures->slowdown_held += holds(result->slowdown, slowdown);
}

static struct figures_of_goal search_often(const struct card *card, enum tune_goal goal)
{
	struct figures_of_goal figures = {0};
	double limits[LIMITS];
	size_t n;
	assert_int_equal(tune_candidates(card->min_w, NAN, card->default_w, 30, LIMITS, limits, &n), 0);
	double best = best_objective(card, goal, limits[0], limits[n - 1]);
	for (int seed = 1; seed <= all.seeds; seed++) {
		struct tune_options options = {.goal = goal,
			.slowdown_percent = SLOWDOWN_PERCENT,
			.seconds = SECONDS,
			.seed = (uint64_t)seed,
			.adds_limits = true};
		struct rng rng = rng_init((uint64_t)seed, (uint64_t)(card - cards) * GOALS + goal);
		struct tuner *tuner;
		struct tune_result result;
		struct arena *arena = arena_new();
		assert_int_equal(tuner_new(&options, limits, n, &tuner), 0);
		figures.windows += (double)search(tuner, card, &rng);
		figures.full_windows += (double)(6 * n + 1);
		assert_int_equal(tuner_conclude(tuner, arena, &result), 0);
		assert_true(result.chosen <= limits[0] && result.chosen >= limits[n - 1]);
		judge(card, goal, &result, best, &figures);
		tuner_free(tuner);
		arena_free(arena);
	}
	return figures;
}

static void print_figures(const char *name, enum tune_goal goal, const struct figures_of_goal *figures)
{
	printf("# %-8s %-50s %5.1f %% within 3 %%, saving held %5.1f %%, slowdown %5.1f %%, windows %2.0f %%",
		tune_goal_name(goal), name, 100 * figures->good / figures->searches,
		100 * figures->saving_held / figures->others, 100 * figures->slowdown_held / figures->others,
		100 * figures->windows / figures->full_windows);
	if (goal == TUNE_SLOWDOWN)
		printf(", above the bound %.1f %%, by more than the noise %.1f %%",
			100 * figures->slow / figures->searches, 100 * figures->slower / figures->searches);
	printf("\n");
}

static void add_figures(struct figures_of_goal *sum, const struct figures_of_goal *figures)
{
	double *to = (double *)sum;
	const double *from = (const double *)figures;
	for (size_t i = 0; i < sizeof(*sum) / sizeof(double); i++)
		to[i] += from[i];
}

// The guarantee for each card. Few seeds leave more to chance, though always the same; the totals below have narrower
// bounds.
static void check_card(void **state)
{
	const struct card *card = *state;
	for (enum tune_goal goal = TUNE_ED2P; goal <= TUNE_SLOWDOWN; goal++) {
		struct figures_of_goal figures = search_often(card, goal);
		print_figures(card->teaches, goal, &figures);
		add_figures(&all.goals[goal], &figures);
		bool is_hard = goal == TUNE_SLOWDOWN && card->slowdown_share > 0;
		double least = is_hard ? card->slowdown_share : 0.95, luck = all.seeds < 100 ? 0.2 : 0;
		assert_true(figures.good >= (least - luck) * figures.searches);
	}
}

static const struct goal_row {
	const char *teaches;
	enum tune_goal goal;
	double min_good, min_held, max_windows;
} goal_rows[] = {
	{"ED²P: within 3 % of the optimum, intervals contain the true value, early stopping saves windows", TUNE_ED2P,
		0.97, 0.88, 0.9},
	{"EDP: within 3 % of the optimum, intervals contain the true value, early stopping saves windows", TUNE_EDP,
		0.97, 0.88, 0.85},
	{"energy: within 3 % of the optimum, intervals contain the true value, early stopping saves windows",
		TUNE_ENERGY, 0.97, 0.88, 0.7},
	{"least energy within 5 % of slowdown: within 3 % of the optimum, intervals contain the true value",
		TUNE_SLOWDOWN, 0.91, 0.88, 0.9},
};

static void check_goal(void **state)
{
	const struct goal_row *row = *state;
	const struct figures_of_goal *figures = &all.goals[row->goal];
	print_figures("all", row->goal, figures);
	assert_true(figures->good >= row->min_good * figures->searches);
	assert_true(figures->saving_held >= row->min_held * figures->others);
	assert_true(figures->slowdown_held >= row->min_held * figures->others);
	assert_true(figures->windows <= row->max_windows * figures->full_windows);
	assert_true(figures->slower <= 0.05 * figures->searches);
}

int main(int argc, char **argv)
{
	if (argc > 1 && atoi(argv[1]) > 0)
		all.seeds = atoi(argv[1]);
	struct rows tests = {0};
	ROWS_ADD(&tests, cards, check_card);
	ROWS_ADD(&tests, goal_rows, check_goal);
	return rows_run(&tests, "the tuner on simulated cards");
}
