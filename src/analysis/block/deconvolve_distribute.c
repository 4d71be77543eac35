#include "analysis/block/deconvolve_internal.h"

#include "base/util.h"
#include "energy/curve.h"

#include <errno.h>

static const double contrast_min = 0.2; // of the mean power: minimum assumed contrast between blocks
static const double blur_known = 0.8;   // the contrast is an estimate
static const double follow = 0.3;       // smoothing of the other programs' cores: ticks make those of one interval uncertain
static const double least_power = 1e-3; // of the mean power: lower limit, power is positive

/* Divides each interval's energy among the slots by their powers and times in it, so that they add up to the measured
 * energy. A block that fills a whole interval gets all of its energy, whatever the block's power is elsewhere. */
struct deal {
	struct fold_job *job;
	double *power_w; // per slot, above 0
	double *time_s, *before_s, *sweep_room;
	double *slot_j;
	double *slope;     // slots × slots: derivative of energy by power …
	double *by_cores;  // … and by cores; NULL: the powers are the target's own
	double *others;    // per interval of a segment: cores of other programs; negative: not used
	double *excess;    // per slot: energy in excess of the target's even share
	double *misdealt;  // slots × slots: variance of an interval's energy that the powers do not explain
	double *scale;     // per interval of a segment: measured energy relative to the energy expected from the powers
	uint32_t *present; // slots in the interval; cores_slope: derivative of their energies by their cores
	double *cores_slope;
	double *part; // fraction of the interval's energy in each slot; part_before: in the previous interval
	double *part_before;
};

static double beside(const struct deal *deal, size_t slot, double others)
{
	const double *of = deal->job->cores->beside;
	return of != NULL ? others * of[slot] : others;
}

// Weight of a slot in an interval: its power times the target's share by cores.
static double weight_of(const struct deal *deal, size_t slot, double others)
{
	double power_w = deal->power_w[slot];
	return others >= 0 ? power_w * share_of_cores(deal->job->cores->of[slot], beside(deal, slot, others)) : power_w;
}

struct energy {                       // energy of an interval, or since the segment's start
	double target_j, explained_j; // the energy to divide, and that of the equations
};

// Adds j2 × step stepᵀ to the variance of the slots' energies, for the slots whose step is not 0.
static void add_variance(const struct deal *deal, const double *a, const double *b, double j2)
{
	size_t s = deal->job->model.slots.n;
	for (size_t i = 0; i < s; i++) {
		double step = a[i] - b[i];
		if (step == 0)
			continue;
		for (size_t k = 0; k < s; k++)
			deal->misdealt[i * s + k] += j2 * step * (a[k] - b[k]);
	}
}

/* Relative change of a slot's energy in an interval per core of error in its number of cores. The share is not linear:
 * near 0 cores it falls faster than it would rise. */
static double slope_by_cores(const struct deal *deal, size_t slot, double others)
{
	const struct fold_cores *cores = deal->job->cores;
	double of = cores->of[slot];
	double off = fold_interval_95 * sqrt(cores->variance[slot * deal->job->model.slots.n + slot]);
	double least = share_of_cores(fmax(of - off, -share_hardly * fmin(others / (2 * share_hardly), 1)), others);
	return fmax(share_slope(of, others), (1 - least / share_of_cores(of, others)) / off);
}

/* The difference between an interval's energy and the expected energy belongs to some block, or was moved by a
 * misplaced update. It is divided like the rest, so it can go to the wrong block. */
static void note_left(struct deal *deal, size_t n, struct energy energy, double expected_j, double others)
{
	size_t s = deal->job->model.slots.n;
	double left_j2 = (energy.explained_j - expected_j) * (energy.explained_j - expected_j);
	for (size_t a = 0; a < n && others >= 0; a++)
		deal->cores_slope[a] = slope_by_cores(deal, deal->present[a], beside(deal, deal->present[a], others));
	for (size_t a = 0; a < n; a++) {
		size_t row = deal->present[a] * s;
		double part = deal->part[deal->present[a]];
		for (size_t b = 0; b < n; b++) {
			uint32_t other = deal->present[b];
			double both = (a == b ? part : 0) - part * deal->part[other];
			deal->slope[row + other] += energy.target_j * both / deal->power_w[other];
			if (others >= 0)
				deal->by_cores[row + other] += energy.target_j * both * deal->cores_slope[b];
			deal->misdealt[row + other] += left_j2 * both;
		}
	}
}

