#include "sensor/internal.h"

#include "base/util.h"
#include "sensor/sysfs.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

/* Energy of CPU packages and their parts: /sys/class/powercap, provided by the kernel's intel_rapl drivers, which support AMD
 * and Hygon as well.
 *
 * A zone is identified by its `name` file; its number is arbitrary (psys may be intel-rapl:1, between two packages). Its
 * `enabled` file switches the power limit, not the counter, and is ignored. */

// The raw counter has 32 bits, so the range determines the step size, unless the range is invented.
static uint64_t resolution_uj(uint64_t range_uj)
{
	const uint64_t steps = UINT64_C(1) << 32;
	return range_uj >= steps ? range_uj / steps + (range_uj % steps > 0) : 0;
}

static uint64_t read_range(int root_fd, const struct zone *zone)
{
	char path[sizeof(zone->path) + 24];
	uint64_t range_uj;
	snprintf(path, sizeof(path), "%s/max_energy_range_uj", zone->path);
	return file_read_u64_in(root_fd, path, &range_uj) == 0 ? range_uj : 0;
}

static void describe_counter(struct powercap *powercap, size_t index, const struct wattle_env *env,
	const struct zone *zone)
{
	struct domain *domain = &powercap->domains[index];
	uint64_t energy_uj = 0;
	int64_t t_ns;
	int r = privileged_read(&powercap->counters, index, &energy_uj, &t_ns);
	domain->provenance = PROVENANCE_MEASURED;
	domain->has_energy = true;
	domain->energy_range_uj = read_range(env->sysfs_fd, zone);
	// Since Linux 5.10 the file is readable by root only (CVE-2020-8694: power traces leak keys).
	privileged_describe(&powercap->counters, index, r, domain);
	if (energy_uj > domain->energy_range_uj) // a range that the counter already exceeds is invalid
		domain->energy_range_uj = 0;
	domain->resolution_uj = resolution_uj(domain->energy_range_uj);
}

static int open_counters(struct powercap *powercap, const struct zone_list *list)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < list->n; i++) {
		char path[sizeof(list->zones[i].path) + 16];
		snprintf(path, sizeof(path), "%s/energy_uj", list->zones[i].path);
		r = privileged_add(&powercap->counters, path, list->zones[i].id);
	}
	return r < 0 ? r : 0;
}

static int open_zones(struct powercap *powercap, const struct wattle_env *env, const struct zone_list *list)
{
	powercap->domains = calloc_array(list->n, sizeof(powercap->domains[0]));
	int r = powercap->domains != NULL ? open_counters(powercap, list) : -ENOMEM;
	if (r < 0)
		return r;
	powercap->n = list->n;
	privileged_refresh(&powercap->counters);
	for (size_t i = 0; i < list->n; i++)
		describe_counter(powercap, i, env, &list->zones[i]);
	powercap_name_domains(list->zones, powercap->domains, powercap->n, cpu_dies_share_counter(env));
	return 0;
}

static int open_sensor(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct powercap *powercap = state;
	struct zone_list list;
	privileged_init(&powercap->counters, env);
	int r = zone_list_find(env->sysfs_fd, &list);
	zone_list_keep(&list, powercap_zone_is_known);
	if (r == 0 && list.n > 0)
		r = open_zones(powercap, env, &list);
	zone_list_finish(&list);
	if (r < 0)
		return error_set(reterr, r, "out of memory for the zones of %s/class/powercap", env->sysfs);
	powercap_measure_periods(powercap, env, options->calibrate_ns);
	return 0;
}

static struct domain *domains(void *state, size_t *ret_count)
{
	struct powercap *powercap = state;
	*ret_count = powercap->n;
	return powercap->domains;
}

static void read_sensor(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct powercap *powercap = state;
	privileged_refresh(&powercap->counters);
	for (size_t i = 0; i < powercap->n; i++) {
		if (!powercap->domains[i].used)
			continue;
		privileged_fill(&powercap->counters, i, rows[i]);
		privileged_note(&powercap->counters, i, &powercap->domains[i]);
	}
}

static void close_sensor(void *state)
{
	struct powercap *powercap = state;
	privileged_close(&powercap->counters);
	free(powercap->domains);
	*powercap = (struct powercap){0};
}

const struct sensor_ops sensor_powercap = {
	.name = "powercap",
	.state_size = sizeof(struct powercap),
	.open = open_sensor,
	.domains = domains,
	.read = read_sensor,
	.close = close_sensor,
};

/* Measures the update period of the counters, about a millisecond, by polling. All counters are polled in one loop, so that
 * many zones take no longer than few; the duration of one pass is the error. On a busy machine the process waits for a CPU
 * longer than the whole measurement takes: after a pause the limit counts anew, and no interval contains one. */

