#include "sensor/internal.h"

#include "base/util.h"

// Readings delayed by buffers, pipes and networks arrive at most this late.
static const int64_t LATE_MAX_NS = 60 * NS_PER_S;
// Maximum offset between clocks that NTP synchronises.
static const int64_t EARLY_MAX_NS = 2 * NS_PER_S;

void stamp_clock_init(struct stamp_clock *clock, const struct wattle_env *env)
{
	*clock = (struct stamp_clock){.env = env};
}

static bool is_recent(int64_t t_ns, int64_t now_ns)
{
	return t_ns >= now_ns - LATE_MAX_NS && t_ns <= now_ns + EARLY_MAX_NS;
}

static void anchor(struct stamp_clock *clock, int64_t stamp_ns, int64_t now_ns)
{
	int64_t own_now_ns = env_now_ns(clock->env);
	const int64_t offsets_ns[] = {
		env_wall_ns(clock->env) - own_now_ns,
		0,
		env_boottime_ns(clock->env) - own_now_ns,
	};
	clock->anchored = true;
	clock->foreign = false;
	for (size_t i = 0; i < ARRAY_SIZE(offsets_ns); i++) {
		clock->offset_ns = offsets_ns[i];
		if (is_recent(stamp_ns - clock->offset_ns, now_ns))
			return;
	}
	clock->offset_ns = stamp_ns - now_ns;
	clock->foreign = true;
}

int64_t stamp_to_monotonic(struct stamp_clock *clock, int64_t stamp_ns, int64_t now_ns)
{
	if (clock->anchored && stamp_ns == clock->last_stamp_ns)
		return clock->last_ns;
	// A stamp outside the window means that one of the clocks was set.
	if (!clock->anchored || !is_recent(stamp_ns - clock->offset_ns, now_ns))
		anchor(clock, stamp_ns, now_ns);
	if (stamp_ns - clock->offset_ns > now_ns)
		clock->offset_ns = stamp_ns - now_ns;
	clock->last_stamp_ns = stamp_ns;
	clock->last_ns = stamp_ns - clock->offset_ns;
	return clock->last_ns;
}

int64_t counter_restart_jump_uj(double max_power_w, int64_t running_ns)
{
	static const double margin = 4, slack_s = 10;
	return (int64_t)(margin * max_power_w * ((double)running_ns / 1e9 + slack_s) * 1e6);
}
