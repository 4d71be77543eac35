#include "analysis/compare/compare.h"

#include "analysis/compare/block_match.h"
#include "base/util.h"

#include <errno.h>

struct work {
	const struct compare_session *sessions;
	struct comparison *comparison;
	const struct saved_block ***blocks; // per session: n_blocks entries in matching order
	const char **names;                 // names of the matched blocks
	struct arena *arena;
};

/* Rows */

static bool comes_after(const struct compare_value *a, const struct compare_value *b)
{
	return a->value > b->value || (isnan(a->value) && !isnan(b->value));
}

// Insertion sort: few sessions, and a stable order of equal values.
static void sort_values(struct compare_value *values, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct compare_value value = values[i];
		size_t k = i;
		for (; k > 0 && comes_after(&values[k - 1], &value); k--)
			values[k] = values[k - 1];
		values[k] = value;
	}
}

// One figure of a session: `block` is NULL for the whole session.
typedef struct compare_value figure(const struct saved_blocks *results, const struct saved_block *block,
	const char *metric);

static double metric_value(const struct saved_blocks *results, const double *values, const char *metric)
{
	for (size_t m = 0; m < results->n_metrics; m++)
		if (strcmp(results->metrics[m], metric) == 0)
			return values[m];
	return (double)NAN;
}

static struct compare_value usage(const struct saved_blocks *results, const struct saved_block *block,
	const char *metric)
{
	const double *values = block != NULL ? block->usage : results->overall;
	return (struct compare_value){.value = metric_value(results, values, metric), .error = (double)NAN};
}

static struct compare_value compute_time(const struct saved_blocks *results, const struct saved_block *block,
	const char *metric)
{
	return (struct compare_value){.value = block->compute_time_s, .error = (double)NAN};
}

static struct compare_value energy(const struct saved_blocks *results, const struct saved_block *block,
	const char *metric)
{
	return block != NULL ? (struct compare_value){.value = block->total_j, .error = block->error_j}
			     : (struct compare_value){.value = results->total_j, .error = results->error_j};
}

static struct compare_value duration(const struct saved_blocks *results, const struct saved_block *block,
	const char *metric)
{
	return (struct compare_value){.value = results->duration_s, .error = (double)NAN};
}

// The relative error is that of the energy; a counter that never changed has only an absolute one.
static struct compare_value power(const struct saved_blocks *results, const struct saved_block *block,
	const char *metric)
{
	double error_w = results->total_j > 0 ? results->error_j / results->total_j * results->mean_w
		: results->duration_s > 0        ? results->error_j / results->duration_s
						 : (double)NAN;
	return (struct compare_value){.value = results->mean_w, .error = error_w};
}

enum { WHOLE = -1 };

static int make_row(const struct work *work, const char *name, long block, const char *metric, figure *ask,
	struct compare_row *row)
{
	size_t n = work->comparison->n_sessions;
	*row = (struct compare_row){name, arena_alloc(work->arena, n, sizeof(*row->values))};
	if (row->values == NULL)
		return -ENOMEM;
	for (size_t s = 0; s < n; s++) {
		row->values[s] = ask(work->sessions[s].results, block != WHOLE ? work->blocks[s][block] : NULL, metric);
		row->values[s].session = work->sessions[s].name;
	}
	sort_values(row->values, n);
	return 0;
}

static int make_block_rows(const struct work *work, const char *metric, figure *ask, struct compare_row *rows)
{
	int r = 0;
	for (size_t b = 0; r == 0 && b < work->comparison->n_blocks; b++)
		r = make_row(work, work->names[b], (long)b, metric, ask, &rows[b]);
	return r;
}

static struct compare_row *allocate(const struct work *work, size_t n, size_t m)
{
	size_t all;
	return __builtin_mul_overflow(n, m, &all) ? NULL : arena_alloc(work->arena, all, sizeof(struct compare_row));
}

