// Power: of each domain between counter updates, of the target by window, and their sums.
#include "report/trace/internal.h"

#include "base/util.h"

struct power {
	struct trace *trace;
	uint64_t group; // 0: no track yet
	int rank;
};

static struct trace_counter new_counter(struct power *power, const char *name, const char *axis_key,
	const char *description)
{
	return (struct trace_counter){
		.trace = power->trace,
		.about = {.name = name, .description = description, .parent = power->group, .rank = ++power->rank},
		.unit = {"W", axis_key},
	};
}

/* ---- a domain ---- */

/* Power as the slope between two points of the energy curve. A flat curve means unknown energy: no reading, or a counter
 * reset. A power sensor that reports 0 W is trusted. */
static double slope_w(const struct curve *curve, size_t from, int64_t hole_ns)
{
	int64_t dt_ns = curve->t_ns[from + 1] - curve->t_ns[from];
	double j = curve->j[from + 1] - curve->j[from];
	bool is_hole = j == 0 && (!curve->from_power || dt_ns > hole_ns);
	return is_hole ? (double)NAN : j / ((double)dt_ns / 1e9);
}

/* For power sensors, energy is power times duration: first_ns and last_ns bound the extrapolation before the first and
 * after the last point. All values within the target's lifetime are shown. */
static void domain_segment(const struct power *power, const struct curve *curve, const struct curve_segment *segment,
	struct trace_counter *counter)
{
	struct slice points = segment->points;
	int64_t from_ns = trace_later_ns(segment->start_ns, segment->first_ns),
		to_ns = trace_sooner_ns(segment->end_ns, segment->last_ns);
	trace_counter_put(counter, segment->start_ns, (double)NAN);
	if (points.begin == points.end || to_ns <= from_ns)
		return;
	if (curve->t_ns[points.begin] > from_ns)
		trace_counter_put(counter, from_ns, segment->first_w);
	for (size_t i = points.begin; i + 1 < points.end && curve->t_ns[i] < to_ns; i++)
		if (curve->t_ns[i + 1] > from_ns)
			trace_counter_put(counter, trace_later_ns(curve->t_ns[i], from_ns),
				slope_w(curve, i, power->trace->hole_ns));
	if (curve->t_ns[points.end - 1] < to_ns)
		trace_counter_put(counter, trace_later_ns(curve->t_ns[points.end - 1], from_ns), segment->last_w);
	trace_counter_put(counter, to_ns, (double)NAN);
}

static const char *how(const struct trace *trace, size_t domain)
{
	const struct run_device *device = trace->findings->domains[domain].device;
	static const char *const words[PROVENANCE_KINDS] = {
		[PROVENANCE_MEASURED] = "measured",
		[PROVENANCE_DERIVED] = "derived from other readings",
		[PROVENANCE_ESTIMATED] = "estimated by a model, not measured",
	};
	return words[device->provenance];
}

static const char *tag(const struct run_device *device)
{
	return device->provenance == PROVENANCE_ESTIMATED ? " (estimated)" : "";
}

static void domain_power(struct power *power, size_t domain)
{
	struct trace *trace = power->trace;
	const struct run_device *device = trace->findings->domains[domain].device;
	const struct curve *curve = &trace->timeline.metering.domains[domain].curve;
	struct trace_counter counter = new_counter(power, trace_text(trace, "%s power%s", device->name, tag(device)),
		device->name,
		trace_text(trace, "%s, %s, read by %s; the mean between two updates", device->device,
			how(trace, domain), device->source));
	for (size_t s = 0; s < curve->n_segments; s++)
		domain_segment(power, curve, &curve->segments[s], &counter);
}

/* ---- attribution to the target ---- */

// NaN: the attribution is unknown.
static double target_share(const struct attribution *attribution, size_t window)
{
	const struct shares *shares = &attribution->rows[window].shares;
	return shares->method == METHOD_NONE ? (double)NAN : shares->target;
}

