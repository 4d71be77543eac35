#include "cli/sensors.h"

#include "base/util.h"

// Random variation of an idle machine's power from second to second: about a tenth; a few tenths of a watt for small domains.
static const double SPREAD_RELATIVE = 0.1, SPREAD_W = 0.5;

void idle_monitor_init(struct idle_monitor *watch, const struct domain *domain, int64_t t_ns)
{
	*watch = (struct idle_monitor){.domain = domain, .last_poll_ns = t_ns};
	counter_init(&watch->counter, domain->energy_range_uj, domain->max_power_w);
}

/* The counter changed between the previous reading and this one. If the counter is known to be updated more often than it is
 * read, its value is at most one update period old. */
static void note_edge(struct idle_monitor *watch, int64_t t_ns)
{
	int64_t period_ns = watch->domain->update_period_ns, blur_ns = t_ns - watch->last_poll_ns;
	if (period_ns > 0 && period_ns < blur_ns)
		blur_ns = period_ns;
	const struct idle_edge edge = {t_ns, (double)watch->counter.total * 1e-6, (double)blur_ns * 1e-9};
	if (!watch->has_edge)
		watch->first = watch->window_start = edge;
	watch->last = edge;
	watch->has_edge = true;
}

static void feed_energy(struct idle_monitor *watch, int64_t t_ns, int64_t raw_uj)
{
	switch (counter_feed(&watch->counter, t_ns, raw_uj, false)) {
	case COUNTER_OK:
	case COUNTER_WRAP:
	case COUNTER_GAP_ENDED:
		note_edge(watch, t_ns);
		break;
	case COUNTER_RESET:
	case COUNTER_WRAPS: // the number of wraps would be a guess
		watch->was_reset = true;
		break;
	case COUNTER_FIRST: // the time of that update is unknown
	case COUNTER_STALLED:
	case COUNTER_GAP:
		break;
	}
	watch->last_poll_ns = t_ns;
}

void idle_monitor_feed(struct idle_monitor *watch, int64_t t_ns, const int64_t values[DEVICE_COUNT])
{
	if (watch->domain->has_energy) {
		feed_energy(watch, t_ns, values[DEVICE_ENERGY_RAW]);
	} else if (value_ok(values[DEVICE_POWER])) {
		watch->power_sum_w += (double)values[DEVICE_POWER] * 1e-3;
		watch->n_powers++;
		watch->last.t_ns = t_ns;
		watch->first.t_ns = watch->first.t_ns != 0 ? watch->first.t_ns : t_ns;
	}
	if (value_ok(values[DEVICE_TEMPERATURE])) {
		watch->temperature_sum_c += (double)values[DEVICE_TEMPERATURE];
		watch->n_temperatures++;
	}
}

static double mean_power_w(const struct idle_edge *from, const struct idle_edge *to)
{
	return to->t_ns > from->t_ns ? (to->energy_j - from->energy_j) / ((double)(to->t_ns - from->t_ns) * 1e-9)
				     : (double)NAN;
}

void idle_monitor_end_window(struct idle_monitor *watch)
{
	double power_w = (double)NAN;
	if (watch->domain->has_energy)
		power_w = mean_power_w(&watch->window_start, &watch->last);
	else if (watch->n_powers > 0)
		power_w = watch->power_sum_w / (double)watch->n_powers;
	watch->window_start = watch->last;
	watch->power_sum_w = 0;
	watch->n_powers = 0;
	if (watch->n_windows < IDLE_WINDOWS_MAX)
		watch->windows_w[watch->n_windows++] = power_w;
}

struct spread {
	size_t n;
	double mean_w, deviation_w, lowest_w, highest_w;
};

static struct spread spread_of(const struct idle_monitor *watch)
{
	struct spread s = {.lowest_w = (double)INFINITY, .highest_w = -(double)INFINITY};
	double squares = 0;
	for (size_t i = 0; i < watch->n_windows; i++) {
		double power_w = watch->windows_w[i];
		if (isnan(power_w))
			continue;
		double step = power_w - s.mean_w; // Welford's running mean and sum of squares
		s.mean_w += step / (double)++s.n;
		squares += step * (power_w - s.mean_w);
		s.lowest_w = fmin(s.lowest_w, power_w);
		s.highest_w = fmax(s.highest_w, power_w);
	}
	s.deviation_w = s.n > 1 ? sqrt(squares / (double)(s.n - 1)) : 0;
	return s;
}

/* Combines the error of the two edges (docs/accuracy.md: an update within `blur`, a step within the resolution) and the random
 * variation of the power. */
static double error_w(const struct idle_monitor *watch, const struct spread *spread, double power_w, double seconds)
{
	double step_w = (double)watch->domain->resolution_uj * 1e-6 / seconds;
	double first_w = power_w * watch->first.blur_s / seconds, last_w = power_w * watch->last.blur_s / seconds;
	double wander_w2 = spread->n > 0 ? spread->deviation_w * spread->deviation_w / (double)spread->n : 0;
	return 2 * sqrt((2 * step_w * step_w + first_w * first_w + last_w * last_w) / 12 + wander_w2);
}

bool idle_monitor_result(const struct idle_monitor *watch, struct idle_result *ret_result)
{
	struct spread spread = spread_of(watch);
	double seconds = (double)(watch->last.t_ns - watch->first.t_ns) * 1e-9;
	double power_w = watch->domain->has_energy ? mean_power_w(&watch->first, &watch->last) : spread.mean_w;
	if (watch->was_reset || spread.n == 0 || !(power_w > 0) || !(seconds > 0))
		return false;
	*ret_result = (struct idle_result){
		.idle_w = power_w,
		.error_w = error_w(watch, &spread, power_w, seconds),
		.seconds = seconds,
		.temperature_c = watch->n_temperatures > 0 ? watch->temperature_sum_c / (double)watch->n_temperatures
							   : (double)NAN,
		.lowest_w = spread.lowest_w,
		.highest_w = spread.highest_w,
	};
	return true;
}

bool idle_monitor_is_steady(const struct idle_monitor *watch, struct idle_result *ret_result)
{
	struct idle_result result;
	if (!idle_monitor_result(watch, &result))
		return true; // a domain without changes is steady
	double window_s = result.seconds / (double)watch->n_windows;
	double step_w = (double)watch->domain->resolution_uj * 1e-6 / window_s;
	*ret_result = result;
	return result.highest_w - result.lowest_w <= SPREAD_RELATIVE * result.idle_w + SPREAD_W + 2 * step_w;
}
