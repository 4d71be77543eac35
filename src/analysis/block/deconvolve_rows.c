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

void deconvolve_sweep_init(struct deconvolve_sweep *sweep, const struct deconvolve_timeline *timeline,
	const struct deconvolve_slots *slots, int64_t start_ns, double *buffer)
{
	*sweep = (struct deconvolve_sweep){.timeline = timeline,
		.slots = slots,
		.start_ns = start_ns,
		.time_s = buffer};
	memset(buffer, 0, slots->n * sizeof(*buffer));
	sweep->at = deconvolve_first_interval(timeline, start_ns);
}

// Duration of the part of a piece that is in the segment and before t_s.
static double piece_s(const struct deconvolve_sweep *sweep, const struct deconvolve_interval *piece, double t_s)
{
	double begin_s = since_s(sweep, piece->begin_ns), end_s = since_s(sweep, piece->end_ns);
	begin_s = begin_s > 0 ? begin_s : 0; // fmax and fmin would be function calls
	end_s = end_s < t_s ? end_s : t_s;
	return end_s > begin_s ? piece->weight * (end_s - begin_s) : 0;
}

static void pass(struct deconvolve_sweep *sweep, double t_s)
{
	const struct deconvolve_timeline *timeline = sweep->timeline;
	for (; sweep->at < timeline->n_pieces; sweep->at++) {
		const struct deconvolve_interval *piece = &timeline->pieces[sweep->at];
		if (since_s(sweep, piece->end_ns) > t_s)
			return;
		double in_s = piece_s(sweep, piece, t_s);
		sweep->time_s[sweep->slots->of[piece->column]] += in_s;
		sweep->time_s[0] -= in_s; // column 0 gets the remainder
	}
}

void deconvolve_sweep_add(struct deconvolve_sweep *sweep, double t_s, double weight, double *sums)
{
	const struct deconvolve_timeline *timeline = sweep->timeline;
	t_s = fmax(t_s, sweep->now_s);
	sweep->now_s = t_s;
	pass(sweep, t_s);
	deconvolve_add(sums, weight, sweep->time_s, sweep->slots->n);
	sums[0] += weight * t_s;
	for (size_t i = sweep->at; i < timeline->n_pieces; i++) { // the pieces that contain t_s
		double in_s = piece_s(sweep, &timeline->pieces[i], t_s);
		if (!(in_s > 0))
			return;
		sums[sweep->slots->of[timeline->pieces[i].column]] += weight * in_s;
		sums[0] -= weight * in_s;
	}
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
	memset(rows->low, 0, bytes);
	memset(rows->high, 0, bytes);
	if (rows->power_w != NULL)
		deconvolve_sweep_add(&rows->sweep, t_s - shift_s, 1, rows->low);
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
	memset(ret_row, 0, rows->n_columns * sizeof(*ret_row));
	for (size_t i = 0; i < rows->n_slots; i++)
		ret_row[i] = rows->sums[i] - rows->before[i];
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
