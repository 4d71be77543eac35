#include "sampler/sampler.h"

#include "base/util.h"

#include <errno.h>

// Faster counters are accurate enough as they are, and are measured at open.
static const int64_t SLOW_NS = 3 * NS_PER_MS;
// Readings in one period; at most a thousand a second.
static const int64_t POLLS_PER_PERIOD = 20, POLL_MIN_NS = NS_PER_MS, POLL_MAX_NS = 10 * NS_PER_MS;
// One edge more than intervals. Later rounds only check, and detect a changed period.
static const size_t EDGES_FIRST = 5, EDGES_LATER = 3;
// Additional edges where the period is still unknown: some were not sharp, or the counter is too fast for the readings.
static const size_t EDGES_UNKNOWN = 20;
// A counter unchanged for this long in a round is dropped from it; no round is longer than this.
static const int64_t PATIENCE_NS = 600 * NS_PER_MS, ROUND_MAX_NS = 5 * NS_PER_S;
static const int64_t ROUND_DISTANCE_NS = 30 * NS_PER_S;
/* At the end: an update may be late by half a period, but the summary waits no longer than this; and in a run much
 * shorter than a period the next update would resolve nothing. */
static const int64_t LAST_MAX_NS = 160 * NS_PER_MS, LAST_MIN_PART = 4;

// Readings in the time that a wrap takes at full power, and the shortest time between them.
static const int64_t POLLS_PER_WRAP = 4, WRAP_POLL_MIN_NS = 200 * NS_PER_MS;

static int64_t period_of(const struct poll_schedule *schedule, size_t device)
{
	return schedule->sampler->periods[device].period_ns;
}

// A counter that this recorder reads.
static bool is_counter(const struct poll_schedule *schedule, size_t device)
{
	return schedule->sampler->sensors->devices[device]->has_energy && sampler_reads(schedule->sampler, device);
}

