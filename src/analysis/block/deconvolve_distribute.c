#include "analysis/block/deconvolve_internal.h"

#include "base/util.h"
#include "energy/curve.h"

#include <errno.h>

static const double contrast_min = 0.2; // of the mean power: minimum assumed contrast between blocks
static const double blur_known = 0.8;   // the contrast is an estimate
static const double follow = 0.3;       // smoothing of the other programs' cores: ticks make those of one interval uncertain
static const double min_power = 1e-3;   // of the mean power: lower limit, power is positive

/* Divides each interval's energy among the slots by their powers and times in it, so that they add up to the measured
 * energy. A block that fills a whole interval gets all of its energy, whatever the block's power is elsewhere. */
struct distribution {
	struct deconvolve_job *job;
	double *power_w; // per slot, above 0
	double *time_s, *before_s, *sweep_buffer;
	double *slot_j;
	double *slope;     // slots × slots: derivative of energy by power …
	double *by_cores;  // … and by cores; NULL: the powers are the target's own
	double *others;    // per interval of a segment: cores of other programs; negative: not used
	double *excess;    // per slot: energy in excess of the target's even share
	double *unexplained; // slots × slots: variance of an interval's energy that the powers do not explain
	double *scale;     // per interval of a segment: measured energy relative to the energy expected from the powers
	uint32_t *present; // slots in the interval; cores_slope: derivative of their energies by their cores
	double *cores_slope;
	double *part; // fraction of the interval's energy in each slot; part_before: in the previous interval
	double *part_before;
};

static double other_cores(const struct distribution *distribution, size_t slot, double others)
{
	const double *of = distribution->job->cores->other_cores;
	return of != NULL ? others * of[slot] : others;
}

// Weight of a slot in an interval: its power times the target's share by cores.
static double weight_of(const struct distribution *distribution, size_t slot, double others)
{
	double power_w = distribution->power_w[slot];
	return others >= 0
		? power_w * share_of_cores(distribution->job->cores->of[slot], other_cores(distribution, slot, others))
		: power_w;
}

struct energy {                       // energy of an interval, or since the segment's start
	double target_j, explained_j; // the energy to divide, and that of the equations
};

// Adds j2 × step stepᵀ to the variance of the slots' energies, for the slots whose step is not 0.
static void add_variance(const struct distribution *distribution, const double *a, const double *b, double j2)
{
	size_t s = distribution->job->model.slots.n;
	for (size_t i = 0; i < s; i++) {
		double step = a[i] - b[i];
		if (step == 0)
			continue;
		for (size_t k = 0; k < s; k++)
			distribution->unexplained[i * s + k] += j2 * step * (a[k] - b[k]);
	}
}

/* Relative change of a slot's energy in an interval per core of error in its number of cores. The share is not linear:
 * near 0 cores it falls faster than it would rise. */
static double slope_by_cores(const struct distribution *distribution, size_t slot, double others)
{
	const struct deconvolve_cores *cores = distribution->job->cores;
	double of = cores->of[slot];
	double off = deconvolve_interval_95 * sqrt(cores->variance[slot * distribution->job->model.slots.n + slot]);
	double least = share_of_cores(fmax(of - off,
					      -share_negligible_cores * fmin(others / (2 * share_negligible_cores), 1)),
		others);
	return fmax(share_slope(of, others), (1 - least / share_of_cores(of, others)) / off);
}

/* The difference between an interval's energy and the expected energy belongs to some block, or was moved by a
 * misplaced update. It is divided like the rest, so it can go to the wrong block. */
static void note_left(struct distribution *distribution, size_t n, struct energy energy, double expected_j,
	double others)
{
	size_t s = distribution->job->model.slots.n;
	double left_j2 = (energy.explained_j - expected_j) * (energy.explained_j - expected_j);
	for (size_t a = 0; a < n && others >= 0; a++)
		distribution->cores_slope[a] = slope_by_cores(distribution, distribution->present[a],
			other_cores(distribution, distribution->present[a], others));
	for (size_t a = 0; a < n; a++) {
		size_t row = distribution->present[a] * s;
		double part = distribution->part[distribution->present[a]];
		for (size_t b = 0; b < n; b++) {
			uint32_t other = distribution->present[b];
			double both = (a == b ? part : 0) - part * distribution->part[other];
			distribution->slope[row + other] += energy.target_j * both / distribution->power_w[other];
			if (others >= 0)
				distribution->by_cores[row + other] += energy.target_j * both *
					distribution->cores_slope[b];
			distribution->unexplained[row + other] += left_j2 * both;
		}
	}
}

/* Cores of other programs in an interval, from the target's part of its energy and the cores of its slots. Negative:
 * the powers are the target's own. */
static double others_in(const struct distribution *distribution, const struct deconvolve_updates *u,
	struct energy energy, double length_s)
{
	double cores = 0;
	if (distribution->by_cores == NULL || !(u->even_share > 0))
		return -1;
	for (size_t i = 0; i < distribution->job->model.slots.n; i++)
		cores += distribution->job->cores->of[i] * (distribution->time_s[i] - distribution->before_s[i]) /
			length_s;
	double share = energy.target_j / energy.explained_j * u->even_share;
	return share > 0 ? fmax(cores * (1 - share) / share, 0) : 0;
}

