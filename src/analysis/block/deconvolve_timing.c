/* A block's share of an interval depends on the exact update times: with an error of 1 ms, a block of 1 ms moves from
 * one interval to the next. The readings alone determine the times to some milliseconds. The equations agree only for
 * the right times: an error of 0.1 ms makes the residuals ten times as large. The times are therefore chosen, among all
 * that the readings allow, so that the best powers fit the equations best. */
#include "analysis/block/deconvolve_internal.h"

#include "base/num.h"
#include "base/util.h"

enum {
	ROWS_COARSE = 200,
	ROWS_FINE = 600,
	ROWS_MAX = 2400,
	ROWS_TRACKED = 600,
	SPARE = 16,
	TRIES_MAX = 600,
	PARTS_MAX = 200,
	SHARP_RANK = 3
};
static const double coarse_step_s = 5e-4, fine_step_s = 1e-5, coarse_blur_s = 5e-4;
static const double sharp_s = 5e-5; // times known better than this need no search
static const double blurs_s[] = {0, 2e-4, 5e-4, 1e-3, 2e-3, 3.5e-3, 6e-3};

struct search {
	struct deconvolve_model *model;
	struct deconvolve_segment *segment;
	size_t rows;
	struct deconvolve_timing best;
	enum deconvolve_energy_kind energy; // with the best fit
	double misfit;
};

static bool try_timing(struct search *search, struct deconvolve_timing timing)
{
	size_t n = search->segment->updates.n,
	       wanted = search->rows + SPARE; // margin: the last row extends beyond updates that are left out
	deconvolve_times(&search->segment->updates, &timing, 0, n < wanted ? n : wanted, search->segment->t_s);
	search->segment->blur_s = timing.blur_s;
	enum deconvolve_energy_kind energy;
	double misfit = deconvolve_misfit(search->model, search->rows, &energy);
	if (!(misfit < search->misfit))
		return false;
	search->misfit = misfit;
	search->energy = energy;
	search->best = timing;
	return true;
}

static void again(struct search *search, size_t rows)
{
	struct deconvolve_timing timing = search->best;
	search->rows = rows;
	search->misfit = INFINITY;
	try_timing(search, timing);
}

// A timing shifted by late_s at the first update, growing by more_s up to the last update used.
static struct deconvolve_timing shifted(const struct search *search, struct deconvolve_timing timing, double late_s,
	double more_s)
{
	const struct deconvolve_updates *u = &search->segment->updates;
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

static void descend(struct search *search, double step_s)
{
	static const int directions[][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1}, {1, -2}, {-1, 2}};
	for (; step_s > fine_step_s; step_s /= 2) {
		bool moved = true;
		for (int round = 0; moved && round < 20; round++) {
			moved = false;
			for (size_t i = 0; i < ARRAY_SIZE(directions); i++)
				moved |= try_timing(search,
					shifted(search, search->best, directions[i][0] * step_s,
						directions[i][1] * step_s));
		}
	}
}

// The accuracy of the few updates that are known best.
static double sharpest_s(const struct search *search, double *scratch)
{
	const struct deconvolve_updates *u = &search->segment->updates;
	size_t n = u->n < ROWS_FINE ? u->n : ROWS_FINE;
	memcpy(scratch, u->within_s, n * sizeof(*scratch));
	qsort(scratch, n, sizeof(*scratch), compare_doubles);
	return scratch[n > SHARP_RANK ? SHARP_RANK : n - 1];
}

static void search_parts(struct search *search, double within_s)
{
	struct deconvolve_timing timing = {.blur_s = coarse_blur_s};
	try_timing(search, timing);
	if (within_s < sharp_s)
		return;
	int parts = (int)fmin(2 * within_s / coarse_step_s, PARTS_MAX) / 2 + 1;
	for (int i = -parts; i <= parts; i++) {
		timing.part = (double)i / parts;
		try_timing(search, timing);
	}
}

static void search_grids(struct search *search, const struct deconvolve_timing *update_phases, size_t n,
	double within_s)
{
	if (n == 0)
		return;
	double reach_s = fmin(fmax(within_s, 2e-3) + 1e-3, update_phases[0].period_s / 2);
	int reach = (int)(reach_s / coarse_step_s), tries = (2 * reach + 1) * 5;
	for (size_t r = 0; r < n && ((int)r + 1) * tries <= TRIES_MAX + tries; r++) {
		struct deconvolve_timing update_phase = update_phases[r];
		update_phase.blur_s = coarse_blur_s;
		for (int more = -2; more <= 2; more++)
			for (int late = -reach; late <= reach; late++)
				try_timing(search, shifted(search, update_phase, late * coarse_step_s, more * 1e-3));
	}
}

static void search_blurs(struct search *search)
{
	struct deconvolve_timing timing = search->best;
	for (size_t i = 0; i < ARRAY_SIZE(blurs_s); i++) {
		timing.blur_s = blurs_s[i];
		try_timing(search, timing);
	}
}

/* ---- long runs ---- */

