#include "builder.h"

#include "analysis/energy/domains.h"

static const double none = NAN;

/* Changes to the reference run: 10 s at 10 Hz, package-0 counting 20 W. */
static void nothing(struct run *run)
{
}

static void doubles_half_way(struct run *run)
{
	for (size_t i = 50; i < run->n; i++)
		run->devices[0].values[DEVICE_ENERGY][i] += (int64_t)(i - 50) * 2000000;
}

static void lost_in_the_middle(struct run *run)
{
	for (size_t i = 30; i < 60; i++)
		run->devices[0].values[DEVICE_ENERGY][i] = VALUE_MISSING;
}

static void lost_at_the_end(struct run *run)
{
	for (size_t i = 51; i < run->n; i++)
		run->devices[0].values[DEVICE_ENERGY][i] = VALUE_MISSING;
}

static void one_value_only(struct run *run)
{
	for (size_t i = 1; i < run->n; i++)
		run->devices[0].values[DEVICE_ENERGY][i] = VALUE_MISSING;
}

static void nothing_readable(struct run *run)
{
	one_value_only(run);
	run->devices[0].values[DEVICE_ENERGY][0] = VALUE_MISSING;
}

// The counter restarted at 0 after 5 s and was extended from there: the energy between 4.9 and 5 s is lost.
static void reset_half_way(struct run *run)
{
	for (size_t i = 50; i < run->n; i++)
		run->devices[0].values[DEVICE_ENERGY][i] -= 2000000;
	build_event(run, 5, "reset", "package-0: the energy counter was reset");
}

static void wrapped_twice(struct run *run)
{
	build_event(run, 2, "wrap", "package-0: the energy counter wrapped");
	build_event(run, 7, "wrap", "package-0: the energy counter wrapped");
	build_event(run, 7, "wrap", "package-01: another one wrapped");
}

static void updated_each_second(struct run *run)
{
	int64_t *uj = run->devices[0].values[DEVICE_ENERGY], *stamp_ns = run->devices[0].values[DEVICE_ENERGY_TIME];
	for (size_t i = 0; i < run->n; i++) {
		uj[i] = uj[i - i % 10];
		stamp_ns[i] = stamp_ns[i - i % 10];
	}
}

static void power_instead(struct run *run)
{
	struct run_device *device = &run->devices[0];
	device->has_energy = false;
	for (size_t i = 0; i < run->n; i++) {
		device->values[DEVICE_ENERGY][i] = VALUE_MISSING;
		device->values[DEVICE_POWER][i] = 20000;
	}
}

static void power_ramp(struct run *run)
{
	power_instead(run);
	for (size_t i = 0; i < run->n; i++)
		run->devices[0].values[DEVICE_POWER][i] = 10000 + (int64_t)i * 200;
}

static void power_lost_for(struct run *run, size_t first, size_t last)
{
	power_instead(run);
	for (size_t i = first; i < last; i++)
		run->devices[0].values[DEVICE_POWER][i] = VALUE_MISSING;
}

static void power_lost_shortly(struct run *run)
{
	power_lost_for(run, 30, 35);
}

static void power_lost_for_long(struct run *run)
{
	power_lost_for(run, 30, 49);
}

static void power_begins_late(struct run *run)
{
	power_lost_for(run, 0, 1);
}

static void power_from_a_model(struct run *run)
{
	power_instead(run);
	run->devices[0].provenance = PROVENANCE_ESTIMATED;
}

// The first sample is taken 0.5 s before the target starts, the last one 0.5 s after it has ended.
static void sampled_around(struct run *run)
{
	run->segments[0].start_ns = at_s(0.5);
	run->segments[0].end_ns = at_s(9.5);
}

static void power_sampled_around(struct run *run)
{
	power_instead(run);
	sampled_around(run);
}

static void second_segment(struct run *run)
{
	run->segments[0].end_ns = at_s(4);
	run->n_segments = 1;
	build_segment(run, 104, 109.9);
	for (size_t i = 41; i < run->n; i++)
		run->t_ns[i] = at_s(104 + 0.1 * (double)(i - 41));
	// Each recorder counts from 0 again.
	int64_t base_uj = run->devices[0].values[DEVICE_ENERGY][41];
	for (size_t i = 41; i < run->n; i++)
		run->devices[0].values[DEVICE_ENERGY][i] -= base_uj;
}

