/* A block's share of an interval hangs on when exactly the updates came: 1 ms off, and a block of 1 ms moves from one
 * interval to the next. The readings alone tell that to some milliseconds. But only with the right times do the equations
 * agree: taken 0.1 ms wrong, what they leave unexplained is ten times as much. So the times are those with which the
 * best powers meet the equations best, among all that the readings allow. */
#include "analysis/fold_build.h"

#include "base/util.h"

enum { ROWS_COARSE = 300, ROWS_FINE = 600, TRIES_MAX = 1200, PARTS_MAX = 200, SHARP_RANK = 3 };
static const double coarse_step_s = 5e-4, fine_step_s = 1e-5, coarse_blur_s = 5e-4;
static const double sharp_s = 5e-5; // better known than that, there is nothing to search
static const double blurs_s[] = {0, 2e-4, 5e-4, 1e-3, 2e-3, 3.5e-3, 6e-3};

struct search {
	struct fold_model *model;
	struct fold_segment *segment;
	size_t rows;
	struct fold_timing best;
	double misfit;
};

static bool try_timing(struct search *search, struct fold_timing timing)
{
	fold_times(&search->segment->updates, &timing, search->segment->t_s);
	search->segment->blur_s = timing.blur_s;
	double misfit = fold_misfit(search->model, search->rows);
	if (!(misfit < search->misfit))
		return false;
	search->misfit = misfit;
	search->best = timing;
	return true;
}

static void again(struct search *search, size_t rows)
{
	struct fold_timing timing = search->best;
	search->rows = rows;
	search->misfit = INFINITY;
	try_timing(search, timing);
}

// A timing that is later by so much at the first update, and so much more at the last one looked at.
static struct fold_timing shifted(const struct search *search, struct fold_timing timing, double late_s, double more_s)
{
	const struct fold_updates *u = &search->segment->updates;
	size_t n = u->n < search->rows ? u->n : search->rows;
	if (!timing.regular) {
		timing.part += late_s / fmax(u->within_s[n / 2], sharp_s);
		timing.part = fmax(-1, fmin(timing.part, 1));
		return timing;
	}
	double periods = (u->t_s[n - 1] - u->t_s[0]) / timing.period_s;
	double stretch_s = more_s / fmax(periods, 1);
	timing.period_s += stretch_s;
	timing.phase_s += late_s - stretch_s * (u->t_s[0] - timing.phase_s) / timing.period_s;
	return timing;
}

static void climb(struct search *search, double step_s)
{
	static const int directions[][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1}, {1, -2}, {-1, 2}};
	for (; step_s > fine_step_s; step_s /= 2) {
		bool moved = true;
		for (int round = 0; moved && round < 20; round++) {
			moved = false;
			for (size_t i = 0; i < ARRAY_SIZE(directions); i++)
				moved |= try_timing(search, shifted(search, search->best, directions[i][0] * step_s,
								 directions[i][1] * step_s));
		}
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// The few updates that are known best are known as well as this.
static double sharpest_s(const struct search *search, double *scratch)
{
	const struct fold_updates *u = &search->segment->updates;
	size_t n = u->n < ROWS_FINE ? u->n : ROWS_FINE;
	memcpy(scratch, u->within_s, n * sizeof(*scratch));
	qsort(scratch, n, sizeof(*scratch), by_value);
	return scratch[n > SHARP_RANK ? SHARP_RANK : n - 1];
}

static void search_parts(struct search *search, double within_s)
{
	struct fold_timing timing = {.blur_s = coarse_blur_s};
	try_timing(search, timing);
	if (within_s < sharp_s)
		return;
	int parts = (int)fmin(2 * within_s / coarse_step_s, PARTS_MAX) / 2 + 1;
	for (int i = -parts; i <= parts; i++) {
		timing.part = (double)i / parts;
		try_timing(search, timing);
	}
}

static void search_grids(struct search *search, const struct fold_timing *rhythms, size_t n, double within_s)
{
	if (n == 0)
		return;
	double reach_s = fmin(fmax(within_s, 2e-3) + 1e-3, rhythms[0].period_s / 2);
	int reach = (int)(reach_s / coarse_step_s), tries = (2 * reach + 1) * 5;
	for (size_t r = 0; r < n && ((int)r + 1) * tries <= TRIES_MAX + tries; r++) {
		struct fold_timing rhythm = rhythms[r];
		rhythm.blur_s = coarse_blur_s;
		for (int more = -2; more <= 2; more++)
			for (int late = -reach; late <= reach; late++)
				try_timing(search, shifted(search, rhythm, late * coarse_step_s, more * 1e-3));
	}
}

static void search_blurs(struct search *search)
{
	struct fold_timing timing = search->best;
	for (size_t i = 0; i < ARRAY_SIZE(blurs_s); i++) {
		timing.blur_s = blurs_s[i];
		try_timing(search, timing);
	}
}

void fold_time(struct fold_model *model, struct fold_segment *segment, const struct curve *curve,
	const struct fold_timing *rhythms, size_t n_rhythms)
{
	struct search search = {.model = model, .segment = segment, .rows = ROWS_COARSE, .misfit = INFINITY};
	double within_s = segment->updates.within_s[segment->updates.n / 2];
	(void)curve;
	search_parts(&search, within_s);
	if (within_s >= sharp_s)
		search_grids(&search, rhythms, n_rhythms, sharpest_s(&search, segment->t_s));
	climb(&search, coarse_step_s / 2);
	again(&search, ROWS_FINE);
	search_blurs(&search);
	climb(&search, coarse_step_s / 2);
	search_blurs(&search);
	climb(&search, coarse_step_s / 8);
	fold_times(&segment->updates, &search.best, segment->t_s);
	segment->blur_s = search.best.blur_s;
}
