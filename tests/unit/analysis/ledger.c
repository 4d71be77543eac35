#include "analysis/energy/domains.h"

#include "analysis/energy/timeline.h"
#include "random_run.h"

/* Whatever is known, each joule is in exactly one row of the ledger. */

static void assert_closes(const struct ledger *ledger, double energy_j)
{
	assert_close(ledger_sum(ledger), energy_j);
	const double parts[] = {ledger->target_j, ledger->others_j, ledger->wattle_j, ledger->unattributed_j};
	for (size_t i = 0; i < ARRAY_SIZE(parts) && !isnan(energy_j); i++)
		assert_true(parts[i] >= 0);
	assert_true(isnan(ledger->idle_j) || ledger->idle_j >= 0);
}

static void assert_error(double error_j, double energy_j)
{
	assert_true(isnan(energy_j) ? isnan(error_j) : isfinite(error_j) && error_j >= 0);
}

static void assert_domain(const struct domain_finding *d)
{
	assert_closes(&d->ledger, d->energy_j);
	assert_error(d->error_j, d->energy_j);
	assert_error(d->target_error_j, d->energy_j);
	assert_error(d->integrated_error_j, d->integrated_j);
	if (d->provenance == PROVENANCE_MEASURED && d->device->resolution_j > 0 && !isnan(d->energy_j))
		assert_true(d->error_j >= d->device->resolution_j);
}

static void assert_blocks(const struct findings *findings)
{
	for (size_t i = 0; i < findings->n_blocks; i++) {
		const struct block_finding *block = &findings->blocks[i];
		assert_error(block->error_j, block->total_j);
		assert_true(isnan(block->total_j) || block->total_j <= findings->ledger.target_j * (1 + 1e-9) + 1e-9);
	}
}

// Idle energy that is unknown for one domain is in its other rows; another domain's stays known.
static void unknown_idle_energy(void **state)
{
	const double none = (double)NAN;
	const struct ledger busy = {6, 3, 1, none, 0}, idle = {2, 0, 0, 8, 0};
	struct ledger sum = ledger_empty();
	assert_close(ledger_sum(&sum), 0);
	ledger_add(&sum, &busy);
	assert_true(isnan(sum.idle_j));
	assert_close(ledger_sum(&sum), 10);
	ledger_add(&sum, &idle);
	ledger_add(&sum, &busy);
	assert_close(sum.idle_j, 8);
	assert_close(ledger_sum(&sum), 30);
}

static void ledger_closes(void **state)
{
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15);
		struct run run;
		struct findings findings;
		random_run(&run, &random);
		assert_int_equal(findings_make(&run, &findings), 0);
		assert_closes(&findings.ledger, findings.total_j);
		double sum_j = 0;
		for (size_t i = 0; i < findings.n_domains; i++) {
			const struct domain_finding *d = &findings.domains[i];
			assert_domain(d);
			sum_j += d->in_total && !isnan(d->energy_j) ? d->energy_j : 0;
		}
		if (!isnan(findings.total_j))
			assert_close(findings.total_j, sum_j);
		assert_error(findings.target_error_j, findings.total_j);
		assert_blocks(&findings);
		findings_finish(&findings);
		build_finish(&run);
	}
}

static double trapezoid_j(const struct timeline *timeline, const double *power_w)
{
	double sum_j = 0;
	for (size_t s = 0; s < timeline->run->n_segments; s++) {
		size_t before = SIZE_MAX;
		for (size_t i = timeline->intervals[s].begin; i < timeline->intervals[s].end; i++) {
			if (isnan(power_w[i]))
				continue;
			double seconds = before != SIZE_MAX ? (double)(timeline->t_ns[i] - timeline->t_ns[before]) / 1e9
							    : 0;
			sum_j += seconds > 0 ? seconds * (power_w[before] + power_w[i]) / 2 : 0;
			before = i;
		}
	}
	return sum_j;
}

// The midpoint of two instants is a whole nanosecond, and these runs have steps of 10 J in a millisecond.
static void assert_near(double actual, double expected)
{
	assert_true(fabs(actual - expected) <= 1e-9 * fabs(expected) + 1e-3);
}

static void check_timeline(const struct run *run)
{
	struct arena *arena = arena_new();
	struct timeline timeline;
	struct timeline_track track;
	size_t known[16], n = 0;
	double all_j = 0;
	assert_int_equal(timeline_make(run, arena, &timeline), 0);
	for (size_t d = 0; d < timeline.findings.n_domains; d++) {
		const struct domain_finding *domain = &timeline.findings.domains[d];
		assert_int_equal(timeline_track_make(&timeline, &d, 1, arena, &track), 0);
		assert_near(trapezoid_j(&timeline, track.all_w), isnan(domain->energy_j) ? 0 : domain->energy_j);
		assert_near(trapezoid_j(&timeline, track.target_w),
			isnan(domain->energy_j) ? 0 : domain->ledger.target_j);
		known[n++] = d;
		all_j += isnan(domain->energy_j) ? 0 : domain->energy_j;
	}
	assert_int_equal(timeline_track_make(&timeline, known, n, arena, &track), 0);
	assert_near(trapezoid_j(&timeline, track.all_w), all_j);
	arena_free(arena);
}

static void powers_integrate(void **state)
{
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15);
		struct run run;
		random_run(&run, &random);
		check_timeline(&run);
		build_finish(&run);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "unknown idle energy: contained in the other rows", unknown_idle_energy);
	ROWS_ADD_ONE(&tests, "1,000 random runs: the trapezoidal rule over a timeline's powers gives each energy",
		powers_integrate);
	ROWS_ADD_ONE(&tests, "3,000 random runs: rows add up to 1e-9, none is negative, every error is finite",
		ledger_closes);
	return rows_run(&tests, "ledger");
}