static const struct row {
	const char *teaches;
	void (*change)(struct run *run);
	double energy_j, mean_w, max_w;
	enum provenance provenance;
	int64_t wraps, gaps;
} rows[] = {
	{"20 W over 10 s: 200 J", nothing, 200, 20, 20, PROVENANCE_MEASURED, 0, 0},
	{"step from 20 to 40 W after 5 s", doubles_half_way, 300, 30, 40, PROVENANCE_MEASURED, 0, 0},
	{"counter unreadable for a while: it continues counting", lost_in_the_middle, 200, 20, 20, PROVENANCE_MEASURED,
		0, 1},
	{"energy after the last value: not added", lost_at_the_end, 100, 20, 20, PROVENANCE_MEASURED, 0, 1},
	{"single value of a counter: no energy", one_value_only, NAN, NAN, NAN, PROVENANCE_MEASURED, 0, 1},
	{"nothing readable: unknown, not 0", nothing_readable, NAN, NAN, NAN, PROVENANCE_MEASURED, 0, 1},
	{"reset: the energy in between is lost", reset_half_way, 198, 19.8, 20, PROVENANCE_MEASURED, 0, 1},
	{"wraps: extended by the recorder, counted by domain name", wrapped_twice, 200, 20, 20, PROVENANCE_MEASURED, 2,
		0},
	{"slow counter: interpolated between updates, no peaks of 200 W", updated_each_second, 200, 20, 20,
		PROVENANCE_MEASURED, 0, 0},
	{"power only: integrated, and marked as derived", power_instead, 200, 20, 20, PROVENANCE_DERIVED, 0, 0},
	{"ramp from 10 to 30 W: the trapezoidal rule is exact", power_ramp, 200, 20, 30, PROVENANCE_DERIVED, 0, 0},
	{"0.6 s without power: bridged", power_lost_shortly, 200, 20, 20, PROVENANCE_DERIVED, 0, 1},
	{"2 s without power: a gap, 40 J less", power_lost_for_long, 160, 20, 20, PROVENANCE_DERIVED, 0, 1},
	{"first power reading: covers the moment before it", power_begins_late, 200, 20, 20, PROVENANCE_DERIVED, 0, 0},
	{"power of a model: estimated", power_from_a_model, 200, 20, 20, PROVENANCE_ESTIMATED, 0, 0},
	{"energy before and after the target: not part of the run", sampled_around, 180, 20, 20, PROVENANCE_MEASURED, 0,
		0},
	{"integrated power before and after the target: not part of the run", power_sampled_around, 180, 20, 20,
		PROVENANCE_DERIVED, 0, 0},
	{"two segments of 4 s and 5.9 s: the pause between them does not count", second_segment, 198, 20, 20,
		PROVENANCE_MEASURED, 0, 0},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, 1, 0, 0, 2);
	build_stamps(build_metered(&run, "package-0", DOMAIN_PACKAGE, 20));
	row->change(&run);
	assert_int_equal(findings_make(&run, &findings), 0);
	const struct domain_finding *d = &findings.domains[0];
	assert_close(d->energy_j, row->energy_j);
	assert_close(d->mean_w, row->mean_w);
	assert_close(d->max_w, row->max_w);
	assert_int_equal(d->provenance, row->provenance);
	assert_int_equal(d->wraps, row->wraps);
	assert_int_equal(d->gaps, row->gaps);
	assert_close(findings.total_j, row->energy_j);
	assert_close(ledger_sum(&findings.ledger), row->energy_j);
	assert_close(findings.ledger.target_j, row->energy_j / 2); // half of the busy time
	struct mean_power power = findings_mean_power(&findings);
	assert_close(power.total_w, row->mean_w); // over the time with readings, not over all of it
	assert_close(power.target_w, row->mean_w / 2);
	findings_finish(&findings);
	build_finish(&run);
}

