/* Power over time. A bucket's mean is its energy divided by its length, so the integral over the run is the domain's
 * energy. Its low and high come from shorter intervals: a counter's updates, power readings, and the windows over which
 * the run was divided among programs.
 *
 * The total in a bucket is the sum over the known domains that enter energy.total_j: domains that could not be read are
 * missing there as in the total, and a band shows it. */
#include "analysis/chart/builder.h"

#include "analysis/stats.h"
#include "base/util.h"

#include <errno.h>

/* ---- known intervals ---- */

static void go_on(struct chart_meter *meter, int64_t to_ns)
{
	const struct run_device *device = meter->device;
	for (; meter->next < device->n; meter->next++) {
		bool read = device_is_metered(device, meter->next);
		if (read && device->t_ns[meter->next] >= to_ns)
			return;
		if (!read)
			continue;
		meter->before_ns = device->t_ns[meter->next];
		meter->any = true;
	}
}

// Time between two readings that are too far apart is unknown; after the last reading the curve itself ends.
static bool is_near(const struct chart_meter *meter, int64_t to_ns)
{
	const struct run_device *device = meter->device;
	bool more = meter->next < device->n;
	int64_t after_ns = more ? device->t_ns[meter->next] : to_ns;
	return meter->any ? after_ns - meter->before_ns <= meter->hole_ns : more;
}

bool meter_covers(struct chart_meter *meter, size_t segment, int64_t from_ns, int64_t to_ns, double energy_j)
{
	const struct curve_segment *line = &meter->curve->segments[segment];
	bool is_flat = line->points.begin == line->points.end;
	if (is_flat) // a counter that never moved and counts as zero energy
		return meter->curve->known && meter->curve->unseen_s == 0 && meter->curve->silent_s > 0;
	if (to_ns <= line->first_ns || from_ns >= line->last_ns)
		return false;
	if (energy_j > 0)
		return true;
	go_on(meter, to_ns);
	return is_near(meter, to_ns);
}

/* ---- one domain ---- */

struct power_work {
	struct chart_work *work;
	struct chart_series *whole, *target;
	double *whole_w, *target_w; // per window; NaN: no domain is known there
	double *target_shares;      // per window, of the latest domain
};

static void add(double *sum, double value)
{
	if (!isnan(value))
		*sum = (isnan(*sum) ? 0 : *sum) + value;
}

static void fill_means(struct power_work *p, size_t domain, struct chart_series *series, bool in_total)
{
	const struct chart_work *work = p->work;
	const struct metering_domain *metering = &work->findings->metering->domains[domain];
	struct attribution_walk walk = attribution_walk_begin(&metering->attribution, p->target_shares);
	struct chart_meter meter = {.device = series->device, .curve = &metering->curve, .hole_ns = work->hole_ns};
	struct attribution_point from, to;
	for (size_t s = 0; s < work->run->n_segments; s++)
		for (size_t i = work->buckets[s].begin; i < work->buckets[s].end; i++) {
			int64_t from_ns = work->from_ns[i], to_ns = work->to_ns[i];
			attribution_walk_to(&walk, from_ns, &from);
			double before_j = curve_walk_to(&walk.curve, s, from_ns);
			attribution_walk_to(&walk, to_ns, &to);
			double energy_j = curve_walk_to(&walk.curve, s, to_ns) - before_j;
			if (!meter_covers(&meter, s, from_ns, to_ns, energy_j))
				continue;
			series->mean[i] = energy_j / seconds_between(from_ns, to_ns);
			if (!in_total)
				continue;
			add(&p->whole->mean[i], series->mean[i]);
			add(&p->target->mean[i],
				(to.part.target_j - from.part.target_j) / seconds_between(from_ns, to_ns));
		}
	attribution_walk_to(&walk, INT64_MAX, &to); // the target's share in the remaining windows
}

// Power of the domain in each window, by the same rule as the report's maximum power.
static void fill_windows(struct power_work *p, size_t domain, struct chart_resampler *resampler, bool in_total)
{
	const struct chart_work *work = p->work;
	const struct windows *windows = work->findings->windows;
	const struct metering_domain *metering = &work->findings->metering->domains[domain];
	struct curve_walk walk = {.curve = &metering->curve};
	struct chart_meter meter = {.device = metering->attribution.device, .curve = &metering->curve, .hole_ns = work->hole_ns};
	for (size_t i = 0; i < windows->n; i++) {
		struct window w = windows_times_at(windows, i);
		double power_w = curve_walk_power_w(&walk, w.segment, w.begin_ns, w.end_ns);
		if (isnan(power_w) || !meter_covers(&meter, w.segment, w.begin_ns, w.end_ns, power_w))
			continue;
		resampler_touch(resampler, w.begin_ns, w.end_ns, power_w);
		if (!in_total)
			continue;
		add(&p->whole_w[i], power_w);
		add(&p->target_w[i], power_w * p->target_shares[i]);
	}
}