static bool is_slow(const struct poll_schedule *schedule, size_t device)
{
	int64_t period_ns = period_of(schedule, device);
	return is_counter(schedule, device) && (period_ns == 0 || period_ns >= SLOW_NS);
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Interval between readings of a counter. While its period is unknown, the resolution follows the time without a
 * change. */
static int64_t step_ns(int64_t period_ns, int64_t passed_ns)
{
	return clamp((period_ns > 0 ? period_ns : passed_ns / 2) / POLLS_PER_PERIOD, POLL_MIN_NS, POLL_MAX_NS);
}

static void begin_round(struct poll_schedule *schedule, int64_t now_ns)
{
	size_t wanted = schedule->is_first ? EDGES_FIRST : EDGES_LATER;
	schedule->began_ns = now_ns;
	schedule->active = true;
	for (size_t i = 0; i < schedule->sampler->sensors->n_devices; i++)
		schedule->updates_wanted[i] = schedule->sampler->detectors[i].n_edges + wanted;
}

int poll_schedule_open(struct poll_schedule *schedule, struct sampler *sampler, int64_t now_ns)
{
	*schedule = (struct poll_schedule){.sampler = sampler, .is_first = true};
	schedule->updates_wanted = calloc_array(sampler->sensors->n_devices, sizeof(*schedule->updates_wanted));
	if (schedule->updates_wanted == NULL)
		return -ENOMEM;
	begin_round(schedule, now_ns);
	return 0;
}

void poll_schedule_close(struct poll_schedule *schedule)
{
	free(schedule->updates_wanted);
	*schedule = (struct poll_schedule){0};
}

// Whether this round still waits for edges of a counter.
static bool wants(const struct poll_schedule *schedule, size_t device, int64_t now_ns)
{
	const struct update_detector *watch = &schedule->sampler->detectors[device];
	int64_t period_ns = period_of(schedule, device);
	size_t wanted = schedule->updates_wanted[device] + (period_ns == 0 ? EDGES_UNKNOWN : 0);
	if (!is_slow(schedule, device) || watch->n_edges >= wanted)
		return false;
	int64_t timeout_ns = 3 * period_ns > PATIENCE_NS ? 3 * period_ns : PATIENCE_NS;
	bool moved = value_ok(watch->last_edge_ns) && watch->last_edge_ns > schedule->began_ns;
	int64_t since_ns = moved ? watch->last_edge_ns : schedule->began_ns;
	return now_ns - since_ns < timeout_ns && now_ns - schedule->began_ns < ROUND_MAX_NS;
}

static int64_t shortest_step_ns(const struct poll_schedule *schedule, int64_t now_ns)
{
	int64_t shortest_ns = VALUE_MISSING;
	for (size_t i = 0; i < schedule->sampler->sensors->n_devices; i++) {
		if (!wants(schedule, i, now_ns))
			continue;
		int64_t step = step_ns(period_of(schedule, i), now_ns - schedule->began_ns);
		// The ticks themselves are frequent enough.
		if (schedule->sampler->options.interval_ns <= step)
			continue;
		if (!value_ok(shortest_ns) || step < shortest_ns)
			shortest_ns = step;
	}
	return shortest_ns;
}

// Time of the next reading needed to detect every wrap; VALUE_MISSING: the ticks are enough.
static int64_t wrap_poll_ns(const struct poll_schedule *schedule)
{
	int64_t next_ns = VALUE_MISSING;
	for (size_t i = 0; i < schedule->sampler->sensors->n_devices; i++) {
		const struct domain *domain = schedule->sampler->sensors->devices[i];
		if (!is_counter(schedule, i) || domain->energy_range_uj == 0 || !(domain->max_power_w > 0))
			continue;
		double wrap_s = (double)domain->energy_range_uj / 1e6 / domain->max_power_w;
		double part_ns = fmin(wrap_s, 1e6) * 1e9 / (double)POLLS_PER_WRAP;
		int64_t distance_ns = clamp((int64_t)part_ns, WRAP_POLL_MIN_NS, INT64_MAX);
		int64_t at_ns = schedule->sampler->detectors[i].last_poll_ns + distance_ns;
		if (distance_ns < schedule->sampler->options.interval_ns && (!value_ok(next_ns) || at_ns < next_ns))
			next_ns = at_ns;
	}
	return next_ns;
}

static bool any_slow(const struct poll_schedule *schedule)
{
	for (size_t i = 0; i < schedule->sampler->sensors->n_devices; i++)
		if (is_slow(schedule, i))
			return true;
	return false;
}

static int64_t update_poll_ns(struct poll_schedule *schedule, int64_t now_ns)
{
	if (!schedule->active && now_ns >= schedule->next_round_ns)
		begin_round(schedule, now_ns);
	int64_t step = schedule->active ? shortest_step_ns(schedule, now_ns) : VALUE_MISSING;
	if (value_ok(step))
		return now_ns + step;
	if (schedule->active)
		schedule->next_round_ns = now_ns + ROUND_DISTANCE_NS;
	schedule->active = schedule->is_first = false;
	return any_slow(schedule) ? schedule->next_round_ns : VALUE_MISSING;
}

void poll_schedule_restart(struct poll_schedule *schedule, int64_t now_ns)
{
	schedule->is_first = true;
	begin_round(schedule, now_ns);
}

int64_t poll_schedule_next_ns(struct poll_schedule *schedule, int64_t now_ns)
{
	int64_t edge_ns = update_poll_ns(schedule, now_ns), wrap_ns = wrap_poll_ns(schedule);
	if (!value_ok(wrap_ns) || (value_ok(edge_ns) && edge_ns < wrap_ns))
		return edge_ns;
	// For an unreadable counter the last reading gets older and older.
	return wrap_ns > now_ns ? wrap_ns : now_ns + WRAP_POLL_MIN_NS;
}

void poll_schedule_finish(struct poll_schedule *schedule, int64_t start_ns, int64_t end_ns)
{
	begin_round(schedule, end_ns);
	for (size_t i = 0; i < schedule->sampler->sensors->n_devices; i++) {
		int64_t period_ns = period_of(schedule, i);
		bool reported = is_slow(schedule, i) && period_ns > 0 && schedule->sampler->detectors[i].n_edges > 0 &&
			end_ns - start_ns >= period_ns / LAST_MIN_PART;
		// Ticks may already have shown updates since end_ns; wait for one more.
		schedule->updates_wanted[i] = reported ? schedule->sampler->detectors[i].n_edges + 1 : 0;
	}
}

int64_t poll_schedule_last_ns(struct poll_schedule *schedule, int64_t now_ns)
{
	int64_t next_ns = VALUE_MISSING, passed_ns = now_ns - schedule->began_ns;
	for (size_t i = 0; i < schedule->sampler->sensors->n_devices; i++) {
		int64_t late_ns = period_of(schedule, i) * 3 / 2;
		if (schedule->sampler->detectors[i].n_edges >= schedule->updates_wanted[i] ||
			passed_ns >= (late_ns < LAST_MAX_NS ? late_ns : LAST_MAX_NS))
			continue;
		int64_t at_ns = now_ns + step_ns(period_of(schedule, i), passed_ns);
		if (!value_ok(next_ns) || at_ns < next_ns)
			next_ns = at_ns;
	}
	return next_ns;
}