enum { INTERVALS_WANTED = 3 };

// A counter that does not change for this long is skipped: start-up must stay fast where no counter changes.
static const int64_t PATIENCE_NS = 3 * NS_PER_MS;
// A step of the polling that takes longer is a pause; all of it ends after this many limits.
static const int64_t PAUSE_NS = 2 * NS_PER_MS, LIMITS_MAX = 10;
// Ends the loop even if the clock does not advance (a replay between two frames).
static const size_t ROUNDS_MAX = 20000;

struct polling {
	const struct wattle_env *env;
	int64_t now_ns, passed_ns; // passed: since the last pause
	size_t n_pauses;
};

struct watch {
	uint64_t last_uj;
	int64_t last_change_ns;
	size_t n_pauses; // up to the last reading
	int64_t intervals_ns[INTERVALS_WANTED];
	size_t n_intervals;
	bool has_changed, is_timed; // timed: no pause before the reading that showed the last change
};

static void polling_advance(struct polling *polling)
{
	int64_t step_ns = env_now_ns(polling->env) - polling->now_ns;
	bool is_pause = step_ns > PAUSE_NS;
	polling->n_pauses += is_pause;
	polling->passed_ns = is_pause ? 0 : polling->passed_ns + step_ns;
	polling->now_ns += step_ns;
}

static bool has_enough(const struct watch *watch)
{
	return watch->n_intervals == INTERVALS_WANTED;
}

static void read_zone(struct watch *watch, struct privileged *counters, size_t index, struct polling *polling)
{
	uint64_t energy_uj;
	int64_t t_ns;
	size_t n_pauses = watch->n_pauses;
	watch->n_pauses = polling->n_pauses;
	if (privileged_read(counters, index, &energy_uj, &t_ns) < 0 || energy_uj == watch->last_uj)
		return;
	polling_advance(polling);
	bool is_timed = n_pauses == polling->n_pauses;
	if (is_timed && watch->is_timed)
		watch->intervals_ns[watch->n_intervals++] = polling->now_ns - watch->last_change_ns;
	watch->last_uj = energy_uj;
	watch->last_change_ns = polling->now_ns;
	watch->n_pauses = polling->n_pauses;
	watch->has_changed = true;
	watch->is_timed = is_timed;
}

// Polls all unfinished counters once; returns false when all are finished.
static bool read_all_zones(struct powercap *powercap, struct watch *watches, struct polling *polling)
{
	bool more = false, has_timed_out = polling->passed_ns > PATIENCE_NS;
	privileged_refresh(&powercap->counters);
	for (size_t i = 0; i < powercap->n; i++) {
		struct watch *watch = &watches[i];
		bool is_silent = !watch->has_changed && has_timed_out;
		// A known period is that of the helper, which polling cannot shorten.
		bool is_known = powercap->domains[i].update_period_ns > 0;
		if (!powercap->domains[i].used || is_known || has_enough(watch) || is_silent)
			continue;
		read_zone(watch, &powercap->counters, i, polling);
		more = true;
	}
	return more;
}

static int64_t median_ns(const struct watch *watch)
{
	int64_t a = watch->intervals_ns[0], b = watch->intervals_ns[1], c = watch->intervals_ns[2];
	static_assert(INTERVALS_WANTED == 3, "the median of three intervals");
	int64_t low = a < b ? a : b, high = a < b ? b : a;
	return c < low ? low : c > high ? high : c;
}

void powercap_measure_periods(struct powercap *powercap, const struct wattle_env *env, int64_t limit_ns)
{
	struct watch *watches = limit_ns > 0 && powercap->n > 0 ? calloc_array(powercap->n, sizeof(watches[0])) : NULL;
	if (watches == NULL)
		return; // an unknown period is normal
	privileged_refresh(&powercap->counters);
	for (size_t i = 0; i < powercap->n; i++) {
		int64_t t_ns;
		if (powercap->domains[i].used &&
			privileged_read(&powercap->counters, i, &watches[i].last_uj, &t_ns) < 0)
			watches[i].last_uj = 0;
	}

	int64_t start_ns = env_now_ns(env);
	struct polling polling = {.env = env, .now_ns = start_ns};
	for (size_t round = 0; round < ROUNDS_MAX && polling.passed_ns < limit_ns; round++) {
		if (!read_all_zones(powercap, watches, &polling) || polling.now_ns - start_ns > LIMITS_MAX * limit_ns)
			break;
		polling_advance(&polling);
	}
	for (size_t i = 0; i < powercap->n; i++)
		if (has_enough(&watches[i]))
			powercap->domains[i].update_period_ns = median_ns(&watches[i]);
	free(watches);
}