static void update_period_shows(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_metered(&run, "package-0", DOMAIN_PACKAGE, 20);
	updated_each_second(&run);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.domains[0].update_period_s, 1);
	findings_finish(&findings);
	run.devices[0].update_period_s = 0.001;
	for (size_t i = 0; i < run.n; i++)
		run.devices[0].values[DEVICE_ENERGY][i] = (int64_t)i;
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.domains[0].update_period_s, 0.001);
	findings_finish(&findings);
	build_finish(&run);
}

/* Domains of the total. */
static const struct nest_row {
	const char *teaches;
	struct {
		const char *name, *inside;
		enum domain_kind kind;
		double power_w;
		enum provenance provenance;
	} domains[6];
	double total_j;
	enum provenance provenance;
} nest_rows[] = {
	{"total: packages, DRAM and GPUs, not core, uncore, psys",
		{{"psys", "", DOMAIN_PSYS, 100, 0}, {"package-0", "psys", DOMAIN_PACKAGE, 20, 0},
			{"core-0", "package-0", DOMAIN_CORE, 12, 0}, {"dram-0", "", DOMAIN_DRAM, 3, 0},
			{"package-1", "", DOMAIN_PACKAGE, 10, 0}, {"gpu-0", "", DOMAIN_GPU, 50, 0}},
		830, PROVENANCE_MEASURED},
	{"total: a die inside a package is already included",
		{{"package-0", "", DOMAIN_PACKAGE, 20, 0}, {"package-0-die-0", "package-0", DOMAIN_PACKAGE, 9, 0}}, 200,
		PROVENANCE_MEASURED},
	{"total: node and battery alone give none",
		{{"node", "", DOMAIN_NODE, 300, 0}, {"battery", "", DOMAIN_BATTERY, 20, 0}}, NAN, 0},
	{"total: an estimated package is added, and the total is estimated",
		{{"package-0", "", DOMAIN_PACKAGE, 20, PROVENANCE_ESTIMATED}, {"gpu-0", "", DOMAIN_GPU, 50, 0}}, 700,
		PROVENANCE_ESTIMATED},
	{"total: no domain, no total", {{NULL, NULL, 0, 0, 0}}, NAN, 0},
};

static void check_nest(void **state)
{
	const struct nest_row *row = *state;
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_cpu(&run, 1, 0, 0, 2);
	for (size_t i = 0; i < 6 && row->domains[i].name != NULL; i++) {
		struct run_device *device = build_metered(&run, row->domains[i].name, row->domains[i].kind,
			row->domains[i].power_w);
		text_copy(device->inside, sizeof(device->inside), row->domains[i].inside);
		device->provenance = row->domains[i].provenance;
	}
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.total_j, row->total_j);
	assert_close(ledger_sum(&findings.ledger), row->total_j);
	if (isnan(row->total_j)) {
		assert_close(findings.ledger.target_j, none);
		assert_close(findings.error_j, none);
	} else {
		assert_int_equal(findings.provenance, row->provenance);
	}
	findings_finish(&findings);
	build_finish(&run);
}

static void carbon_and_pue(void **state)
{
	struct run run;
	struct findings findings;
	build_simple(&run, 101);
	build_metered(&run, "package-0", DOMAIN_PACKAGE, 20);
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.carbon_g, none);
	findings_finish(&findings);
	build_fact(&run, "carbon_intensity_g_per_kwh", "360");
	build_fact(&run, "pue", "1.5");
	assert_int_equal(findings_make(&run, &findings), 0);
	assert_close(findings.total_j, 200);
	assert_close(findings.facility_j, 300);
	assert_close(findings.carbon_g, 0.03);
	findings_finish(&findings);
	build_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, nest_rows, check_nest);
	ROWS_ADD_ONE(&tests, "update period: slower in the samples than stated: from the samples; faster: as stated",
		update_period_shows);
	ROWS_ADD_ONE(&tests, "PUE multiplies the energy used for carbon, not the meters", carbon_and_pue);
	return rows_run(&tests, "energy");
}
