#include "analysis/block/deconvolve.h"

#include "analysis/block/deconvolve_internal.h"
#include "analysis/energy/domains.h"
#include "base/util.h"

#include <errno.h>

enum { SEGMENTS_MAX = 8, SEARCH_SLOTS = 24, CALLS_MIN = 20, PHASE_SEARCHES = 2 };
static const double resolution_periods = 2; // calls longer than this are resolved by interpolation between updates
static const double noise_guess = 0.003;    // relative to an interval's energy
static const double slowest_grid_s = 3e-3;  // a counter with a shorter period needs no grid
const double deconvolve_interval_95 = 2.1; // quantile of Student's distribution for DECONVOLVE_BATCHES - 1 degrees of
					   // freedom

static double update_distance_s(const struct curve *curve)
{
	if (curve->from_power || curve->n <= DECONVOLVE_EQUATIONS_MIN)
		return 0;
	return (double)(curve->t_ns[curve->n - 1] - curve->t_ns[0]) / 1e9 / (double)(curve->n - 1);
}

/* ---- slots ---- */

static double add_times(const struct run_segment *segment, const struct deconvolve_timeline *timeline, double *times_s)
{
	double sum_s = 0;
	for (size_t i = deconvolve_first_interval(timeline, segment->start_ns); i < timeline->n_pieces; i++) {
		const struct deconvolve_interval *piece = &timeline->pieces[i];
		int64_t from_ns = piece->begin_ns > segment->start_ns ? piece->begin_ns : segment->start_ns;
		int64_t to_ns = piece->end_ns < segment->end_ns ? piece->end_ns : segment->end_ns;
		if (to_ns <= from_ns)
			break;
		double s = piece->weight * (double)(to_ns - from_ns) / 1e9;
		times_s[piece->column] += s;
		sum_s += s;
	}
	return sum_s;
}

static void column_times(const struct run *run, const struct deconvolve_timeline *timeline, double *ret_s)
{
	double outside_s = run_duration_s(run);
	for (size_t i = 0; i < run->n_segments; i++)
		outside_s -= add_times(&run->segments[i], timeline, ret_s);
	ret_s[0] = fmax(ret_s[0] + outside_s, 0);
}

struct ranked {
	double time_s;
	uint32_t column;
};

static int by_time(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->time_s != y->time_s)
		return x->time_s > y->time_s ? -1 : 1;
	return (x->column > y->column) - (x->column < y->column);
}

// Each column with much time has a slot of its own, the others share one. Column 0 has slot 0.
static int make_slots(const double *time_s, size_t n_columns, size_t most, struct arena *arena,
	struct deconvolve_slots *ret_slots)
{
	struct ranked *ranked = arena_alloc(arena, n_columns, sizeof(*ranked));
	uint32_t *of = arena_alloc(arena, n_columns, sizeof(*of));
	if (ranked == NULL || of == NULL)
		return -ENOMEM;
	for (size_t c = 0; c < n_columns; c++)
		ranked[c] = (struct ranked){c == 0 ? INFINITY : time_s[c], (uint32_t)c};
	qsort(ranked, n_columns, sizeof(*ranked), by_time);
	for (size_t i = 0; i < n_columns; i++)
		of[ranked[i].column] = (uint32_t)(i < most ? i : most - 1);
	*ret_slots = (struct deconvolve_slots){.n = n_columns < most ? n_columns : most, .of = of};
	return 0;
}

/* ---- equations ---- */

static int list_segments(struct deconvolve_job *job)
{
	const struct curve *curve = &job->metering->curve;
	double from_s = 0;
	job->segments = arena_alloc(job->arena, curve->n_segments, sizeof(*job->segments));
	if (job->segments == NULL || attribution_used_make(&job->metering->attribution, job->arena, &job->used) < 0)
		return -ENOMEM;
	for (size_t s = 0; s < curve->n_segments; s++, job->n_segments++) {
		struct deconvolve_segment *segment = &job->segments[s];
		if (deconvolve_list_updates(job, s, &segment->updates) < 0)
			return -ENOMEM;
		segment->from_s = from_s;
		segment->t_s = arena_alloc(job->arena, segment->updates.n, sizeof(double));
		if (segment->t_s == NULL)
			return -ENOMEM;
		memcpy(segment->t_s, segment->updates.t_s, segment->updates.n * sizeof(double));
		from_s += segment->updates.length_s;
	}
	return 0;
}

