#include "analysis/block/deconvolve_internal.h"

#include "base/search.h"
#include "base/util.h"

enum { BLUR_PARTS = 6 }; // sub-intervals of the time in which an update can have been
static const double shift_min_s = 1e-4;

/* ---- time of the slots ---- */

static double since_s(const struct deconvolve_sweep *sweep, int64_t t_ns)
{
	return (double)(t_ns - sweep->start_ns) / 1e9;
}

static bool ends_by(const void *piece, const void *t_ns)
{
	return ((const struct deconvolve_interval *)piece)->end_ns <= *(const int64_t *)t_ns;
}

size_t deconvolve_first_interval(const struct deconvolve_timeline *timeline, int64_t t_ns)
{
	return search_first(timeline->pieces, timeline->n_pieces, sizeof(*timeline->pieces), &t_ns, ends_by);
}

// Loads the times of the first piece that has not ended: their conversion would be a third of the sweep's time.
static void load_piece(struct deconvolve_sweep *sweep)
{
	if (sweep->at < sweep->timeline->n_pieces) {
		const struct deconvolve_interval *piece = &sweep->timeline->pieces[sweep->at];
		double begin_s = since_s(sweep, piece->begin_ns);
		sweep->begin_s = begin_s > 0 ? begin_s : 0; // fmax and fmin would be function calls
		sweep->end_s = since_s(sweep, piece->end_ns);
	}
}

void deconvolve_sweep_init(struct deconvolve_sweep *sweep, const struct deconvolve_timeline *timeline,
	const struct deconvolve_slots *slots, int64_t start_ns, double *buffer)
{
	*sweep = (struct deconvolve_sweep){.timeline = timeline,
		.slots = slots,
		.start_ns = start_ns,
		.time_s = buffer};
	memset(buffer, 0, slots->n * sizeof(*buffer));
	sweep->at = deconvolve_first_interval(timeline, start_ns);
	load_piece(sweep);
}

static void pass(struct deconvolve_sweep *sweep, double t_s)
{
	const struct deconvolve_timeline *timeline = sweep->timeline;
	for (; sweep->at < timeline->n_pieces && !(sweep->end_s > t_s); sweep->at++, load_piece(sweep)) {
		const struct deconvolve_interval *piece = &timeline->pieces[sweep->at];
		double in_s = sweep->end_s > sweep->begin_s ? piece->weight * (sweep->end_s - sweep->begin_s) : 0;
		sweep->time_s[sweep->slots->of[piece->column]] += in_s;
		sweep->time_s[0] -= in_s; // column 0 gets the remainder
	}
}

// Adds the pieces that contain t_s, up to t_s: they begin together.
static void add_open(const struct deconvolve_sweep *sweep, double t_s, double weight, double *sums)
{
	const struct deconvolve_timeline *timeline = sweep->timeline;
	const struct deconvolve_interval *piece = &timeline->pieces[sweep->at],
					 *end = timeline->pieces + timeline->n_pieces;
	const uint32_t *slots = sweep->slots->of;
	double open_s = t_s - sweep->begin_s;
	int64_t begin_ns = piece->begin_ns;
	for (; piece < end && piece->begin_ns == begin_ns; piece++) {
		double in_s = piece->weight * open_s;
		sums[slots[piece->column]] += weight * in_s;
		sums[0] -= weight * in_s;
	}
}

void deconvolve_sweep_add(struct deconvolve_sweep *sweep, double t_s, double weight, double *sums)
{
	t_s = t_s > sweep->now_s ? t_s : sweep->now_s;
	sweep->now_s = t_s;
	pass(sweep, t_s);
	deconvolve_add(sums, weight, sweep->time_s, sweep->slots->n);
	sums[0] += weight * t_s;
	if (sweep->at < sweep->timeline->n_pieces && t_s > sweep->begin_s)
		add_open(sweep, t_s, weight, sums);
}

// Whether no piece begins or ends in an interval, which must not begin before the last t_s: all times in it grow evenly.
static bool is_even(struct deconvolve_sweep *sweep, double from_s, double to_s)
{
	if (from_s < sweep->now_s)
		return false;
	pass(sweep, from_s);
	if (sweep->at >= sweep->timeline->n_pieces || to_s <= sweep->begin_s)
		return true;
	return sweep->begin_s <= from_s && to_s < sweep->end_s;
}

/* ---- equations ---- */

size_t deconvolve_rows_buffer_size(size_t n_slots)
{
	return 5 * n_slots;
}

