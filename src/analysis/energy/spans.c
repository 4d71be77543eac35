#include "analysis/energy/timeline.h"

#include "analysis/energy/checkpoints.h"
#include "analysis/stats.h"
#include "base/util.h"

#include <errno.h>

/* Begins and ends in ascending order. At one instant, ends come first and free the moments that they hold. Equal
 * entries keep the order of the spans, so that results are reproducible. */
struct instant {
	int64_t t_ns;
	uint32_t span;
	bool is_end;
};

static int by_time(const void *a, const void *b)
{
	const struct instant *x = a, *y = b;
	if (x->t_ns != y->t_ns)
		return x->t_ns > y->t_ns ? 1 : -1;
	if (x->is_end != y->is_end)
		return x->is_end ? -1 : 1;
	return (x->span > y->span) - (x->span < y->span);
}

static bool has_ended(const struct run_span *span)
{
	return value_ok(span->end_ns) && span->end_ns > span->begin_ns;
}

// A span of zero length used no energy, and its end would sort before its begin.
static size_t list_instants(const struct run *run, struct instant *out)
{
	size_t n = 0;
	for (size_t i = 0; i < run->n_spans; i++) {
		const struct run_span *span = &run->spans[i];
		if (!has_ended(span))
			continue;
		out[n++] = (struct instant){span->begin_ns, (uint32_t)i, false};
		out[n++] = (struct instant){span->end_ns, (uint32_t)i, true};
	}
	qsort(out, n, sizeof(*out), by_time);
	return n;
}

struct span_work {
	const struct findings *findings;
	struct checkpoints checkpoints;
	uint32_t *since;           // moment of each open span's begin
	struct part_error *errors; // scratch, one per domain
	double *energy_j, *error_j;
};

static double error_since(struct span_work *work, uint32_t since)
{
	const struct findings *f = work->findings;
	struct error_sum sum = {0};
	memset(work->errors, 0, f->n_domains * sizeof(*work->errors));
	checkpoints_add_errors(&work->checkpoints, since, 1, work->errors);
	for (size_t d = 0; d < f->n_domains; d++) {
		if (!f->domains[d].in_total || work->checkpoints.walks[d].attribution == NULL)
			continue;
		double j = checkpoints_point(&work->checkpoints, work->checkpoints.now, d)->part.target_j -
			checkpoints_point(&work->checkpoints, since, d)->part.target_j;
		error_sum_add(&sum, &f->domains[d], part_error_j(&work->errors[d], &f->domains[d], j),
			work->errors[d].uncertainty_j);
	}
	return error_sum_j(&sum);
}

static int with_errors(struct span_work *work, const struct instant *instants, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t span = instants[i].span;
		if (checkpoints_go_to(&work->checkpoints, instants[i].t_ns) < 0)
			return -ENOMEM;
		if (!instants[i].is_end) {
			work->since[span] = checkpoints_hold(&work->checkpoints);
			continue;
		}
		uint32_t since = work->since[span];
		work->energy_j[span] = checkpoints_current(&work->checkpoints)->target_j -
			work->checkpoints.at[since].target_j;
		work->error_j[span] = error_since(work, since);
		checkpoints_release(&work->checkpoints, since);
	}
	return 0;
}

// Most callers need no errors, which take most of the time.
static void without_errors(struct span_work *work, const struct instant *instants, size_t n)
{
	struct attribution_point point;
	for (size_t d = 0; d < work->findings->n_domains; d++) {
		struct attribution_walk *walk = &work->checkpoints.walks[d];
		if (!work->findings->domains[d].in_total || walk->attribution == NULL)
			continue;
		for (size_t i = 0; i < n; i++) {
			if (i == 0 || instants[i].t_ns != instants[i - 1].t_ns)
				attribution_walk_to(walk, instants[i].t_ns, &point);
			double *energy_j = &work->energy_j[instants[i].span];
			*energy_j += instants[i].is_end ? point.part.target_j : -point.part.target_j;
		}
	}
}

// Sets each ended span to 0: the result for a span of zero length, and the start of the sum for the others.
static void begin_at_nothing(const struct run *run, double *values)
{
	for (size_t i = 0; values != NULL && i < run->n_spans; i++)
		if (value_ok(run->spans[i].end_ns))
			values[i] = 0;
}

static int fill(struct span_work *work, struct arena *scratch)
{
	const struct findings *f = work->findings;
	const struct run *run = f->run;
	struct instant *instants = arena_alloc(scratch, 2 * run->n_spans, sizeof(*instants));
	work->since = arena_alloc(scratch, run->n_spans, sizeof(*work->since));
	work->errors = arena_alloc(scratch, f->n_domains, sizeof(*work->errors));
	if (instants == NULL || work->since == NULL || work->errors == NULL ||
		checkpoints_init(&work->checkpoints, f, f->metering, f->windows, scratch) < 0)
		return -ENOMEM;
	if (!work->checkpoints.any_energy)
		return 0;
	begin_at_nothing(run, work->energy_j);
	begin_at_nothing(run, work->error_j);
	size_t n = list_instants(run, instants);
	int r = 0;
	if (work->error_j != NULL)
		r = with_errors(work, instants, n);
	else
		without_errors(work, instants, n);
	checkpoints_finish(&work->checkpoints);
	return r;
}

int spans_energy(const struct findings *findings, struct arena *arena, double **ret_energy_j, double **ret_error_j)
{
	if (findings->metering == NULL)
		return -EINVAL;
	size_t n = findings->run->n_spans;
	struct span_work work = {.findings = findings, .energy_j = stats_unknown(arena, n)};
	if (ret_error_j != NULL)
		work.error_j = stats_unknown(arena, n);
	if (n > UINT32_MAX / 2 || work.energy_j == NULL || (ret_error_j != NULL && work.error_j == NULL))
		return -ENOMEM;
	struct arena *scratch = arena_new();
	int r = scratch != NULL ? fill(&work, scratch) : -ENOMEM;
	arena_free(scratch);
	if (r < 0)
		return r;
	*ret_energy_j = work.energy_j;
	if (ret_error_j != NULL)
		*ret_error_j = work.error_j;
	return 0;
}