static bool has_updates(const struct deconvolve_segment *segment)
{
	return segment->updates.n > DECONVOLVE_EQUATIONS_MIN;
}

static size_t count_equations(const struct deconvolve_job *job)
{
	size_t n = 0;
	for (size_t s = 0; s < job->n_segments && s < SEGMENTS_MAX; s++)
		n += has_updates(&job->segments[s]) ? job->segments[s].updates.n - 1 : 0;
	return n;
}

static void guess_noise(struct deconvolve_model *model, const struct deconvolve_segment *segment)
{
	const struct deconvolve_updates *u = &segment->updates;
	double j = u->j[u->n - 1] - u->j[0], s = u->t_s[u->n - 1] - u->t_s[0];
	model->mean_w = j / s;
	double interval_j = j / (double)(u->n - 1);
	model->noise.update_j2 = noise_guess * noise_guess * interval_j * interval_j;
	model->noise.white_j2_s = model->noise.update_j2 / (s / (double)(u->n - 1));
}

static struct counter_update_phase *update_phase_of(const struct deconvolve_job *job)
{
	const struct findings *f = job->findings;
	return f->update_phases != NULL ? f->update_phases[job->domain->finding->device - f->run->devices] : NULL;
}

static bool use_known_timing(const struct deconvolve_job *job, struct deconvolve_model *model,
	struct deconvolve_segment *segment)
{
	const struct counter_update_phase *update_phase = update_phase_of(job);
	if (update_phase == NULL || !update_phase->known)
		return false;
	const struct deconvolve_timing known = {.regular = update_phase->regular,
		.phase_s = (double)(update_phase->update_ns - segment->updates.start_ns) / 1e9,
		.period_s = update_phase->period_s,
		.part = update_phase->part,
		.blur_s = update_phase->blur_s};
	return deconvolve_time_known(model, segment, &known);
}

// Stores the update times that this run shows. A missing grid can be due to this run's blocks, so other runs search
// again.
static void remember(const struct deconvolve_job *job, const struct deconvolve_segment *segment,
	const struct deconvolve_timing *timing)
{
	struct counter_update_phase *update_phase = update_phase_of(job);
	if (update_phase == NULL)
		return;
	int searches = update_phase->searches + 1;
	*update_phase = (struct counter_update_phase){.searches = searches,
		.known = timing->regular || searches >= PHASE_SEARCHES,
		.regular = timing->regular,
		.update_ns = segment->updates.start_ns + llround(timing->phase_s * 1e9),
		.period_s = timing->period_s,
		.part = timing->part,
		.blur_s = timing->blur_s};
}

// Finds the update times of one segment from the columns with most time.
static int find_times(struct deconvolve_job *job, struct deconvolve_segment *segment,
	const struct deconvolve_slots *slots)
{
	const struct curve *curve = &job->metering->curve;
	struct deconvolve_timing update_phases[UPDATE_PHASE_CANDIDATES_MAX];
	struct deconvolve_model model = {.timeline = job->timeline,
		.slots = *slots,
		.segments = segment,
		.n_segments = 1,
		.n_columns = slots->n + DECONVOLVE_DRIFTS,
		.run_s = job->findings->duration_s};
	size_t n = 0;
	if (deconvolve_model_init(&model, job->arena) < 0)
		return -ENOMEM;
	guess_noise(&model, segment);
	if (!(model.mean_w > 0) || use_known_timing(job, &model, segment))
		return 0;
	// An unmeasured period may be that of the readings.
	double period_s = curve->updates.period_s > 0 ? curve->updates.period_s : update_distance_s(curve);
	if (period_s >= slowest_grid_s)
		n = update_phase_candidates(&segment->updates, period_s, update_phases);
	struct deconvolve_timing timing = deconvolve_time(&model, segment, update_phases, n);
	remember(job, segment, &timing);
	return 0;
}

