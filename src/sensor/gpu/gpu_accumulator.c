#include "sensor/gpu/drm.h"

#include "base/util.h"

static const double UNITS_PER_J = 65536;
// Firmware updates its figures every millisecond; hypervisors and slow drivers may take some hundred milliseconds.
static const int64_t UNCHANGED_NS = NS_PER_S;
// Power readings that are further apart don't describe the time between them.
static const int64_t POWER_HOLDS_NS = 2 * NS_PER_S;
static const uint64_t WRAP_UNITS = UINT64_C(1) << 32;

void gpu_accumulator_init(struct gpu_accumulator *accumulator, double max_power_w)
{
	*accumulator = (struct gpu_accumulator){.max_power_w = max_power_w};
}

int64_t gpu_accumulator_uj(uint64_t units)
{
	// 10^6 / 2^16 = 15625 / 1024. Whole parts come first so that nothing overflows below 10^13 J.
	return (int64_t)(units / 1024 * 15625 + units % 1024 * 15625 / 1024);
}

static void begin(struct gpu_accumulator *a, int64_t t_ns, uint64_t units)
{
	a->primed = true;
	a->last_units = a->total_units = units;
	a->last_ns = a->power_ns = a->moved_ns = t_ns;
	a->waited_units = a->made_up_units = 0;
}

// Some firmware counts in 32 bits: a smaller value is a wrap if full power over the elapsed time explains it.
static bool is_wrap(const struct gpu_accumulator *a, int64_t t_ns, uint64_t units)
{
	double seconds = (double)(t_ns - a->last_ns) / 1e9 + 1;
	if (a->last_units >= WRAP_UNITS || units >= a->last_units)
		return false;
	return (double)(WRAP_UNITS - a->last_units + units) <= a->max_power_w * seconds * UNITS_PER_J;
}

/* The counter moved by `step`. After a stall, a step of at least half of the estimated energy means that the counter ran all
 * along and its update was late. A smaller step means that it missed that time and continues from its old value. */
static void moved(struct gpu_accumulator *a, int64_t t_ns, uint64_t units, uint64_t step)
{
	bool caught_up = a->made_up_units > 0 && (double)step >= a->made_up_units / 2;
	uint64_t reported = caught_up ? (uint64_t)a->made_up_units : 0;
	a->total_units += step > reported ? step - reported : 0;
	a->last_units = units;
	a->power_ns = a->moved_ns = t_ns;
	a->waited_units = a->made_up_units = 0;
}

static void stands(struct gpu_accumulator *a, int64_t t_ns, int64_t power_mw)
{
	if (!value_ok(power_mw))
		return;
	int64_t dt_ns = t_ns - a->power_ns;
	a->power_ns = t_ns;
	if (power_mw <= 0 || dt_ns > POWER_HOLDS_NS) {
		a->moved_ns = t_ns; // without power the counter should not move
		return;
	}
	a->waited_units += (double)power_mw / 1e3 * (double)dt_ns / 1e9 * UNITS_PER_J;
	if (t_ns - a->moved_ns < UNCHANGED_NS)
		return;
	a->is_unchanged = true;
	uint64_t more = (uint64_t)(a->waited_units - a->made_up_units);
	a->total_units += more;
	a->made_up_units += (double)more;
}

int64_t gpu_accumulator_feed(struct gpu_accumulator *a, int64_t t_ns, uint64_t units, int64_t power_mw)
{
	if (!a->primed)
		begin(a, t_ns, units);
	else if (units > a->last_units)
		moved(a, t_ns, units, units - a->last_units);
	else if (is_wrap(a, t_ns, units))
		moved(a, t_ns, units, WRAP_UNITS - a->last_units + units);
	else if (units < a->last_units)
		begin(a, t_ns, units); // restarted; the sampler detects the restart by the smaller total
	else
		stands(a, t_ns, power_mw);
	a->last_ns = t_ns;
	return gpu_accumulator_uj(a->total_units);
}