static double energy_j(const struct deconvolve_rows *rows, const double *time_s)
{
	double j = 0;
	for (size_t i = 0; i < rows->n_slots; i++)
		j += rows->power_w[i] * time_s[i];
	return j;
}

// Computes, at an update's time, the cumulative time of the slots, and the effect of a small time shift on the energy.
static void load_update(struct deconvolve_rows *rows, size_t update)
{
	double t_s = rows->segment->t_s[update], blur_s = rows->segment->blur_s;
	double shift_s = fmax(blur_s, shift_min_s);
	size_t bytes = rows->n_slots * sizeof(double), parts = blur_s > 0 ? BLUR_PARTS : 1;
	memset(rows->sums, 0, bytes);
	if (rows->power_w != NULL) {
		memset(rows->low, 0, bytes);
		memset(rows->high, 0, bytes);
		deconvolve_sweep_add(&rows->sweep, t_s - shift_s, 1, rows->low);
	}
	if (is_even(&rows->sweep, t_s - blur_s, t_s + blur_s))
		parts = 1; // the mean of the parts is at t_s
	for (size_t i = 0; i < parts; i++) {
		double aside = ((double)(2 * i + 1) - (double)parts) / (double)parts;
		deconvolve_sweep_add(&rows->sweep, t_s + aside * blur_s, 1 / (double)parts, rows->sums);
	}
	rows->late_w[1] = rows->wide_w[1] = 0;
	if (rows->power_w == NULL)
		return;
	deconvolve_sweep_add(&rows->sweep, t_s + shift_s, 1, rows->high);
	double low_j = energy_j(rows, rows->low), high_j = energy_j(rows, rows->high);
	rows->late_w[1] = (high_j - low_j) / (2 * shift_s);
	rows->wide_w[1] = ((high_j + low_j) / 2 - energy_j(rows, rows->sums)) / shift_s;
}

static void step(struct deconvolve_rows *rows)
{
	double *sums = rows->sums;
	rows->sums = rows->before;
	rows->before = sums;
	rows->late_w[0] = rows->late_w[1];
	rows->wide_w[0] = rows->wide_w[1];
}

void deconvolve_rows_begin(struct deconvolve_rows *rows, const struct deconvolve_segment *segment,
	const struct deconvolve_timeline *timeline, const struct deconvolve_slots *slots, double *buffer)
{
	size_t n = slots->n;
	rows->segment = segment;
	rows->sums = buffer;
	rows->before = buffer + n;
	rows->low = buffer + 2 * n;
	rows->high = buffer + 3 * n;
	deconvolve_sweep_init(&rows->sweep, timeline, slots, segment->updates.start_ns, buffer + 4 * n);
	for (rows->now = 0; rows->now + 1 < segment->updates.n && isnan(segment->t_s[rows->now]); rows->now++)
		;
	load_update(rows, rows->now);
	step(rows);
}

bool deconvolve_rows_next(struct deconvolve_rows *rows, double *ret_row, double *ret_j)
{
	const struct deconvolve_segment *segment = rows->segment;
	const double pi = 3.14159265358979323846;
	size_t before = rows->now, k = before + 1;
	while (k < segment->updates.n && isnan(segment->t_s[k]))
		k++;
	if (k >= segment->updates.n)
		return false;
	rows->before_now = before;
	rows->now = k;
	load_update(rows, k);
	deconvolve_subtract(ret_row, rows->sums, 1, rows->before, rows->n_slots);
	double length_s = segment->t_s[k] - segment->t_s[before];
	double middle = (segment->from_s + (segment->t_s[k] + segment->t_s[before]) / 2) / rows->run_s;
	double first = cos(pi * middle), now = first, last = 1; // recurrence for cos of its multiples: calls of cos
								// would be a third of the whole time
	for (size_t i = 0; i < DECONVOLVE_DRIFTS; i++) {
		ret_row[rows->n_slots + i] = length_s * now;
		double after = 2 * first * now - last;
		last = now;
		now = after;
	}
	size_t known = rows->n_slots + DECONVOLVE_DRIFTS;
	memset(ret_row + known, 0, (rows->n_columns - known) * sizeof(*ret_row));
	if (segment->error_column > 0) {
		double *error_column = ret_row + segment->error_column, length = segment->updates.length_s;
		error_column[0] = rows->late_w[1] - rows->late_w[0];
		error_column[1] = (rows->late_w[1] * segment->t_s[k] - rows->late_w[0] * segment->t_s[before]) / length;
		error_column[2] = rows->wide_w[1] - rows->wide_w[0];
	}
	*ret_j = segment->updates.j[k] - segment->updates.j[before];
	step(rows);
	return true;
}
