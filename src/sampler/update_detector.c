#include "energy/counter.h"

#include "base/util.h"

// An edge is sharp if its uncertainty is at most this fraction of the interval that it ends …
static const int64_t SHARPNESS = 5;
// … and no other update can be between two readings, which are at most half an interval apart.
static const int64_t POLLS_PER_INTERVAL = 2;

/* Changes this close together, in readings this close together, count as continuous. This many in a row are no
 * coincidence of a slow counter with irregular readings. */
static const int64_t FAST_NS = 5 * NS_PER_MS, FAST_POLL_NS = 3 * NS_PER_MS;
enum { FAST_WANTED = 8 };

void update_detector_init(struct update_detector *watch)
{
	*watch = (struct update_detector){.last_edge_ns = VALUE_MISSING};
}

static void note_interval(struct update_detector *watch, int64_t edge_ns, int64_t width_ns)
{
	if (!value_ok(watch->last_edge_ns))
		return;
	int64_t interval_ns = edge_ns - watch->last_edge_ns;
	bool sharp = width_ns <= interval_ns / SHARPNESS && watch->last_edge_width_ns <= interval_ns / SHARPNESS;
	if (sharp && watch->widest_poll_ns <= interval_ns / POLLS_PER_INTERVAL)
		watch->intervals_ns[watch->n_intervals++ % UPDATE_INTERVALS] = interval_ns;
}

static void note_edge(struct update_detector *watch, int64_t t_ns, uint64_t raw)
{
	int64_t width_ns = t_ns - watch->last_poll_ns;
	int64_t edge_ns = watch->last_poll_ns + width_ns / 2;
	uint64_t step = raw > watch->last_raw ? raw - watch->last_raw : 0;
	note_interval(watch, edge_ns, width_ns);
	watch->last_edge_ns = edge_ns;
	watch->last_edge_width_ns = width_ns;
	watch->widest_poll_ns = 0;
	watch->n_edges++;
	if (step > 0 && (watch->smallest_step == 0 || step < watch->smallest_step))
		watch->smallest_step = step;
}

// A late reading does not show what happened in between; a long pause among close readings ends the row.
static void note_fast(struct update_detector *watch, int64_t t_ns)
{
	int64_t rest_ns = t_ns - watch->last_change_ns;
	if (watch->n_edges == 0 || watch->widest_poll_ns > FAST_POLL_NS)
		return;
	bool fast = rest_ns <= FAST_NS;
	if (!fast || watch->n_fast == 0)
		watch->fast_ns = 0;
	watch->n_fast = fast ? watch->n_fast + 1 : 0;
	if (fast && rest_ns > watch->fast_ns)
		watch->fast_ns = rest_ns;
}

bool update_detector_feed(struct update_detector *watch, int64_t t_ns, uint64_t raw)
{
	bool changed = watch->has_value && raw != watch->last_raw;
	if (watch->has_value && t_ns - watch->last_poll_ns > watch->widest_poll_ns)
		watch->widest_poll_ns = t_ns - watch->last_poll_ns;
	if (changed) {
		note_fast(watch, t_ns);
		note_edge(watch, t_ns, raw);
		watch->last_change_ns = t_ns;
	}
	watch->has_value = true;
	watch->last_raw = raw;
	watch->last_poll_ns = t_ns;
	return changed;
}

static void sort(int64_t *values, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		int64_t value = values[i];
		size_t at = i;
		for (; at > 0 && values[at - 1] > value; at--)
			values[at] = values[at - 1];
		values[at] = value;
	}
}

/* An update that adds nothing (steps of whole joules, a suspended GPU) is invisible, and the interval around it is a
 * multiple of the period: that is no jitter. A long interval that is no multiple is a late update. */
static bool is_multiple(int64_t interval_ns, int64_t period_ns)
{
	int64_t times = (interval_ns + period_ns / 2) / period_ns;
	int64_t off_ns = interval_ns - times * period_ns;
	return times >= 2 && (off_ns < 0 ? -off_ns : off_ns) <= period_ns / 6;
}

/* Mean of the intervals that are about this many whole periods long. Each edge is only known to within a reading,
 * which may be a tenth of a period; the next interval begins where one ends, so the mean is far more precise. */
static int64_t mean_ns(const int64_t *intervals_ns, size_t n, int64_t median_ns)
{
	int64_t sum_ns = 0, periods = 0;
	for (size_t i = 0; i < n; i++) {
		int64_t times = (intervals_ns[i] + median_ns / 2) / median_ns;
		int64_t off_ns = intervals_ns[i] - times * median_ns;
		if (times == 0 || (off_ns < 0 ? -off_ns : off_ns) > median_ns / 6)
			continue;
		sum_ns += intervals_ns[i];
		periods += times;
	}
	return sum_ns / periods;
}

bool update_detector_period(const struct update_detector *watch, int64_t *ret_period_ns, int64_t *ret_jitter_ns)
{
	size_t n = watch->n_intervals < UPDATE_INTERVALS ? watch->n_intervals : UPDATE_INTERVALS;
	if (n < UPDATE_INTERVALS_NEEDED && watch->n_fast < FAST_WANTED)
		return false;
	if (n < UPDATE_INTERVALS_NEEDED) {
		*ret_period_ns = watch->fast_ns;
		*ret_jitter_ns = 0;
		return true;
	}
	int64_t sorted[UPDATE_INTERVALS];
	memcpy(sorted, watch->intervals_ns, n * sizeof(sorted[0]));
	sort(sorted, n);
	int64_t median_ns = sorted[(n - 1) / 2];
	int64_t min_ns = median_ns, max_ns = median_ns;
	for (size_t i = 0; i < n; i++) {
		if (sorted[i] >= median_ns / 2 && sorted[i] < min_ns)
			min_ns = sorted[i];
		if (sorted[i] > max_ns && !is_multiple(sorted[i], median_ns))
			max_ns = sorted[i];
	}
	*ret_period_ns = mean_ns(sorted, n, median_ns);
	*ret_jitter_ns = (max_ns - min_ns + 1) / 2;
	return true;
}