/* Cores of other programs in an interval, from the target's part of its energy and the cores of its slots. Negative:
 * the powers are the target's own. */
static double others_in(const struct deal *deal, const struct fold_updates *u, struct energy energy, double length_s)
{
	double cores = 0;
	if (deal->by_cores == NULL || !(u->even_share > 0))
		return -1;
	for (size_t i = 0; i < deal->job->model.slots.n; i++)
		cores += deal->job->cores->of[i] * (deal->time_s[i] - deal->before_s[i]) / length_s;
	double share = energy.target_j / energy.explained_j * u->even_share;
	return share > 0 ? fmax(cores * (1 - share) / share, 0) : 0;
}

static void deal_interval(struct deal *deal, struct energy energy, double length_s, double others, double even_share,
	double *ret_scale)
{
	size_t s = deal->job->model.slots.n, n = 0;
	double expected_j = 0, weights_j = 0;
	memset(deal->part, 0, s * sizeof(double));
	for (size_t i = 0; i < s; i++) {
		double time_s = deal->time_s[i] - deal->before_s[i];
		if (!(time_s > 1e-12 * length_s))
			continue;
		deal->present[n++] = (uint32_t)i;
		deal->part[i] = weight_of(deal, i, others) * time_s;
		expected_j += deal->power_w[i] * time_s;
		weights_j += deal->part[i];
	}
	*ret_scale = energy.target_j / weights_j;
	for (size_t i = 0; i < n; i++) {
		if (even_share > 0 && others >= 0)
			deal->excess[deal->present[i]] += (*ret_scale - 1 / even_share) * deal->part[deal->present[i]];
		deal->part[deal->present[i]] /= weights_j;
		deal->slot_j[deal->present[i]] += energy.target_j * deal->part[deal->present[i]];
	}
	note_left(deal, n, energy, expected_j, others);
}

// At the run's ends the power changes between two updates; edge.c has the error of the energy there.
static double end_doubt_j2(const struct fold_job *job, size_t index)
{
	const struct curve_segment *segment = &job->metering->curve.segments[index];
	struct edge_doubt doubt = edge_between(&job->metering->curve, index, segment->start_ns, segment->end_ns);
	return (doubt.variance_j2 + doubt.linear_j * doubt.linear_j / 4) / 2;
}

static void swap(double **a, double **b)
{
	double *kept = *a;
	*a = *b;
	*b = kept;
}

// Energy up to an update, or to the segment's end, where there are no equations.
static struct energy energy_until(const struct fold_job *job, size_t index, size_t k)
{
	const struct fold_updates *u = &job->segments[index].updates;
	if (k < u->n)
		return (struct energy){u->target_j[k], u->j[k]};
	int64_t end_ns = job->metering->curve.segments[index].end_ns;
	double target_j = fold_target_j(job, end_ns) - fold_target_j(job, u->start_ns);
	double last_j = u->n > 0 ? u->j[u->n - 1] - u->target_j[u->n - 1] : 0;
	return (struct energy){target_j, last_j + target_j};
}