/* The power between two updates is as accurate as their times. Updates closer together than five times the error of
 * their times, or with fewer than ten counter steps between them, are merged, up to one second. */
static bool is_sharp(const struct curve *curve, size_t from, size_t to)
{
	double length_s = seconds_between(curve->t_ns[from], curve->t_ns[to]);
	if (length_s >= 1)
		return true;
	double uncertain_s = curve->within_s[from] + curve->within_s[to];
	return length_s > 0 && length_s >= 5 * uncertain_s && length_s >= 0.9 * curve->updates.period_s &&
		curve->j[to] - curve->j[from] >= 10 * curve->updates.quantum_j;
}

static void fill_updates(const struct curve *curve, struct chart_resampler *resampler)
{
	for (size_t s = 0; s < curve->n_segments; s++) {
		struct slice points = curve->segments[s].points;
		for (size_t from = points.begin, to = from + 1; to < points.end; to++) {
			if (!is_sharp(curve, from, to))
				continue;
			resampler_touch(resampler, curve->t_ns[from], curve->t_ns[to],
				(curve->j[to] - curve->j[from]) / seconds_between(curve->t_ns[from], curve->t_ns[to]));
			from = to;
		}
	}
}

// As in the trapezoid rule, each reading applies to the intervals on both sides of it.
static void fill_readings(const struct chart_work *work, const struct run_device *device,
	struct chart_resampler *resampler)
{
	struct run_values power_mw = device_column(device, DEVICE_POWER);
	size_t i = 0;
	while (i < device->n && !value_ok(values_at(power_mw, i)))
		i++;
	if (i == device->n)
		power_mw = device_column(device, DEVICE_POWER_AVERAGE);
	int64_t before_ns = INT64_MIN, at_ns = INT64_MIN;
	double w = (double)NAN;
	for (i = 0; i < device->n; i++) {
		int64_t mw = values_at(power_mw, i);
		if (!value_ok(mw))
			continue;
		int64_t now_ns = device->t_ns[i];
		bool apart = at_ns == INT64_MIN || now_ns - at_ns > work->hole_ns;
		resampler_touch(resampler, before_ns, apart ? at_ns : now_ns, w);
		before_ns = apart ? now_ns : at_ns;
		at_ns = now_ns;
		w = (double)mw / 1e3;
	}
	if (!isnan(w))
		resampler_touch(resampler, before_ns,
			at_ns <= INT64_MAX - work->hole_ns ? at_ns + work->hole_ns : at_ns, w);
}

// Removes the extremes of buckets with an unknown mean, and keeps each mean between the extremes.
static void finish_series(const struct chart_work *work, struct chart_series *series)
{
	for (size_t i = 0; i < work->charts->axis.n; i++) {
		double mean = series->mean[i];
		bool known = !isnan(mean);
		series->low[i] = known ? fmin(mean, series->low[i]) : (double)NAN;
		series->high[i] = known ? fmax(mean, series->high[i]) : (double)NAN;
	}
}

static int fill_domain(struct power_work *p, size_t domain, struct chart_series *series)
{
	const struct chart_work *work = p->work;
	const struct metering_domain *metering = &work->findings->metering->domains[domain];
	bool in_total = work->findings->domains[domain].in_total;
	struct chart_resampler windows, fine;
	if (resampler_begin(&windows, work, series) < 0 || resampler_begin(&fine, work, series) < 0)
		return -ENOMEM;
	fill_means(p, domain, series, in_total);
	fill_windows(p, domain, &windows, in_total);
	if (metering->curve.from_power)
		fill_readings(work, series->device, &fine);
	else
		fill_updates(&metering->curve, &fine);
	finish_series(work, series);
	return 0;
}

/* ---- the total and the target's part ---- */

static int fill_sums(struct power_work *p)
{
	const struct chart_work *work = p->work;
	const struct windows *windows = work->findings->windows;
	struct chart_resampler whole, target;
	if (resampler_begin(&whole, work, p->whole) < 0 || resampler_begin(&target, work, p->target) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < windows->n; i++) {
		struct window w = windows_times_at(windows, i);
		resampler_touch(&whole, w.begin_ns, w.end_ns, p->whole_w[i]);
		resampler_touch(&target, w.begin_ns, w.end_ns, p->target_w[i]);
	}
	return 0;
}

