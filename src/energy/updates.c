#include "energy/curve.h"

#include "energy/slice.h"
#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>

/* A counter whose period nobody knows moves at most so much more slowly than it was seen to move, and if it moved at each
 * reading, not more slowly than GPUs do. */
static const double unknown_period_slack = 1.25, unknown_period_max_s = 0.1;
/* Of the period: an update that comes this much early or late surprises nobody who has not measured it. A measured
 * jitter is that of a few updates, so a little is added to it. */
static const double unknown_jitter = 0.1, jitter_slack = 0.01;
// Fewer updates than this tell nothing about their rhythm; so many readings on end that all show a new value bound it.
enum { UPDATES_MIN = 3, CROWD = 8 };

struct spacing {        // of two neighbouring updates that were seen
	double seen_s;  // between the readings that showed them
	double least_s; // they were at least this far apart
	double gap_s;   // longest time without a reading from before the first to the second
};

struct scan { // of all readings of a counter
	struct spacing *spacings;
	size_t n_spacings;
	size_t n_changes;
	double energy_j, time_s;
	double crowd_s; // least time in which CROWD neighbouring readings all showed a new value; INFINITY: they never did
};

static void note_update(const int64_t *t_ns, size_t change, size_t last, size_t now, double gap_s, struct scan *scan)
{
	scan->spacings[scan->n_spacings++] = (struct spacing){
		.seen_s = (double)(t_ns[now] - t_ns[change]) / 1e9,
		.least_s = (double)(t_ns[last] - t_ns[change]) / 1e9,
		.gap_s = gap_s,
	};
}

struct crowd { // the latest readings that all showed a new value, and the one before them
	int64_t t_ns[CROWD + 1];
	size_t n;
};

static void note_reading(struct crowd *crowd, int64_t t_ns, bool is_new, struct scan *scan)
{
	if (!is_new)
		crowd->n = 0;
	crowd->t_ns[crowd->n++ % ARRAY_SIZE(crowd->t_ns)] = t_ns;
	if (crowd->n > CROWD)
		scan->crowd_s = fmin(scan->crowd_s,
			(double)(t_ns - crowd->t_ns[crowd->n % ARRAY_SIZE(crowd->t_ns)]) / 1e9);
}

static void scan_segment(const struct run_device *device, struct slice samples, struct scan *scan)
{
	const int64_t *t_ns = device->t_ns;
	size_t first = samples.end, last = samples.end, change = samples.end;
	struct crowd crowd = {.n = 0};
	double gap_s = 0;
	int64_t last_uj = VALUE_MISSING; // the least of all
	for (size_t i = samples.begin; i < samples.end; i++) {
		int64_t uj = device_value(device, DEVICE_ENERGY, i);
		if (!value_ok(uj))
			continue;
		double dt_s = last < samples.end ? (double)(t_ns[i] - t_ns[last]) / 1e9 : 0;
		gap_s = dt_s > gap_s ? dt_s : gap_s;
		note_reading(&crowd, t_ns[i], last < samples.end && uj > last_uj, scan);
		if (last < samples.end && uj > last_uj) {
			scan->energy_j += (double)(uj - last_uj) / 1e6;
			scan->n_changes++;
			// The first update of a segment has none before it that was seen.
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

/* Where a reading between two updates showed that there was none yet, the period is at least that long, and readings
 * closer together than that miss no update: the mean spacing of those that they saw is the period. Spacings far from
 * the middle are left out; the counter slept. NaN: too few. */
static double watched_period_s(const struct scan *scan, double *scratch)
{
	size_t n = 0, used = 0;
	for (size_t i = 0; i < scan->n_spacings; i++)
		if (scan->spacings[i].least_s > 0)
			scratch[n++] = scan->spacings[i].least_s;
	if (n < UPDATES_MIN)
		return (double)NAN;
	qsort(scratch, n, sizeof(*scratch), compare_doubles);
	double least_s = scratch[n / 2], sum_s = 0;
	for (size_t i = 0; i < scan->n_spacings; i++) {
		const struct spacing *s = &scan->spacings[i];
		bool complete = s->gap_s <= 1.05 * least_s && s->seen_s < 3 * least_s;
		sum_s += complete ? s->seen_s : 0;
		used += complete;
	}
	return used >= UPDATES_MIN ? sum_s / (double)used : (double)NAN;
}

// Most updates came much later than the period says.
static bool is_slower_than(const struct scan *scan, double period_s)
{
	size_t late = 0;
	for (size_t i = 0; i < scan->n_spacings; i++)
		late += scan->spacings[i].least_s > 1.5 * period_s;
	return scan->n_spacings >= UPDATES_MIN && 2 * late > scan->n_spacings;
}

// Steps so large that little power does not fill one at each update: then the readings do not tell the period.
static bool steps_are_coarse(const struct scan *scan, double quantum_j, double period_s)
{
	return quantum_j > 0 && scan->energy_j * period_s < 3 * quantum_j * scan->time_s;
}

/* A crowd of readings has an update between each two of them, so the period is shorter than a crowd of one less takes: a recorder on
 * a busy machine may never see a reading without one, and looks close together tell as much all the same. */
static double guess_s(int64_t interval_ns, const struct scan *scan)
{
	double interval_s = value_to_double(interval_ns, 1e-9);
	double seen_s = scan->n_changes > 0 ? scan->time_s / (double)scan->n_changes : 0;
	double longest_s = fmax(unknown_period_slack * seen_s, isnan(interval_s) ? 0 : interval_s);
	longest_s = fmin(longest_s, unknown_period_slack * scan->crowd_s / (CROWD - 1));
	return fmin(longest_s, unknown_period_max_s);
}

static void settle_period(const struct run_device *device, int64_t interval_ns, const struct scan *scan,
	double *scratch, struct updates *updates)
{
	double stated_s = device->update_period_s, stated_jitter_s = device->update_jitter_s;
	double seen_s = watched_period_s(scan, scratch);
	bool stated = stated_s > 0 &&
		!(is_slower_than(scan, stated_s) && !steps_are_coarse(scan, updates->quantum_j, stated_s) &&
			seen_s > stated_s);
	updates->period_s = stated ? stated_s : seen_s;
	if (isnan(updates->period_s)) {
		updates->longest_s = guess_s(interval_ns, scan);
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
	struct scan scan = {.spacings = spacings, .crowd_s = INFINITY};
	if (spacings == NULL || scratch == NULL)
		return -ENOMEM;
	for (size_t s = 0; s < run->n_segments; s++)
		scan_segment(device, slice_of(run, s, device->t_ns, device->n), &scan);
	*ret_updates = (struct updates){.quantum_j = device->resolution_j > 0 ? device->resolution_j : 0};
	settle_period(device, interval_ns, &scan, scratch, ret_updates);
	return 0;
}
