#include "sampler/sampler.h"

#include "base/util.h"

#include <errno.h>

// Faster counters are accurate enough as they are, and are measured at open.
static const int64_t SLOW_NS = 3 * NS_PER_MS;
// Readings in one period; at most a thousand a second.
static const int64_t LOOKS_A_PERIOD = 20, LOOK_MIN_NS = NS_PER_MS, LOOK_MAX_NS = 10 * NS_PER_MS;
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
static const int64_t LOOKS_A_WRAP = 4, WRAP_LOOK_MIN_NS = 200 * NS_PER_MS;

static int64_t period_of(const struct probe *probe, size_t device)
{
	return probe->sampler->periods[device].period_ns;
}

// A counter that this recorder reads.
static bool is_counter(const struct probe *probe, size_t device)
{
	return probe->sampler->sensors->devices[device]->has_energy && sampler_reads(probe->sampler, device);
}

static bool is_slow(const struct probe *probe, size_t device)
{
	int64_t period_ns = period_of(probe, device);
	return is_counter(probe, device) && (period_ns == 0 || period_ns >= SLOW_NS);
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Interval between readings of a counter. While its period is unknown, the resolution follows the time without a
 * change. */
static int64_t step_ns(int64_t period_ns, int64_t passed_ns)
{
	return clamp((period_ns > 0 ? period_ns : passed_ns / 2) / LOOKS_A_PERIOD, LOOK_MIN_NS, LOOK_MAX_NS);
}

static void begin_round(struct probe *probe, int64_t now_ns)
{
	size_t wanted = probe->is_first ? EDGES_FIRST : EDGES_LATER;
	probe->began_ns = now_ns;
	probe->active = true;
	for (size_t i = 0; i < probe->sampler->sensors->n_devices; i++)
		probe->edges_wanted[i] = probe->sampler->watches[i].n_edges + wanted;
}

int probe_open(struct probe *probe, struct sampler *sampler, int64_t now_ns)
{
	*probe = (struct probe){.sampler = sampler, .is_first = true};
	probe->edges_wanted = calloc_array(sampler->sensors->n_devices, sizeof(*probe->edges_wanted));
	if (probe->edges_wanted == NULL)
		return -ENOMEM;
	begin_round(probe, now_ns);
	return 0;
}

void probe_close(struct probe *probe)
{
	free(probe->edges_wanted);
	*probe = (struct probe){0};
}

// Whether this round still waits for edges of a counter.
static bool wants(const struct probe *probe, size_t device, int64_t now_ns)
{
	const struct edge_watch *watch = &probe->sampler->watches[device];
	int64_t period_ns = period_of(probe, device);
	size_t wanted = probe->edges_wanted[device] + (period_ns == 0 ? EDGES_UNKNOWN : 0);
	if (!is_slow(probe, device) || watch->n_edges >= wanted)
		return false;
	int64_t patience_ns = 3 * period_ns > PATIENCE_NS ? 3 * period_ns : PATIENCE_NS;
	bool moved = value_ok(watch->last_edge_ns) && watch->last_edge_ns > probe->began_ns;
	int64_t since_ns = moved ? watch->last_edge_ns : probe->began_ns;
	return now_ns - since_ns < patience_ns && now_ns - probe->began_ns < ROUND_MAX_NS;
}

static int64_t shortest_step_ns(const struct probe *probe, int64_t now_ns)
{
	int64_t shortest_ns = VALUE_MISSING;
	for (size_t i = 0; i < probe->sampler->sensors->n_devices; i++) {
		if (!wants(probe, i, now_ns))
			continue;
		int64_t step = step_ns(period_of(probe, i), now_ns - probe->began_ns);
		// The ticks themselves are frequent enough.
		if (probe->sampler->options.interval_ns <= step)
			continue;
		if (!value_ok(shortest_ns) || step < shortest_ns)
			shortest_ns = step;
	}
	return shortest_ns;
}

// Time of the next reading needed to detect every wrap; VALUE_MISSING: the ticks are enough.
static int64_t wrap_look_ns(const struct probe *probe)
{
	int64_t next_ns = VALUE_MISSING;
	for (size_t i = 0; i < probe->sampler->sensors->n_devices; i++) {
		const struct domain *domain = probe->sampler->sensors->devices[i];
		if (!is_counter(probe, i) || domain->energy_range_uj == 0 || !(domain->max_power_w > 0))
			continue;
		double wrap_s = (double)domain->energy_range_uj / 1e6 / domain->max_power_w;
		double part_ns = fmin(wrap_s, 1e6) * 1e9 / (double)LOOKS_A_WRAP;
		int64_t distance_ns = clamp((int64_t)part_ns, WRAP_LOOK_MIN_NS, INT64_MAX);
		int64_t at_ns = probe->sampler->watches[i].last_look_ns + distance_ns;
		if (distance_ns < probe->sampler->options.interval_ns && (!value_ok(next_ns) || at_ns < next_ns))
			next_ns = at_ns;
	}
	return next_ns;
}

static bool any_slow(const struct probe *probe)
{
	for (size_t i = 0; i < probe->sampler->sensors->n_devices; i++)
		if (is_slow(probe, i))
			return true;
	return false;
}

static int64_t edge_look_ns(struct probe *probe, int64_t now_ns)
{
	if (!probe->active && now_ns >= probe->next_round_ns)
		begin_round(probe, now_ns);
	int64_t step = probe->active ? shortest_step_ns(probe, now_ns) : VALUE_MISSING;
	if (value_ok(step))
		return now_ns + step;
	if (probe->active)
		probe->next_round_ns = now_ns + ROUND_DISTANCE_NS;
	probe->active = probe->is_first = false;
	return any_slow(probe) ? probe->next_round_ns : VALUE_MISSING;
}

void probe_again(struct probe *probe, int64_t now_ns)
{
	probe->is_first = true;
	begin_round(probe, now_ns);
}

int64_t probe_next_ns(struct probe *probe, int64_t now_ns)
{
	int64_t edge_ns = edge_look_ns(probe, now_ns), wrap_ns = wrap_look_ns(probe);
	if (!value_ok(wrap_ns) || (value_ok(edge_ns) && edge_ns < wrap_ns))
		return edge_ns;
	// For an unreadable counter the last reading gets older and older.
	return wrap_ns > now_ns ? wrap_ns : now_ns + WRAP_LOOK_MIN_NS;
}

void probe_finish(struct probe *probe, int64_t start_ns, int64_t end_ns)
{
	begin_round(probe, end_ns);
	for (size_t i = 0; i < probe->sampler->sensors->n_devices; i++) {
		int64_t period_ns = period_of(probe, i);
		bool told = is_slow(probe, i) && period_ns > 0 && probe->sampler->watches[i].n_edges > 0 &&
			end_ns - start_ns >= period_ns / LAST_MIN_PART;
		// Changes seen since end_ns were made at ticks before; one more is waited for.
		probe->edges_wanted[i] = told ? probe->sampler->watches[i].n_edges + 1 : 0;
	}
}

int64_t probe_last_ns(struct probe *probe, int64_t now_ns)
{
	int64_t next_ns = VALUE_MISSING, passed_ns = now_ns - probe->began_ns;
	for (size_t i = 0; i < probe->sampler->sensors->n_devices; i++) {
		int64_t late_ns = period_of(probe, i) * 3 / 2;
		if (probe->sampler->watches[i].n_edges >= probe->edges_wanted[i] ||
			passed_ns >= (late_ns < LAST_MAX_NS ? late_ns : LAST_MAX_NS))
			continue;
		int64_t at_ns = now_ns + step_ns(period_of(probe, i), passed_ns);
		if (!value_ok(next_ns) || at_ns < next_ns)
			next_ns = at_ns;
	}
	return next_ns;
}