static int solve(struct deconvolve_job *job, const double *time_s)
{
	struct deconvolve_slots few;
	struct deconvolve_model *model = &job->model;
	size_t speaking = job->n_segments < SEGMENTS_MAX ? job->n_segments : SEGMENTS_MAX;
	if (make_slots(time_s, job->timeline->n_columns, SEARCH_SLOTS, job->arena, &few) < 0)
		return -ENOMEM;
	model->n_columns = model->slots.n + DECONVOLVE_DRIFTS;
	for (size_t s = 0; s < speaking; s++) {
		if (!has_updates(&job->segments[s]))
			continue;
		if (find_times(job, &job->segments[s], &few) < 0)
			return -ENOMEM;
		job->segments[s].error_column = model->n_columns;
		model->n_columns += DECONVOLVE_ERROR_COLUMNS;
		guess_noise(model, &job->segments[s]);
	}
	model->quantum_j = job->metering->curve.updates.quantum_j;
	model->timeline = job->timeline;
	model->segments = job->segments;
	model->n_segments = speaking;
	model->run_s = job->findings->duration_s;
	model->n_rows = count_equations(job);
	return deconvolve_model_init(model, job->arena) < 0 ? -ENOMEM : deconvolve_solve(model, job->arena);
}

/* ---- results ---- */

// Sums the time of each slot, and its mean length.
static int measure_slots(struct deconvolve_job *job, const double *time_s)
{
	struct deconvolve_domain *domain = job->domain;
	domain->slots = job->model.slots;
	domain->slot_s = arena_alloc(job->arena, domain->slots.n, sizeof(double));
	domain->call_s = arena_alloc(job->arena, domain->slots.n, sizeof(double));
	if (domain->slot_s == NULL || domain->call_s == NULL)
		return -ENOMEM;
	for (size_t c = 0; c < job->timeline->n_columns; c++)
		domain->slot_s[domain->slots.of[c]] += time_s[c];
	for (size_t i = 0; i < job->timeline->n_pieces; i++)
		domain->call_s[domain->slots.of[job->timeline->pieces[i].column]]++; // first the number of calls
	for (size_t i = 0; i < domain->slots.n; i++)
		domain->call_s[i] = domain->slot_s[i] / fmax(domain->call_s[i], 1);
	return 0;
}

static int deconvolve_one(struct deconvolve_job *job, const double *time_s)
{
	struct deconvolve_domain *domain = job->domain;
	double target = job->domain->finding->ledger.target_j;
	size_t n = job->timeline->n_columns;
	domain->column_j = arena_alloc(job->arena, n, sizeof(double));
	if (domain->column_j == NULL)
		return -ENOMEM;
	if (measure_slots(job, time_s) < 0 || list_segments(job) < 0)
		return -ENOMEM;
	domain->uncertainty = target > 0 ? job->metering->attribution.uncertainty_j / target : 0;
	job->model.mean_w = target / fmax(job->findings->duration_s, 1e-9);
	if (!job->metering->curve.from_power && count_equations(job) > 0 && solve(job, time_s) < 0)
		return -ENOMEM;
	return deconvolve_distribute(job);
}

static double variance_of(const struct deconvolve_domain *domain, const struct fold *fold, const uint32_t *columns,
	size_t n)
{
	double parts[DECONVOLVE_SLOTS_MAX] = {0}, sum = 0;
	size_t s = domain->slots.n;
	for (size_t i = 0; i < n; i++) {
		uint32_t slot = domain->slots.of[columns[i]];
		if (domain->slot_s[slot] > 0)
			parts[slot] += fold->columns[columns[i]].time_s / domain->slot_s[slot];
	}
	for (size_t i = 0; i < s; i++)
		for (size_t j = 0; j < s && parts[i] != 0; j++)
			sum += parts[i] * parts[j] * domain->variance[i * s + j];
	return fmax(sum, 0);
}

// Without the error of the attribution, which is common to the domains.
static struct deconvolve_energy energy_in(const struct fold *fold, size_t index, const uint32_t *columns, size_t n)
{
	const struct deconvolve_domain *domain = fold->domains[index];
	struct deconvolve_energy energy = {0};
	if (domain == NULL)
		return (struct deconvolve_energy){(double)NAN, (double)NAN};
	for (size_t i = 0; i < n; i++)
		energy.j += domain->column_j[columns[i]];
	double scale = deconvolve_interval_95 / 2; // part_error_j doubles the standard deviation
	struct part_error part = {.variance_j2 = scale * scale * variance_of(domain, fold, columns, n)};
	energy.error_j = part_error_j(&part, domain->finding, energy.j);
	return energy;
}