// While one part was at its highest, the others were at least at their lowest: a peak of the total.
static void widen_whole(const struct chart *chart, struct chart_series *whole, size_t bucket)
{
	double low = 0, high = 0, largest_range = 0;
	for (size_t i = 0; i < chart->n_series; i++) {
		const struct chart_series *part = &chart->series[i];
		if (part->line != CHART_PART || isnan(part->mean[bucket]))
			continue;
		low += part->low[bucket];
		high += part->high[bucket];
		largest_range = fmax(largest_range, part->high[bucket] - part->low[bucket]);
	}
	whole->high[bucket] = fmax(whole->high[bucket], low + largest_range);
	whole->low[bucket] = fmin(whole->low[bucket], high - largest_range);
}

static enum provenance derived_at_least(enum provenance provenance)
{
	return provenance > PROVENANCE_DERIVED ? provenance : PROVENANCE_DERIVED;
}

const char *chart_device_label(const struct chart_work *work, const struct run_device *device, const char *suffix)
{
	if (device->kind == DOMAIN_GPU && device->device[0] != '\0')
		return arena_printf(work->arena, "%s (%s)%s", device->name, device->device, suffix);
	return arena_printf(work->arena, "%s%s", device->name, suffix);
}

static int add_domains(struct power_work *p, struct chart *chart, enum chart_line line)
{
	struct chart_work *work = p->work;
	const struct findings *f = work->findings;
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct domain_finding *domain = &f->domains[d];
		if (isnan(domain->energy_j) || domain->in_total != (line == CHART_PART))
			continue;
		const struct chart_series like = {.name = domain->device->name,
			.label = chart_device_label(work, domain->device, ""),
			.line = line,
			.provenance = domain->provenance,
			.device = domain->device};
		struct chart_series *series = like.label != NULL ? chart_add(work, chart, &like) : NULL;
		if (series == NULL || fill_domain(p, d, series) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_limits(struct chart_work *work, struct chart *chart)
{
	const struct findings *f = work->findings;
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct run_device *device = f->domains[d].device;
		const struct chart_series like = {.name = arena_printf(work->arena, "%s limit", device->name),
			.label = chart_device_label(work, device, ", power limit"),
			.line = CHART_LIMIT,
			.device = device};
		struct chart_series *series = like.name != NULL && like.label != NULL ? chart_add(work, chart, &like)
										      : NULL;
		if (series == NULL ||
			resampler_gauge(work, series,
				&(struct chart_gauge){device->t_ns, device_column(device, DEVICE_POWER_CAP), device->n,
					1e-3, device}) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_sums(struct power_work *p, struct chart *chart)
{
	struct chart_work *work = p->work;
	const struct chart_series whole = {.name = "total",
		.label = "total",
		.line = CHART_WHOLE,
		.provenance = work->findings->provenance};
	const struct chart_series target = {.name = "target",
		.label = "this program",
		.line = CHART_TARGET,
		.provenance = derived_at_least(work->findings->provenance)};
	size_t n = work->findings->windows->n;
	p->whole_w = stats_unknown(work->scratch, n);
	p->target_w = stats_unknown(work->scratch, n);
	p->target_shares = arena_alloc(work->scratch, n, sizeof(double));
	p->whole = chart_add(work, chart, &whole);
	p->target = chart_add(work, chart, &target);
	bool all = p->whole_w != NULL && p->target_w != NULL && p->target_shares != NULL && p->whole != NULL &&
		p->target != NULL;
	return all ? 0 : -ENOMEM;
}

int chart_power(struct chart_work *work)
{
	struct power_work p = {.work = work};
	struct chart chart = {.id = "power",
		.title = "Power",
		.unit = "w",
		.style = CHART_STACKED,
		.ceiling = (double)NAN};
	if (work->findings->windows->n == 0) // no segments
		return 0;
	if (!chart_begin(work, &chart, 2 * work->findings->n_domains + 2) || add_sums(&p, &chart) < 0 ||
		add_domains(&p, &chart, CHART_PART) < 0 || fill_sums(&p) < 0)
		return -ENOMEM;
	finish_series(work, p.whole);
	for (size_t i = 0; i < work->charts->axis.n; i++)
		if (!isnan(p.whole->mean[i]))
			widen_whole(&chart, p.whole, i);
	finish_series(work, p.target);
	if (add_domains(&p, &chart, CHART_BESIDE) < 0 || add_limits(work, &chart) < 0)
		return -ENOMEM;
	return chart_end(work, &chart);
}
