#include "analysis/findings.h"

#include "analysis/block/blocks.h"
#include "analysis/energy/domains.h"
#include "analysis/metadata_keys.h"
#include "analysis/run/internal.h"
#include "analysis/stats.h"
#include "base/nan_sum.h"
#include "base/search.h"
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

static int64_t max_of_both(const struct run *run, enum run_metric main, enum run_metric descendants, size_t *ret_sample)
{
	int64_t max = VALUE_MISSING; // smaller than any known value
	for (size_t i = 0; i < run->n; i++) {
		int64_t sum = run_sum(run, main, descendants, i);
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
		? run_sum(run, RUN_MAIN_RSS, RUN_DESCENDANTS_RSS, sample)
		: VALUE_MISSING;
}

static void carbon(const struct run *run, struct findings *findings)
{
	double pue = run_metadata_double(run, META_KEY_PUE);
	findings->pue = isnan(pue) ? 1 : pue;
	findings->facility_j = findings->total_j * findings->pue;
	findings->carbon_intensity_g_per_kwh = run_metadata_double(run, META_KEY_CARBON_INTENSITY);
	findings->carbon_g = findings->facility_j / joules_per_kwh * findings->carbon_intensity_g_per_kwh;
}

static void overall(const struct run *run, const struct columns *columns, struct findings *findings)
{
	struct tally tallies[TRACKING_METRICS] = {0};
	double row[TRACKING_METRICS];
	for (size_t i = 0; i < run->n; i++) {
		columns_at(columns, i, row);
		for (size_t c = 0; c < TRACKING_METRICS; c++)
			tally_add(&tallies[c], row[c]);
	}
	for (size_t c = 0; c < TRACKING_METRICS; c++)
		findings->overall[c] = tally_value_stats(&tallies[c]);
}

static int energies(const struct run *run, struct findings *findings)
{
	struct windows *windows = arena_alloc(findings->times_arena, 1, sizeof(*windows));
	struct metering *metering = arena_alloc(findings->times_arena, 1, sizeof(*metering));
	if (windows == NULL || metering == NULL || windows_make(run, findings->times_arena, windows) < 0 ||
		domains_make(findings, windows, findings->times_arena, metering) < 0)
		return -ENOMEM;
	findings->windows = windows;
	findings->metering = metering;
	findings->self_energy_j = findings->ledger.wattle_j;
	carbon(run, findings);
	return 0;
}

static int make(const struct run *run, struct arena *scratch, struct findings *findings)
{
	struct columns columns;
	findings->duration_s = run_duration_s(run);
	findings->complete = is_complete(run);
	footer_figures(run, findings);
	memory(run, findings);
	stats_run_metrics(run, findings->run_metrics);
	// Energies come first: their temporary memory is freed before the columns need theirs.
	if (stats_user_metrics(run, findings->arena, &findings->user_metrics, &findings->n_user_metrics) < 0 ||
		energies(run, findings) < 0 || gpus_make(findings) < 0 || columns_make(run, scratch, &columns) < 0)
		return -ENOMEM;
	overall(run, &columns, findings);
	usage_make(findings, &columns, &findings->usage);
	return blocks_make(findings, &columns, findings->windows, findings->metering, scratch);
}

static int make_with(struct findings findings, struct findings *ret_findings)
{
	findings.arena = arena_new();
	findings.times_arena = arena_new();
	struct arena *scratch = arena_new();
	bool ready = findings.arena != NULL && findings.times_arena != NULL && scratch != NULL;
	int r = ready ? make(findings.run, scratch, &findings) : -ENOMEM;
	arena_free(scratch);
	if (r < 0)
		findings_finish(&findings);
	else
		*ret_findings = findings;
	return r;
}

int findings_make(const struct run *run, struct findings *ret_findings)
{
	return make_with((struct findings){.run = run}, ret_findings);
}

int findings_make_for_charts(const struct run *run, struct findings *ret_findings)
{
	return make_with((struct findings){.run = run, .keeps_shares = true}, ret_findings);
}

int findings_make_one_of(const struct run *run, struct counter_update_phase *const *update_phases,
	struct findings *ret_findings)
{
	return make_with((struct findings){.run = run, .update_phases = update_phases}, ret_findings);
}

int findings_make_quick(const struct run *run, struct findings *ret_findings)
{
	return make_with((struct findings){.run = run, .quick = true}, ret_findings);
}

void findings_drop_times(struct findings *findings)
{
	arena_free(findings->times_arena);
	findings->times_arena = NULL;
	findings->windows = NULL;
	findings->metering = NULL;
}

void findings_finish(struct findings *findings)
{
	findings_drop_times(findings);
	arena_free(findings->arena);
	*findings = (struct findings){0};
}

double findings_block_calibration_j(const struct findings *findings, const struct block_finding *block)
{
	double sum_j = (double)NAN;
	for (size_t d = 0; block->domain_j != NULL && d < findings->n_domains; d++)
		if (findings->domains[d].in_total)
			sum_j = nan_sum(sum_j, calibration_error_j(findings->domains[d].device, block->domain_j[d]));
	return sum_j;
}

static bool is_block_before(const void *item, const void *name)
{
	return strcmp(((const struct block_finding *)item)->name, name) < 0;
}

uint32_t findings_block(const struct findings *findings, const char *name)
{
	size_t at = search_first(findings->blocks, findings->n_blocks, sizeof(*findings->blocks), name,
		is_block_before);
	bool is_it = at < findings->n_blocks && strcmp(findings->blocks[at].name, name) == 0;
	return is_it ? (uint32_t)at : UINT32_MAX;
}
