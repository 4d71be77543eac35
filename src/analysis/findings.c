#include "analysis/findings.h"

#include "analysis/block/blocks.h"
#include "analysis/energy/domains.h"
#include "analysis/facts.h"
#include "analysis/footer.h"
#include "analysis/gpu.h"
#include "analysis/stats.h"
#include "analysis/usage.h"
#include "base/util.h"

#include <errno.h>

static const double joules_per_kwh = 3.6e6;

static bool is_complete(const struct run *run)
{
	for (size_t s = 0; s < run->n_segments; s++)
		if (!run->segments[s].complete)
			return false;
	return run->n_segments > 0;
}

static int64_t sum_at(const struct run *run, enum run_metric main, enum run_metric descendants, size_t sample)
{
	int64_t a = run->values[main][sample], b = run->values[descendants][sample];
	return value_ok(a) && value_ok(b) ? a + b : VALUE_MISSING;
}

static int64_t max_of_both(const struct run *run, enum run_metric main, enum run_metric descendants, size_t *ret_sample)
{
	int64_t max = VALUE_MISSING; // the least of all
	for (size_t i = 0; i < run->n; i++) {
		int64_t sum = sum_at(run, main, descendants, i);
		if (sum <= max)
			continue;
		max = sum;
		*ret_sample = i;
	}
	return max;
}

static void memory(const struct run *run, struct findings *findings)
{
	size_t sample = 0;
	findings->max_uss_bytes = max_of_both(run, RUN_MAIN_USS, RUN_DESCENDANTS_USS, &sample);
	findings->max_pss_bytes = max_of_both(run, RUN_MAIN_PSS, RUN_DESCENDANTS_PSS, &sample);
	findings->rss_at_max_pss_bytes = value_ok(findings->max_pss_bytes)
		? sum_at(run, RUN_MAIN_RSS, RUN_DESCENDANTS_RSS, sample)
		: VALUE_MISSING;
}

static void carbon(const struct run *run, struct findings *findings)
{
	double pue = run_fact_double(run, FACT_PUE);
	findings->pue = isnan(pue) ? 1 : pue;
	findings->facility_j = findings->total_j * findings->pue;
	findings->carbon_g = findings->facility_j / joules_per_kwh * run_fact_double(run, FACT_CARBON_INTENSITY);
}

static void overall(const struct run *run, const struct columns *columns, struct findings *findings)
{
	for (size_t c = 0; c < COLUMN_COUNT; c++) {
		struct tally tally = {0};
		for (size_t i = 0; i < run->n; i++)
			tally_add(&tally, columns->values[c][i]);
		findings->overall[c] = tally_value_stats(&tally);
	}
}

static int make(const struct run *run, struct arena *scratch, struct findings *findings)
{
	struct windows windows;
	struct columns columns;
	struct metering metering;
	findings->duration_s = run_duration_s(run);
	findings->complete = is_complete(run);
	footer_figures(run, findings);
	memory(run, findings);
	stats_run_metrics(run, findings->run_metrics);
	if (stats_user_metrics(run, findings->arena, &findings->user_metrics, &findings->n_user_metrics) < 0 ||
		windows_make(run, scratch, &windows) < 0 || columns_make(run, scratch, &columns) < 0 ||
		domains_make(findings, &windows, scratch, &metering) < 0 || gpus_make(findings) < 0)
		return -ENOMEM;
	findings->self_energy_j = findings->ledger.wattle_j;
	carbon(run, findings);
	usage_make(findings, &columns, &findings->usage);
	overall(run, &columns, findings);
	return blocks_make(findings, &columns, &windows, &metering, scratch);
}

int findings_make(const struct run *run, struct findings *ret_findings)
{
	struct findings findings = {.run = run, .arena = arena_new()};
	struct arena *scratch = arena_new();
	int r = findings.arena != NULL && scratch != NULL ? make(run, scratch, &findings) : -ENOMEM;
	arena_free(scratch);
	if (r < 0)
		findings_finish(&findings);
	else
		*ret_findings = findings;
	return r;
}

void findings_finish(struct findings *findings)
{
	arena_free(findings->arena);
	*findings = (struct findings){0};
}
