#include "energy/curve.h"

#include "energy/slice.h"
#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>

/* A counter with an unknown period is at most this factor slower than it was observed to be. If it changed at each reading,
 * it is also not slower than those of GPUs. */
static const double unknown_period_slack = 1.25, unknown_period_max_s = 0.1;
/* Deviations of updates, as fractions of the period: assumed jitter if it was not measured, and a margin added to a measured
 * jitter, which comes from few updates. */
static const double unknown_jitter = 0.1, jitter_slack = 0.01;
// UPDATES_MIN: fewer updates don't determine a period. BURST: this many consecutive readings with new values give an upper
// bound.
enum { UPDATES_MIN = 3, BURST = 8 };

struct spacing {        // two consecutive observed updates
	double seen_s;  // between the readings that showed them
	double min_s;   // lower bound of the time between them
	double gap_s;   // longest time without a reading, from before the first to the second
};

struct scan { // results over all readings of a counter
	struct spacing *spacings;
	size_t n_spacings;
	size_t n_changes;
	double energy_j, time_s;
	double burst_s; // shortest time of BURST consecutive readings with new values; INFINITY: none
};

static void note_update(const int64_t *t_ns, size_t change, size_t last, size_t now, double gap_s, struct scan *scan)
{
	scan->spacings[scan->n_spacings++] = (struct spacing){
		.seen_s = (double)(t_ns[now] - t_ns[change]) / 1e9,
		.min_s = (double)(t_ns[last] - t_ns[change]) / 1e9,
		.gap_s = gap_s,
	};
}

struct burst { // the latest consecutive readings with new values, and the one before them
	int64_t t_ns[BURST + 1];
	size_t n;
};

static void note_reading(struct burst *burst, int64_t t_ns, bool is_new, struct scan *scan)
{
	if (!is_new)
		burst->n = 0;
	burst->t_ns[burst->n++ % ARRAY_SIZE(burst->t_ns)] = t_ns;
	if (burst->n > BURST)
		scan->burst_s = fmin(scan->burst_s,
			(double)(t_ns - burst->t_ns[burst->n % ARRAY_SIZE(burst->t_ns)]) / 1e9);
}

static void scan_segment(const struct run_device *device, struct slice samples, struct scan *scan)
{
	const int64_t *t_ns = device->t_ns;
	size_t first = samples.end, last = samples.end, change = samples.end;
	struct burst burst = {.n = 0};
	double gap_s = 0;
	int64_t last_uj = VALUE_MISSING; // smaller than any value
	for (size_t i = samples.begin; i < samples.end; i++) {
		int64_t uj = device_value(device, DEVICE_ENERGY, i);
		if (!value_ok(uj))
			continue;
		double dt_s = last < samples.end ? (double)(t_ns[i] - t_ns[last]) / 1e9 : 0;
		gap_s = dt_s > gap_s ? dt_s : gap_s;
		note_reading(&burst, t_ns[i], last < samples.end && uj > last_uj, scan);
		if (last < samples.end && uj > last_uj) {
			scan->energy_j += (double)(uj - last_uj) / 1e6;
			scan->n_changes++;
			// The first update of a segment has no observed predecessor.
			if (change < samples.end)
				note_update(t_ns, change, last, i, gap_s, scan);
			change = i;
			gap_s = dt_s;
		}
		first = first < samples.end ? first : i;
		last = i;
		last_uj = uj;
	}
	if (last < samples.end)
		scan->time_s += (double)(t_ns[last] - t_ns[first]) / 1e9;
}

/* A reading without a new value between two updates is a lower bound of the period. Readings closer together than that miss
 * no update, so the mean spacing of the updates they show is the period. Spacings far from the median are excluded: the
 * counter paused. Returns NaN with too few spacings. */
static double watched_period_s(const struct scan *scan, double *scratch)
{
	size_t n = 0, used = 0;
	for (size_t i = 0; i < scan->n_spacings; i++)
		if (scan->spacings[i].min_s > 0)
			scratch[n++] = scan->spacings[i].min_s;
	if (n < UPDATES_MIN)
		return (double)NAN;
	qsort(scratch, n, sizeof(*scratch), compare_doubles);
	double min_s = scratch[n / 2], sum_s = 0;
	for (size_t i = 0; i < scan->n_spacings; i++) {
		const struct spacing *s = &scan->spacings[i];
		bool complete = s->gap_s <= 1.05 * min_s && s->seen_s < 3 * min_s;
		sum_s += complete ? s->seen_s : 0;
		used += complete;
	}
	return used >= UPDATES_MIN ? sum_s / (double)used : (double)NAN;
}

// Whether most updates came much later than the period predicts.
static bool is_slower_than(const struct scan *scan, double period_s)
{
	size_t late = 0;
	for (size_t i = 0; i < scan->n_spacings; i++)
		late += scan->spacings[i].min_s > 1.5 * period_s;
	return scan->n_spacings >= UPDATES_MIN && 2 * late > scan->n_spacings;
}

// Steps so large that low power does not fill one per update: the readings then don't show the period.
static bool steps_are_coarse(const struct scan *scan, double quantum_j, double period_s)
{
	return quantum_j > 0 && scan->energy_j * period_s < 3 * quantum_j * scan->time_s;
}

/* In a burst, each reading shows an update, so the period is shorter than the burst's duration divided by its number of
 * intervals. A recorder on a busy machine may never see a reading without an update; closely spaced readings then give the
 * same bound. */
static double estimate_s(int64_t interval_ns, const struct scan *scan)
{
	double interval_s = value_to_double(interval_ns, 1e-9);
	double seen_s = scan->n_changes > 0 ? scan->time_s / (double)scan->n_changes : 0;
	double longest_s = fmax(unknown_period_slack * seen_s, isnan(interval_s) ? 0 : interval_s);
	longest_s = fmin(longest_s, unknown_period_slack * scan->burst_s / (BURST - 1));
	return fmin(longest_s, unknown_period_max_s);
}

static void choose_period(const struct run_device *device, int64_t interval_ns, const struct scan *scan,
	double *scratch, struct updates *updates)
{
	double stated_s = device->update_period_s, stated_jitter_s = device->update_jitter_s;
	double seen_s = watched_period_s(scan, scratch);
	bool stated = stated_s > 0 &&
		!(is_slower_than(scan, stated_s) && !steps_are_coarse(scan, updates->quantum_j, stated_s) &&
			seen_s > stated_s);
	updates->period_s = stated ? stated_s : seen_s;
	if (isnan(updates->period_s)) {
		updates->longest_s = estimate_s(interval_ns, scan);
		return;
	}
	bool measured = stated && stated_jitter_s > 0;
	updates->jitter_s = measured ? stated_jitter_s + jitter_slack * stated_s : unknown_jitter * updates->period_s;
	updates->longest_s = updates->period_s + updates->jitter_s;
}

int updates_make(const struct run *run, const struct run_device *device, int64_t interval_ns,
	struct updates *ret_updates)
{
	wattle_cleanup_free struct spacing *spacings = calloc_array(device->n, sizeof(*spacings));
	wattle_cleanup_free double *scratch = calloc_array(device->n, sizeof(*scratch));
	struct scan scan = {.spacings = spacings, .burst_s = INFINITY};
	if (spacings == NULL || scratch == NULL)
		return -ENOMEM;
	for (size_t s = 0; s < run->n_segments; s++)
		scan_segment(device, slice_of(run, s, device->t_ns, device->n), &scan);
	*ret_updates = (struct updates){.quantum_j = device->resolution_j > 0 ? device->resolution_j : 0};
	choose_period(device, interval_ns, &scan, scratch, ret_updates);
	return 0;
}
