#include "sensor/powercap.h"

#include "base/util.h"

#include <assert.h>

/* How often do the counters really change? About every millisecond, but only watching tells. All are watched in one
 * loop, so that a machine of many zones costs no more than one of few; the loop's own length is the error. */

enum { INTERVALS_WANTED = 3 };

// A counter that stood still for so long is left alone: start-up must stay cheap where nothing ticks.
static const int64_t PATIENCE_NS = 3 * NS_PER_MS;
// So that a clock that stands still (a film's, between two frames) ends the loop too.
static const size_t ROUNDS_MAX = 20000;

struct watch {
	uint64_t last_uj;
	int64_t last_change_ns;
	int64_t intervals_ns[INTERVALS_WANTED];
	size_t n_changes; // the first one only starts the clock
};

static bool has_enough(const struct watch *watch)
{
	return watch->n_changes > INTERVALS_WANTED;
}

static void look(struct watch *watch, struct privileged *counters, size_t index, const struct wattle_env *env)
{
	uint64_t energy_uj;
	int64_t t_ns;
	if (privileged_read(counters, index, &energy_uj, &t_ns) < 0 || energy_uj == watch->last_uj)
		return;
	int64_t now_ns = env_now_ns(env);
	if (watch->n_changes > 0)
		watch->intervals_ns[watch->n_changes - 1] = now_ns - watch->last_change_ns;
	watch->last_uj = energy_uj;
	watch->last_change_ns = now_ns;
	watch->n_changes++;
}

// One round over all that still have something to tell; false when none has.
static bool look_at_all(struct powercap *powercap, struct watch *watches, const struct wattle_env *env,
	bool out_of_patience)
{
	bool more = false;
	privileged_refresh(&powercap->counters);
	for (size_t i = 0; i < powercap->n; i++) {
		struct watch *watch = &watches[i];
		bool is_silent = watch->n_changes == 0 && out_of_patience;
		// A period that is known already is the helper's, which no watching makes shorter.
		bool is_known = powercap->domains[i].update_period_ns > 0;
		if (!powercap->domains[i].used || is_known || has_enough(watch) || is_silent)
			continue;
		look(watch, &powercap->counters, i, env);
		more = true;
	}
	return more;
}

static int64_t median_ns(const struct watch *watch)
{
	int64_t a = watch->intervals_ns[0], b = watch->intervals_ns[1], c = watch->intervals_ns[2];
	static_assert(INTERVALS_WANTED == 3, "the median is that of three");
	int64_t low = a < b ? a : b, high = a < b ? b : a;
	return c < low ? low : c > high ? high : c;
}

void powercap_measure_periods(struct powercap *powercap, const struct wattle_env *env, int64_t limit_ns)
{
	struct watch *watches = limit_ns > 0 && powercap->n > 0 ? calloc_array(powercap->n, sizeof(watches[0])) : NULL;
	if (watches == NULL)
		return; // unknown periods are normal
	privileged_refresh(&powercap->counters);
	for (size_t i = 0; i < powercap->n; i++) {
		int64_t t_ns;
		if (powercap->domains[i].used &&
			privileged_read(&powercap->counters, i, &watches[i].last_uj, &t_ns) < 0)
			watches[i].last_uj = 0;
	}

	int64_t start_ns = env_now_ns(env), passed_ns = 0;
	for (size_t round = 0; round < ROUNDS_MAX && passed_ns < limit_ns; round++) {
		if (!look_at_all(powercap, watches, env, passed_ns > PATIENCE_NS))
			break;
		passed_ns = env_now_ns(env) - start_ns;
	}
	for (size_t i = 0; i < powercap->n; i++)
		if (has_enough(&watches[i]))
			powercap->domains[i].update_period_ns = median_ns(&watches[i]);
	free(watches);
}