struct deconvolve_energy deconvolve_domain_energy_of(const struct fold *fold, size_t index, const uint32_t *columns,
	size_t n)
{
	struct deconvolve_energy energy = energy_in(fold, index, columns, n);
	if (fold->domains[index] != NULL)
		energy.error_j = hypot(energy.error_j, fold->domains[index]->uncertainty * energy.j);
	return energy;
}

struct deconvolve_energy deconvolve_energy_of(const struct fold *fold, const uint32_t *columns, size_t n)
{
	struct error_sum error = {0};
	double j = (double)NAN;
	for (size_t d = 0; d < fold->n_domains; d++) {
		const struct deconvolve_domain *domain = fold->domains[d];
		if (domain == NULL || !domain->finding->in_total)
			continue;
		struct deconvolve_energy one = energy_in(fold, d, columns, n);
		j = isnan(j) ? one.j : j + one.j;
		error_sum_add(&error, domain->finding, one.error_j, domain->uncertainty * one.j);
	}
	return (struct deconvolve_energy){j, isnan(j) ? j : error_sum_j(&error)};
}

bool deconvolve_helps(const struct findings *findings, const struct metering *metering, double mean_call_s,
	int64_t calls)
{
	for (size_t d = 0; calls >= CALLS_MIN && d < findings->n_domains; d++)
		if (findings->domains[d].in_total && metering->domains[d].curve.known &&
			mean_call_s < resolution_periods * update_distance_s(&metering->domains[d].curve))
			return true;
	return false;
}

static void describe(struct fold *fold, const struct metering *metering, const struct deconvolve_timeline *timeline,
	int64_t *calls)
{
	for (size_t i = 0; i < timeline->n_pieces; i++)
		calls[timeline->pieces[i].column]++;
	for (uint32_t c = 0; c < fold->n_columns; c++) {
		struct deconvolve_column *column = &fold->columns[c];
		struct deconvolve_energy energy = deconvolve_energy_of(fold, &c, 1);
		bool some = column->time_s > 0;
		column->power_w = some ? energy.j / column->time_s : (double)NAN;
		column->error_w = some ? energy.error_j / column->time_s : (double)NAN;
		column->folded = calls[c] > 0 &&
			deconvolve_helps(fold->findings, metering, column->time_s / (double)calls[c], calls[c]);
	}
}

int deconvolve_make(const struct findings *findings, const struct metering *metering,
	const struct deconvolve_timeline *timeline, struct arena *arena, struct fold *ret_fold)
{
	size_t n = timeline->n_columns;
	double *time_s = arena_alloc(arena, n, sizeof(double));
	struct deconvolve_slots slots;
	struct deconvolve_cores cores = {0};
	int64_t *calls = arena_alloc(arena, n, sizeof(int64_t));
	struct fold fold = {.n_columns = n, .n_domains = findings->n_domains, .findings = findings};
	fold.columns = arena_alloc(arena, n, sizeof(*fold.columns));
	fold.domains = arena_alloc(arena, findings->n_domains, sizeof(*fold.domains));
	if (time_s == NULL || calls == NULL || fold.columns == NULL || fold.domains == NULL)
		return -ENOMEM;
	column_times(findings->run, timeline, time_s);
	for (size_t c = 0; c < n; c++)
		fold.columns[c].time_s = time_s[c];
	if (make_slots(time_s, n, DECONVOLVE_SLOTS_MAX, arena, &slots) < 0)
		return -ENOMEM;
	if (findings->n_domains > 0 &&
		deconvolve_cores_find(findings->run, metering->domains[0].attribution.windows, timeline, &slots, arena,
			&cores) < 0)
		return -ENOMEM;
	for (size_t d = 0; d < findings->n_domains; d++) {
		struct deconvolve_domain *domain = arena_alloc(arena, 1, sizeof(*domain));
		struct deconvolve_job job = {.findings = findings,
			.metering = &metering->domains[d],
			.timeline = timeline,
			.cores = cores.known && attribution_by_cpu(&metering->domains[d].attribution) ? &cores : NULL,
			.arena = arena,
			.model.slots = slots,
			.domain = domain};
		if (domain == NULL)
			return -ENOMEM;
		if (isnan(findings->domains[d].energy_j))
			continue;
		domain->finding = &findings->domains[d];
		if (deconvolve_one(&job, time_s) < 0)
			return -ENOMEM;
		fold.domains[d] = domain;
	}
	describe(&fold, metering, timeline, calls);
	*ret_fold = fold;
	return 0;
}