static void deal_segment(struct deal *deal, size_t index)
{
	const struct fold_job *job = deal->job;
	const struct fold_segment *segment = &job->segments[index];
	const struct fold_updates *u = &segment->updates;
	size_t s = job->model.slots.n;
	struct fold_sweep sweep;
	struct energy before = {0};
	double t_s = 0;
	double end_j2 = end_doubt_j2(job, index), others = -1;
	fold_sweep_init(&sweep, job->timeline, &job->model.slots, u->start_ns, deal->sweep_room);
	memset(deal->before_s, 0, s * sizeof(double));
	memset(deal->part_before, 0, s * sizeof(double));
	for (size_t k = 0; k <= u->n; k++) {
		double to_s = k < u->n ? fmax(segment->t_s[k], t_s) : u->length_s;
		struct energy to = energy_until(job, index, k);
		if (!(to_s > t_s)) // two updates at one time: the energy goes to the next interval
			continue;
		memset(deal->time_s, 0, s * sizeof(double));
		fold_sweep_add(&sweep, to_s, 1, deal->time_s);
		struct energy energy = {to.target_j - before.target_j, to.explained_j - before.explained_j};
		if (k < u->n) { // after the last update there are no equations for other programs
			double now = others_in(deal, u, energy, to_s - t_s);
			others = others < 0 ? now : others + follow * (now - others);
		}
		deal->others[k] = others;
		deal_interval(deal, energy, to_s - t_s, deal->others[k], u->even_share, &deal->scale[k]);
		add_variance(deal, deal->part, deal->part_before, k > 0 ? job->model.noise.update_j2 : end_j2);
		swap(&deal->before_s, &deal->time_s);
		swap(&deal->part_before, &deal->part);
		t_s = to_s;
		before = to;
	}
	memset(deal->part, 0, s * sizeof(double));
	add_variance(deal, deal->part, deal->part_before, end_j2);
	deal->slot_j[0] += energy_until(job, index, u->n).target_j - before.target_j;
}

// Divides the energy of the slots among the columns, piece by piece.
static void deal_columns(const struct deal *deal, size_t index)
{
	const struct fold_job *job = deal->job;
	const struct fold_segment *segment = &job->segments[index];
	const struct fold_updates *u = &segment->updates;
	size_t k = 0;
	for (size_t i = fold_first_piece(job->timeline, u->start_ns); i < job->timeline->n_pieces; i++) {
		const struct fold_piece *piece = &job->timeline->pieces[i];
		double from_s = fmax((double)(piece->begin_ns - u->start_ns) / 1e9, 0);
		double to_s = fmin((double)(piece->end_ns - u->start_ns) / 1e9, u->length_s);
		if (to_s <= from_s)
			break;
		if (piece->column == 0)
			continue;
		while (k > 0 && segment->t_s[k - 1] > from_s)
			k--;
		size_t slot = job->model.slots.of[piece->column];
		while (from_s < to_s) {
			while (k < u->n && segment->t_s[k] <= from_s)
				k++;
			double until_s = k < u->n ? fmin(segment->t_s[k], to_s) : to_s;
			double power_w = piece->weight * weight_of(deal, slot, deal->others[k]);
			job->domain->column_j[piece->column] += power_w * deal->scale[k] * (until_s - from_s);
			from_s = until_s;
		}
	}
}

// target += a b aᵀ, all s × s.
static void add_sandwich(const double *a, const double *b, size_t s, double *half, double *target)
{
	for (size_t i = 0; i < s; i++)
		for (size_t j = 0; j < s; j++) {
			double sum = 0;
			for (size_t k = 0; k < s; k++)
				sum += a[i * s + k] * b[j * s + k]; // b is symmetric
			half[i * s + j] = sum;
		}
	for (size_t i = 0; i < s; i++)
		for (size_t j = 0; j < s; j++)
			for (size_t k = 0; k < s; k++)
				target[i * s + j] += half[i * s + k] * a[j * s + k];
}

static double square(double x)
{
	return x * x;
}

/* Error of the update times that explains the observed transfer of energy between neighbouring intervals. Where it is
 * long compared with a block's calls, the equations mix the block with its neighbours. All batches then find about the
 * mean power for it, and their agreement proves nothing. */
static double misplaced_s(const struct fold_job *job)
{
	const struct fold_model *model = &job->model;
	double squares = 0, time_s = 0;
	for (size_t i = 0; i < model->slots.n; i++) {
		squares += job->domain->slot_s[i] * square(model->power_w[i] - model->mean_w);
		time_s += job->domain->slot_s[i];
	}
	double contrast_w = fmax(sqrt(squares / fmax(time_s, 1e-9)), contrast_min * model->mean_w);
	double off_s2 = model->noise.misplaced_j2 / square(contrast_w);
	double blur_s = INFINITY; // the blur is already in the equations
	for (size_t i = 0; i < model->n_segments; i++)
		blur_s = fmin(blur_s, model->segments[i].blur_s);
	return sqrt(fmax(off_s2 - blur_known * square(blur_s) / 3, 0));
}

