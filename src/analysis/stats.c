#include "analysis/stats.h"

#include "analysis/names.h"
#include "base/util.h"

#include <errno.h>

struct value_stats tally_value_stats(const struct tally *tally)
{
	const double none = (double)NAN;
	if (tally->n == 0)
		return (struct value_stats){none, none, none, none, none};
	return (struct value_stats){
		.min = tally->min,
		.max = tally->max,
		.mean = tally->total / (double)tally->n,
		.std = sqrt(tally->squares / (double)tally->n),
		.total = tally->total,
	};
}

struct stats tally_stats(const struct tally *tally)
{
	struct value_stats known = tally_value_stats(tally);
	return (struct stats){
		.last = tally->n > 0 ? tally->last : (double)NAN,
		.min = known.min,
		.max = known.max,
		.mean = known.mean,
		.count = tally->n,
	};
}

double *stats_unknown(struct arena *arena, size_t n)
{
	double *values = arena_alloc(arena, n, sizeof(*values));
	for (size_t i = 0; values != NULL && i < n; i++)
		values[i] = (double)NAN;
	return values;
}

double stats_max(struct run_values values, size_t n)
{
	int64_t max = VALUE_MISSING; // smaller than any known value
	for (size_t i = 0; i < n && values_any(values); i++) {
		int64_t value = values_at(values, i);
		max = value > max ? value : max;
	}
	return value_to_double(max, 1);
}

void stats_run_metrics(const struct run *run, struct stats ret_stats[RUN_COUNT])
{
	for (size_t m = 0; m < RUN_COUNT; m++) {
		struct tally tally = {0};
		struct run_values values = run_column(run, m);
		for (size_t i = 0; i < run->n && values_any(values); i++)
			tally_add(&tally, value_to_double(values_at(values, i), 1));
		ret_stats[m] = tally_stats(&tally);
	}
}

int stats_user_metrics(const struct run *run, struct arena *arena, struct user_metric_finding **ret_metrics,
	size_t *ret_count)
{
	struct names names;
	*ret_metrics = NULL;
	*ret_count = 0;
	if (run->n_user_metrics == 0)
		return 0;
	if (names_make(&run->user_metrics[0].name, sizeof(run->user_metrics[0]), run->n_user_metrics, arena, &names) <
		0)
		return -ENOMEM;
	struct user_metric_finding *metrics = arena_alloc(arena, names.n, sizeof(*metrics));
	struct tally *tallies = arena_alloc(arena, names.n, sizeof(*tallies));
	if (metrics == NULL || tallies == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_user_metrics; i++)
		tally_add(&tallies[names.of[i]], run->user_metrics[i].value);
	for (size_t k = 0; k < names.n; k++)
		metrics[k] = (struct user_metric_finding){.name = names.text[k], .stats = tally_stats(&tallies[k])};
	*ret_metrics = metrics;
	*ret_count = names.n;
	return 0;
}