static int make_rows(const struct work *work, const struct saved_blocks *first)
{
	struct comparison *c = work->comparison;
	c->n_metrics = first->n_metrics;
	c->overall = allocate(work, c->n_metrics, 1);
	c->usage = allocate(work, c->n_metrics, c->n_blocks);
	c->compute_time = allocate(work, c->n_blocks, 1);
	c->block_energy = allocate(work, c->n_blocks, 1);
	if (c->overall == NULL || c->usage == NULL || c->compute_time == NULL || c->block_energy == NULL)
		return -ENOMEM;
	int r = make_block_rows(work, NULL, compute_time, c->compute_time);
	for (size_t m = 0; r == 0 && m < c->n_metrics; m++) {
		r = make_row(work, first->metrics[m], WHOLE, first->metrics[m], usage, &c->overall[m]);
		if (r == 0)
			r = make_block_rows(work, first->metrics[m], usage, &c->usage[m * c->n_blocks]);
	}
	for (size_t s = 0; s < c->n_sessions; s++)
		c->has_energy |= work->sessions[s].results->has_energy;
	if (r == 0)
		r = make_row(work, "", WHOLE, NULL, energy, &c->energy);
	if (r == 0)
		r = make_row(work, "", WHOLE, NULL, duration, &c->duration);
	if (r == 0)
		r = make_row(work, "", WHOLE, NULL, power, &c->power);
	return r < 0 ? r : make_block_rows(work, NULL, energy, c->block_energy);
}

/* Sessions */

static size_t first_by_name(const struct compare_session *sessions, size_t n)
{
	size_t first = 0;
	for (size_t s = 1; s < n; s++)
		if (strcmp(sessions[s].name, sessions[first].name) < 0)
			first = s;
	return first;
}

static bool differ(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) != 0;
}

static int warn_of_units(const struct compare_session *a, const struct compare_session *b,
	struct block_warnings *warnings)
{
	if (!differ(a->results->ram_unit, b->results->ram_unit) &&
		!differ(a->results->gpu_ram_unit, b->results->gpu_ram_unit))
		return 0;
	return block_warn(warnings,
		"\"%s\" and \"%s\" have different units of memory: their figures are not comparable", a->name, b->name);
}

int compare_make(const struct compare_session *sessions, size_t n_sessions, struct arena *arena,
	struct comparison *ret_comparison, struct wattle_error *reterr)
{
	struct comparison comparison = {.n_sessions = n_sessions};
	struct work work = {.sessions = sessions, .comparison = &comparison, .arena = arena};
	struct block_warnings warnings = {.arena = arena};
	size_t first = first_by_name(sessions, n_sessions);
	comparison.n_blocks = sessions[first].results->n_blocks;
	comparison.sessions = arena_alloc(arena, n_sessions, sizeof(*comparison.sessions));
	if (comparison.sessions == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	for (size_t s = 0; s < n_sessions; s++)
		comparison.sessions[s] = sessions[s].name;
	int r = block_match(sessions, n_sessions, first, &work.blocks, &work.names, &warnings, reterr);
	for (size_t s = 0; r == 0 && s < n_sessions; s++)
		r = warn_of_units(&sessions[first], &sessions[s], &warnings);
	if (r == 0)
		r = make_rows(&work, sessions[first].results);
	comparison.warnings = warnings.texts;
	comparison.n_warnings = warnings.n;
	if (r == 0)
		*ret_comparison = comparison;
	return r == -ENOMEM ? error_set(reterr, r, "out of memory") : r;
}

/* Changes */

struct compare_figure compare_figure_of(const struct comparison *comparison, const struct compare_row *row,
	const char *session)
{
	for (size_t i = 0; i < comparison->n_sessions; i++)
		if (strcmp(row->values[i].session, session) == 0)
			return (struct compare_figure){row->values[i].value, row->values[i].error};
	return (struct compare_figure){(double)NAN, (double)NAN};
}

static double or_zero(double error)
{
	return isnan(error) ? 0 : error;
}

static enum compare_verdict verdict(struct compare_figure first, struct compare_figure other)
{
	if (isnan(first.value) || isnan(other.value))
		return COMPARE_UNKNOWN;
	if (isnan(first.error) || isnan(other.error))
		return first.value == other.value ? COMPARE_EQUAL : COMPARE_UNDECIDED;
	if (fabs(other.value - first.value) <= first.error + other.error)
		return COMPARE_NO_CHANGE;
	return other.value < first.value ? COMPARE_LESS : COMPARE_MORE;
}

struct compare_change compare_change(struct compare_figure first, struct compare_figure other)
{
	struct compare_change change = {(double)NAN, (double)NAN, verdict(first, other)};
	if (!(first.value > 0) || isnan(other.value))
		return change;
	double ratio = other.value / first.value;
	change.percent = 100 * (ratio - 1);
	if (!isnan(first.error) || !isnan(other.error))
		change.error_percent = 100 *
			hypot(or_zero(other.error) / first.value, ratio * or_zero(first.error) / first.value);
	return change;
}