// Variance of a slot's power because its calls are short compared with misplaced_s.
static double mixed_w2(const struct fold_job *job, size_t slot, double misplaced_s)
{
	double part = square(misplaced_s) / (square(misplaced_s) + square(job->domain->call_s[slot]) + 1e-18);
	return square(part * job->model.mean_w);
}

// Variance of the powers: the scatter between batches, plus the variance that the equations do not determine.
static void power_variance(const struct fold_job *job, double *ret_variance)
{
	const struct fold_model *model = &job->model;
	size_t s = model->slots.n;
	double off_s = model->solved ? misplaced_s(job) : 0;
	for (size_t i = 0; i < s; i++)
		for (size_t j = 0; j < s; j++) {
			double sum = 0;
			for (size_t b = 0; model->solved && b < FOLD_BATCHES; b++)
				sum += model->batches[b * s + i] * model->batches[b * s + j];
			double open = model->solved ? model->unknown[i * s + j]
				: i == j            ? model->mean_w * model->mean_w
						    : 0;
			ret_variance[i * s + j] = sum * (FOLD_BATCHES - 1) / FOLD_BATCHES + open;
		}
	for (size_t i = 0; i < s; i++)
		ret_variance[i * s + i] += mixed_w2(job, i, off_s);
}

static int make_variance(struct deal *deal)
{
	const struct fold_model *model = &deal->job->model;
	size_t s = model->slots.n;
	double *powers = arena_alloc(deal->job->arena, s * s, sizeof(double));
	double *half = arena_alloc(deal->job->arena, s * s, sizeof(double));
	if (powers == NULL || half == NULL)
		return -ENOMEM;
	power_variance(deal->job, powers);
	add_sandwich(deal->slope, powers, s, half, deal->misdealt);
	if (deal->by_cores != NULL)
		add_sandwich(deal->by_cores, deal->job->cores->variance, s, half, deal->misdealt);
	double bound = fold_interval_95 * fold_interval_95;
	for (size_t i = 0; i < s; i++)
		for (size_t j = 0; j < s; j++)
			deal->misdealt[i * s + j] += deal->excess[i] * deal->excess[j] / bound;
	deal->job->domain->variance = deal->misdealt;
	return 0;
}

int fold_deal(struct fold_job *job)
{
	size_t s = job->model.slots.n, most = 1;
	for (size_t i = 0; i < job->n_segments; i++)
		most = job->segments[i].updates.n + 1 > most ? job->segments[i].updates.n + 1 : most;
	double *room = arena_alloc(job->arena, 9 * s, sizeof(double));
	struct deal deal = {.job = job,
		.slope = arena_alloc(job->arena, s * s, sizeof(double)),
		.misdealt = arena_alloc(job->arena, s * s, sizeof(double)),
		.by_cores = job->cores != NULL ? arena_alloc(job->arena, s * s, sizeof(double)) : NULL,
		.others = arena_alloc(job->arena, most, sizeof(double)),
		.scale = arena_alloc(job->arena, most, sizeof(double)),
		.present = arena_alloc(job->arena, s, sizeof(uint32_t))};
	if (room == NULL || deal.slope == NULL || deal.misdealt == NULL || deal.scale == NULL || deal.present == NULL ||
		deal.others == NULL || (job->cores != NULL && deal.by_cores == NULL))
		return -ENOMEM;
	deal.power_w = room;
	deal.time_s = room + s;
	deal.before_s = room + 2 * s;
	deal.sweep_room = room + 3 * s;
	deal.slot_j = room + 4 * s;
	deal.part = room + 5 * s;
	deal.part_before = room + 6 * s;
	deal.excess = room + 7 * s;
	deal.cores_slope = room + 8 * s;
	double mean_w = job->model.mean_w > 0 ? job->model.mean_w : 1;
	for (size_t i = 0; i < s; i++) {
		double w = job->model.solved ? job->model.power_w[i] : mean_w;
		deal.power_w[i] = fmax(w, least_power * mean_w);
	}
	for (size_t i = 0; i < job->n_segments; i++) {
		deal_segment(&deal, i);
		deal_columns(&deal, i);
	}
	job->domain->column_j[0] = deal.slot_j[0];
	return make_variance(&deal);
}