/* Over hours the clocks of counter and machine drift apart. With known powers, the residuals of a stretch of updates
 * show the delay of its updates relative to the grid, and the grid follows. */
struct track {
	double late_s, rate_s;    // current delay of the grid, and its change per stretch
	double products, squares; // sums of residual × effect of a shift, and of the squared effect
};

static double left_j(const struct deconvolve_model *model, const double *row, double j)
{
	for (size_t i = 0; i < model->slots.n; i++)
		j -= model->power_w[i] * row[i];
	return j;
}

static void end_interval(struct track *track)
{
	static const double follow = 0.25; // fraction of the observed change
	double off_s = track->squares > 0 ? track->products / track->squares : 0;
	off_s = fmax(-fine_step_s * 10, fmin(off_s, fine_step_s * 10));
	track->rate_s += follow * off_s;
	track->late_s += off_s + track->rate_s;
	track->products = track->squares = 0;
}

static void track_all(struct search *search)
{
	struct deconvolve_model *model = search->model;
	struct deconvolve_segment *segment = search->segment;
	struct deconvolve_rows rows = {.run_s = model->run_s,
		.n_slots = model->slots.n,
		.n_columns = model->n_columns,
		.power_w = model->power_w};
	struct track track = {0};
	double j, late_w = 0;
	size_t n = segment->updates.n, tracked = 0;
	deconvolve_rows_begin(&rows, segment, model->timeline, &model->slots, model->rows_buffer);
	for (;;) {
		if (rows.now >= tracked) { // the next row can end in the next stretch
			size_t to = tracked + 2 * ROWS_TRACKED < n ? tracked + 2 * ROWS_TRACKED : n;
			struct deconvolve_timing timing = search->best;
			end_interval(&track);
			timing.phase_s += track.late_s;
			deconvolve_times(&segment->updates, &timing, rows.now + 1, to, segment->t_s);
			tracked += ROWS_TRACKED;
		}
		if (!deconvolve_rows_next(&rows, model->row, &j))
			break;
		double shift_w = rows.late_w[0] - late_w; // after deconvolve_rows_next, [0] belongs to the row's end
		track.products += shift_w * left_j(model, model->row, j);
		track.squares += shift_w * shift_w;
		late_w = rows.late_w[0];
	}
}

// Removes updates without a time: two intervals become one.
static void leave_out(struct deconvolve_segment *segment)
{
	struct deconvolve_updates *u = &segment->updates;
	double *const columns[] = {segment->t_s, u->t_s, u->within_s, u->target_j, u->energies[DECONVOLVE_OF_ALL],
		u->energies[DECONVOLVE_LESS_OTHERS]};
	size_t n = 0;
	for (size_t k = 0; k < u->n; k++) {
		if (isnan(segment->t_s[k]))
			continue;
		for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
			if (columns[c] != NULL)
				columns[c][n] = columns[c][k];
		n++;
	}
	u->n = n;
}

static void climb_long(struct search *search)
{
	size_t n = search->segment->updates.n - 1;
	while (search->rows < n && search->rows < ROWS_MAX) {
		again(search, 2 * search->rows < n ? 2 * search->rows : n);
		descend(search, coarse_step_s / 4);
	}
}

static void finish(struct search *search)
{
	struct deconvolve_segment *segment = search->segment;
	deconvolve_set_powers(search->model);
	deconvolve_explain(&segment->updates, search->energy);
	deconvolve_times(&segment->updates, &search->best, 0, segment->updates.n, segment->t_s);
	if (search->best.regular && segment->updates.n > ROWS_MAX)
		track_all(search);
	leave_out(segment);
}

struct deconvolve_timing deconvolve_time(struct deconvolve_model *model, struct deconvolve_segment *segment,
	const struct deconvolve_timing *update_phases, size_t n_update_phases)
{
	struct search search = {.model = model, .segment = segment, .rows = ROWS_COARSE, .misfit = INFINITY};
	double within_s = segment->updates.within_s[segment->updates.n / 2];
	search_parts(&search, within_s);
	if (within_s >= sharp_s)
		search_grids(&search, update_phases, n_update_phases, sharpest_s(&search, segment->t_s));
	descend(&search, coarse_step_s / 2);
	again(&search, ROWS_FINE);
	search_blurs(&search);
	descend(&search, coarse_step_s / 2);
	search_blurs(&search);
	descend(&search, coarse_step_s / 8);
	climb_long(&search);
	again(&search, search.rows);
	finish(&search);
	return search.best;
}

bool deconvolve_time_known(struct deconvolve_model *model, struct deconvolve_segment *segment,
	const struct deconvolve_timing *known)
{
	struct search search = {.model = model, .segment = segment, .rows = ROWS_FINE, .misfit = INFINITY};
	try_timing(&search, (struct deconvolve_timing){.blur_s = coarse_blur_s});
	double middle = search.misfit;
	search.misfit = INFINITY;
	if (!try_timing(&search, *known) || search.misfit > middle)
		return false;
	finish(&search);
	return true;
}