static void distribute_interval(struct distribution *distribution, struct energy energy, double length_s, double others,
	double even_share, double *ret_scale)
{
	size_t s = distribution->job->model.slots.n, n = 0;
	double expected_j = 0, weights_j = 0;
	memset(distribution->part, 0, s * sizeof(double));
	for (size_t i = 0; i < s; i++) {
		double time_s = distribution->time_s[i] - distribution->before_s[i];
		if (!(time_s > 1e-12 * length_s))
			continue;
		distribution->present[n++] = (uint32_t)i;
		distribution->part[i] = weight_of(distribution, i, others) * time_s;
		expected_j += distribution->power_w[i] * time_s;
		weights_j += distribution->part[i];
	}
	*ret_scale = energy.target_j / weights_j;
	for (size_t i = 0; i < n; i++) {
		if (even_share > 0 && others >= 0)
			distribution->excess[distribution->present[i]] += (*ret_scale - 1 / even_share) *
				distribution->part[distribution->present[i]];
		distribution->part[distribution->present[i]] /= weights_j;
		distribution->slot_j[distribution->present[i]] += energy.target_j *
			distribution->part[distribution->present[i]];
	}
	note_left(distribution, n, energy, expected_j, others);
}

// At the run's ends the power changes between two updates; edge.c has the error of the energy there.
static double end_uncertainty_j2(const struct deconvolve_job *job, size_t index)
{
	const struct curve_segment *segment = &job->metering->curve.segments[index];
	struct edge_uncertainty uncertainty = edge_between(&job->metering->curve, index, segment->start_ns,
		segment->end_ns);
	return (uncertainty.variance_j2 + uncertainty.linear_j * uncertainty.linear_j / 4) / 2;
}

static void swap(double **a, double **b)
{
	double *kept = *a;
	*a = *b;
	*b = kept;
}

// Energy up to an update, or to the segment's end, where there are no equations.
static struct energy energy_until(const struct deconvolve_job *job, size_t index, size_t k)
{
	const struct deconvolve_updates *u = &job->segments[index].updates;
	if (k < u->n)
		return (struct energy){u->target_j[k], u->j[k]};
	int64_t end_ns = job->metering->curve.segments[index].end_ns;
	double target_j = deconvolve_target_j(job, end_ns) - deconvolve_target_j(job, u->start_ns);
	double last_j = u->n > 0 ? u->j[u->n - 1] - u->target_j[u->n - 1] : 0;
	return (struct energy){target_j, last_j + target_j};
}

static void distribute_segment(struct distribution *distribution, size_t index)
{
	const struct deconvolve_job *job = distribution->job;
	const struct deconvolve_segment *segment = &job->segments[index];
	const struct deconvolve_updates *u = &segment->updates;
	size_t s = job->model.slots.n;
	struct deconvolve_sweep sweep;
	struct energy before = {0};
	double t_s = 0;
	double end_j2 = end_uncertainty_j2(job, index), others = -1;
	deconvolve_sweep_init(&sweep, job->timeline, &job->model.slots, u->start_ns, distribution->sweep_buffer);
	memset(distribution->before_s, 0, s * sizeof(double));
	memset(distribution->part_before, 0, s * sizeof(double));
	for (size_t k = 0; k <= u->n; k++) {
		double to_s = k < u->n ? fmax(segment->t_s[k], t_s) : u->length_s;
		struct energy to = energy_until(job, index, k);
		if (!(to_s > t_s)) // two updates at one time: the energy goes to the next interval
			continue;
		memset(distribution->time_s, 0, s * sizeof(double));
		deconvolve_sweep_add(&sweep, to_s, 1, distribution->time_s);
		struct energy energy = {to.target_j - before.target_j, to.explained_j - before.explained_j};
		if (k < u->n) { // after the last update there are no equations for other programs
			double now = others_in(distribution, u, energy, to_s - t_s);
			others = others < 0 ? now : others + follow * (now - others);
		}
		distribution->others[k] = others;
		distribute_interval(distribution, energy, to_s - t_s, distribution->others[k], u->even_share,
			&distribution->scale[k]);
		add_variance(distribution, distribution->part, distribution->part_before,
			k > 0 ? job->model.noise.update_j2 : end_j2);
		swap(&distribution->before_s, &distribution->time_s);
		swap(&distribution->part_before, &distribution->part);
		t_s = to_s;
		before = to;
	}
	memset(distribution->part, 0, s * sizeof(double));
	add_variance(distribution, distribution->part, distribution->part_before, end_j2);
	distribution->slot_j[0] += energy_until(job, index, u->n).target_j - before.target_j;
}