static void domain_target(struct power *power, size_t domain)
{
	struct trace *trace = power->trace;
	const struct metering_domain *metering = &trace->timeline.metering.domains[domain];
	const struct domain_finding *finding = &trace->findings->domains[domain];
	const struct run_device *device = finding->device;
	const struct windows *windows = &trace->timeline.windows;
	struct curve_walk walk = {.curve = &metering->curve};
	struct trace_counter counter = new_counter(power,
		trace_text(trace, "%s power of the target%s", device->name, tag(device)), device->name,
		trace_text(trace, "the target's part of the domain's power, by %s", finding->attribution));
	for (size_t w = 0; w < windows->n; w++) {
		struct window at = windows_at(windows, w);
		double all_w = curve_walk_power_w(&walk, at.segment, at.from_ns, at.to_ns);
		trace_window_put(&counter, windows, w, all_w * target_share(&metering->attribution, w));
	}
}

static void domain_limit(struct power *power, size_t domain)
{
	const struct run_device *device = power->trace->findings->domains[domain].device;
	struct trace_counter counter = new_counter(power, trace_text(power->trace, "%s power limit", device->name),
		device->name, "the limit in force");
	trace_device_gauge(&counter, device, DEVICE_POWER_CAP, 1e-3);
}

/* ---- sums over the domains in the total ---- */

struct sum {
	double all_w, target_w;
};

// False for a domain without readings in a segment: it is not part of the sum there.
static bool has_points(const struct curve *curve, size_t segment)
{
	return curve->known && curve->segments[segment].points.begin < curve->segments[segment].points.end;
}

static struct sum add_up(const struct trace *trace, struct curve_walk *walks, size_t window)
{
	struct window at = windows_at(&trace->timeline.windows, window);
	struct sum sum = {(double)NAN, (double)NAN};
	bool any = false;
	for (size_t d = 0; d < trace->findings->n_domains; d++) {
		const struct metering_domain *metering = &trace->timeline.metering.domains[d];
		if (!trace->findings->domains[d].in_total || !has_points(&metering->curve, at.segment))
			continue;
		double all_w = curve_walk_power_w(&walks[d], at.segment, at.from_ns, at.to_ns);
		sum = any ? sum : (struct sum){0};
		any = true;
		sum.all_w += all_w;
		sum.target_w += all_w * target_share(&metering->attribution, window);
	}
	return sum;
}

static void total(struct power *power)
{
	struct trace *trace = power->trace;
	const struct windows *windows = &trace->timeline.windows;
	size_t n = trace->findings->n_domains;
	const char *estimated = trace->findings->provenance == PROVENANCE_ESTIMATED ? " (estimated)" : "";
	struct curve_walk *walks = arena_alloc(trace->arena, n, sizeof(*walks));
	struct trace_counter all = new_counter(power, trace_text(trace, "total power%s", estimated), "total",
		"all domains included in the total, about every 100 ms");
	struct trace_counter target = new_counter(power, trace_text(trace, "target power%s", estimated), "total",
		"power attributed to the measured program");
	if (walks == NULL)
		return;
	for (size_t d = 0; d < n; d++)
		walks[d].curve = &trace->timeline.metering.domains[d].curve;
	for (size_t w = 0; w < windows->n; w++) {
		struct sum sum = add_up(trace, walks, w);
		trace_window_put(&all, windows, w, sum.all_w);
		trace_window_put(&target, windows, w, sum.target_w);
	}
}

static bool any_known(const struct trace *trace)
{
	for (size_t d = 0; d < trace->findings->n_domains; d++)
		if (trace->timeline.metering.domains[d].curve.known)
			return true;
	return false;
}

void trace_power(struct trace *trace)
{
	if (!any_known(trace))
		return;
	struct power power = {
		.trace = trace,
		.group = trace_group(trace, RANK_POWER, "power"),
	};
	total(&power);
	for (size_t d = 0; d < trace->findings->n_domains; d++) {
		if (!trace->timeline.metering.domains[d].curve.known)
			continue;
		domain_power(&power, d);
		domain_target(&power, d);
		domain_limit(&power, d);
	}
}
