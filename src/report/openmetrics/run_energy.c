// Energy and power at the instants of the timeline's grid.
#include "report/openmetrics/internal.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"

#include <errno.h>

static const struct domain_finding *domain_at(const struct om_run *w, size_t i)
{
	return &w->timeline.findings.domains[i];
}

static bool is_known(const struct om_run *w, size_t i)
{
	return w->timeline.metering.domains[i].curve.known;
}

static void series_of_domain(struct om_run *w, size_t i)
{
	const struct run_device *device = domain_at(w, i)->device;
	om_run_series(w, "domain", device->name);
	om_run_label(w, "kind", domain_kind_name(device->kind));
}

static void write_info(struct om_run *w)
{
	om_run_family(w, &om_families[FAMILY_DOMAIN]);
	for (size_t i = 0; i < w->timeline.findings.n_domains; i++) {
		const struct domain_finding *domain = domain_at(w, i);
		const struct run_device *device = domain->device;
		const struct om_label labels[] = {
			{"run", run_metadata(w->run, META_KEY_RUN_ID)},
			{"domain", device->name},
			{"kind", domain_kind_name(device->kind)},
			{"inside", device->inside},
			{"device", device->device},
			{"uuid", device->uuid},
			{"source", device->source},
			{"provenance", provenance_name(domain->provenance)},
			{"attribution", domain->attribution},
			{"in_total", domain->in_total ? "true" : "false"},
		};
		int64_t wall_ns = run_wall_ns(w->run, w->run->segments[0].start_ns);
		om_value_at(&w->om, labels, ARRAY_SIZE(labels), 1, wall_ns / NS_PER_MS);
	}
}

/* ---- counters ---- */

static double energy_of(struct curve_walk *all, struct attribution_walk *target, size_t segment, int64_t t_ns)
{
	struct attribution_point point;
	if (all != NULL)
		return curve_walk_to(all, segment, t_ns);
	attribution_walk_to(target, t_ns, &point);
	return point.part.target_j;
}

static void write_energy(struct om_run *w, size_t domain, bool of_target)
{
	const struct metering_domain *metering = &w->timeline.metering.domains[domain];
	struct curve_walk all = {.curve = &metering->curve};
	struct attribution_walk target = attribution_walk_begin(&metering->attribution, NULL);
	series_of_domain(w, domain);
	for (size_t s = 0; s < w->run->n_segments; s++) {
		struct slice interval = w->timeline.intervals[s];
		for (size_t i = interval.begin; i < interval.end; i++) {
			int64_t t_ns = w->timeline.t_ns[i];
			double energy_j = energy_of(of_target ? NULL : &all, &target, s, t_ns);
			om_run_put(w, t_ns, energy_j < 0 ? 0 : energy_j); // the first value may round to slightly below 0
		}
	}
}

static void write_energies(struct om_run *w, bool of_target)
{
	om_run_family(w, &om_families[of_target ? FAMILY_DOMAIN_TARGET_ENERGY : FAMILY_DOMAIN_ENERGY]);
	for (size_t i = 0; i < w->timeline.findings.n_domains; i++)
		if (is_known(w, i))
			write_energy(w, i, of_target);
}

/* ---- powers ---- */

static int write_power(struct om_run *w, size_t domain, bool of_target)
{
	struct timeline_track track;
	struct arena *arena = arena_new(); // per domain, because a track needs memory proportional to the run
	int r = arena != NULL ? timeline_track_make(&w->timeline, &domain, 1, arena, &track) : -ENOMEM;
	series_of_domain(w, domain);
	for (size_t s = 0; r == 0 && s < w->run->n_segments; s++)
		for (size_t i = w->timeline.intervals[s].begin; i < w->timeline.intervals[s].end; i++)
			om_run_put(w, w->timeline.t_ns[i], of_target ? track.target_w[i] : track.all_w[i]);
	arena_free(arena);
	return r;
}

static int write_powers(struct om_run *w, bool of_target)
{
	int r = 0;
	om_run_family(w, &om_families[of_target ? FAMILY_DOMAIN_TARGET_POWER : FAMILY_DOMAIN_POWER]);
	for (size_t i = 0; r == 0 && i < w->timeline.findings.n_domains; i++)
		if (is_known(w, i))
			r = write_power(w, i, of_target);
	return r;
}

/* ---- totals ---- */

static void write_ledger(struct om_run *w)
{
	const struct ledger *ledger = &w->findings->ledger;
	const struct {
		const char *to;
		double j;
	} rows[] = {
		{"target", ledger->target_j},
		{"others", ledger->others_j},
		{"wattle", ledger->wattle_j},
		{"idle", ledger->idle_j},
		{"unattributed", ledger->unattributed_j},
	};
	om_run_family(w, &om_families[FAMILY_RUN_ENERGY]);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (isnan(rows[i].j))
			continue;
		om_run_series(w, "to", rows[i].to);
		om_run_label(w, "provenance", provenance_name(w->findings->provenance));
		om_run_put_end(w, rows[i].j);
	}
	om_run_one(w, FAMILY_RUN_ENERGY_ERROR, w->findings->error_j);
	om_run_one(w, FAMILY_RUN_CALIBRATION_ERROR, w->findings->calibration_error_j);
}

// Nothing for a run whose carbon intensity is unknown.
static void write_carbon(struct om_run *w)
{
	const char *region = run_metadata(w->run, META_KEY_CARBON_REGION);
	if (isnan(w->findings->carbon_intensity_g_per_kwh))
		return;
	om_run_family(w, &om_families[FAMILY_RUN_CARBON]);
	om_run_series(w, "provenance", provenance_name(w->findings->provenance));
	om_run_label(w, "region", region);
	om_run_put_end(w, w->findings->carbon_g);
	om_run_family(w, &om_families[FAMILY_RUN_CARBON_INTENSITY]);
	om_run_series(w, region != NULL ? "region" : NULL, region);
	om_run_put_end(w, w->findings->carbon_intensity_g_per_kwh);
}

int om_run_energy(struct om_run *w)
{
	write_info(w);
	write_energies(w, false);
	write_energies(w, true);
	int r = write_powers(w, false);
	if (r == 0)
		r = write_powers(w, true);
	write_ledger(w);
	write_carbon(w);
	return r;
}