// Divides the energy of the slots among the columns, piece by piece.
static void distribute_columns(const struct distribution *distribution, size_t index)
{
	const struct deconvolve_job *job = distribution->job;
	const struct deconvolve_segment *segment = &job->segments[index];
	const struct deconvolve_updates *u = &segment->updates;
	size_t k = 0;
	for (size_t i = deconvolve_first_interval(job->timeline, u->start_ns); i < job->timeline->n_pieces; i++) {
		const struct deconvolve_interval *piece = &job->timeline->pieces[i];
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
			double power_w = piece->weight * weight_of(distribution, slot, distribution->others[k]);
			job->domain->column_j[piece->column] += power_w * distribution->scale[k] * (until_s - from_s);
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
static double misplaced_s(const struct deconvolve_job *job)
{
	const struct deconvolve_model *model = &job->model;
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
static double mixed_w2(const struct deconvolve_job *job, size_t slot, double misplaced_s)
{
	double part = square(misplaced_s) / (square(misplaced_s) + square(job->domain->call_s[slot]) + 1e-18);
	return square(part * job->model.mean_w);
}

// Variance of the powers: the scatter between batches, plus the variance that the equations do not determine.
static void power_variance(const struct deconvolve_job *job, double *ret_variance)
{
	const struct deconvolve_model *model = &job->model;
	size_t s = model->slots.n;
	double off_s = model->solved ? misplaced_s(job) : 0;
	for (size_t i = 0; i < s; i++)
		for (size_t j = 0; j < s; j++) {
			double sum = 0;
			for (size_t b = 0; model->solved && b < DECONVOLVE_BATCHES; b++)
				sum += model->batches[b * s + i] * model->batches[b * s + j];
			double open = model->solved ? model->unknown[i * s + j]
				: i == j            ? model->mean_w * model->mean_w
						    : 0;
			ret_variance[i * s + j] = sum * (DECONVOLVE_BATCHES - 1) / DECONVOLVE_BATCHES + open;
		}
	for (size_t i = 0; i < s; i++)
		ret_variance[i * s + i] += mixed_w2(job, i, off_s);
}

static int make_variance(struct distribution *distribution)
{
	const struct deconvolve_model *model = &distribution->job->model;
	size_t s = model->slots.n;
	double *powers = arena_alloc(distribution->job->arena, s * s, sizeof(double));
	double *half = arena_alloc(distribution->job->arena, s * s, sizeof(double));
	if (powers == NULL || half == NULL)
		return -ENOMEM;
	power_variance(distribution->job, powers);
	add_sandwich(distribution->slope, powers, s, half, distribution->unexplained);
	if (distribution->by_cores != NULL)
		add_sandwich(distribution->by_cores, distribution->job->cores->variance, s, half,
			distribution->unexplained);
	double bound = deconvolve_interval_95 * deconvolve_interval_95;
	for (size_t i = 0; i < s; i++)
		for (size_t j = 0; j < s; j++)
			distribution->unexplained[i * s + j] += distribution->excess[i] * distribution->excess[j] /
				bound;
	distribution->job->domain->variance = distribution->unexplained;
	return 0;
}

int deconvolve_distribute(struct deconvolve_job *job)
{
	size_t s = job->model.slots.n, most = 1;
	for (size_t i = 0; i < job->n_segments; i++)
		most = job->segments[i].updates.n + 1 > most ? job->segments[i].updates.n + 1 : most;
	double *buffer = arena_alloc(job->arena, 9 * s, sizeof(double));
	struct distribution distribution = {.job = job,
		.slope = arena_alloc(job->arena, s * s, sizeof(double)),
		.unexplained = arena_alloc(job->arena, s * s, sizeof(double)),
		.by_cores = job->cores != NULL ? arena_alloc(job->arena, s * s, sizeof(double)) : NULL,
		.others = arena_alloc(job->arena, most, sizeof(double)),
		.scale = arena_alloc(job->arena, most, sizeof(double)),
		.present = arena_alloc(job->arena, s, sizeof(uint32_t))};
	if (buffer == NULL || distribution.slope == NULL || distribution.unexplained == NULL ||
		distribution.scale == NULL || distribution.present == NULL || distribution.others == NULL ||
		(job->cores != NULL && distribution.by_cores == NULL))
		return -ENOMEM;
	distribution.power_w = buffer;
	distribution.time_s = buffer + s;
	distribution.before_s = buffer + 2 * s;
	distribution.sweep_buffer = buffer + 3 * s;
	distribution.slot_j = buffer + 4 * s;
	distribution.part = buffer + 5 * s;
	distribution.part_before = buffer + 6 * s;
	distribution.excess = buffer + 7 * s;
	distribution.cores_slope = buffer + 8 * s;
	double mean_w = job->model.mean_w > 0 ? job->model.mean_w : 1;
	for (size_t i = 0; i < s; i++) {
		double w = job->model.solved ? job->model.power_w[i] : mean_w;
		distribution.power_w[i] = fmax(w, min_power * mean_w);
	}
	for (size_t i = 0; i < job->n_segments; i++) {
		distribute_segment(&distribution, i);
		distribute_columns(&distribution, i);
	}
	job->domain->column_j[0] = distribution.slot_j[0];
	return make_variance(&distribution);
}
