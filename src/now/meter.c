#include "now/meter.h"

#include "base/util.h"

/* A counter that is updated once in 100 ms and read once a second is up to a tenth off: power is taken over at least so many
 * updates, further back than the last look where that must be. */
enum { PERIODS_WANTED = 10 };
// A counter that stands still for so many of its periods meters no power; or for so long, where its period is not known.
static const int64_t still_periods = 10, still_ns = 3 * NS_PER_S;
// … but for less than so many of its last rest it only is slow: one of whole joules moves every 200 ms at 5 W.
static const int64_t still_rests = 3;
static const int64_t join_most_ns = 60 * NS_PER_S; // at least, and so many intervals:
static const double join_intervals = 2.5;

void meter_init(struct meter *meter, const struct domain *domain)
{
	*meter = (struct meter){.domain = domain, .last_power_w = (double)NAN, .power_w = (double)NAN};
	meter->join_most_ns = join_most_ns;
	counter_init(&meter->counter, domain->energy_range_uj, domain->max_power_w);
}

void meter_set_interval(struct meter *meter, int64_t interval_ns)
{
	int64_t most_ns = (int64_t)(join_intervals * (double)interval_ns);
	meter->join_most_ns = most_ns > join_most_ns ? most_ns : join_most_ns;
}

void meter_resume(struct meter *meter, const struct now_kept *kept, bool same_boot)
{
	struct counter *counter = &meter->counter;
	meter->energy_uj = kept->energy_uj;
	meter->integrated_uj = (double)kept->energy_uj;
	counter->total = (uint64_t)kept->energy_uj;
	counter->wraps = kept->wraps;
	counter->resets = kept->resets;
	counter->gaps = kept->gaps;
	if (!same_boot || !kept->has_raw)
		return;
	counter->primed = true;
	counter->last_raw = kept->last_raw;
	counter->last_t_ns = kept->last_t_ns;
	counter->last_change_ns = kept->last_change_ns;
	counter->mean_power_w = kept->mean_power_w;
	counter->mean_span_s = kept->mean_span_s;
}

/* ---- a counter ---- */

// `back` points before the newest one.
static const struct meter_point *point(const struct meter *meter, size_t back)
{
	return &meter->points[(meter->newest + METER_POINTS - back) % METER_POINTS];
}

static void add_point(struct meter *meter, int64_t t_ns, int64_t energy_uj)
{
	meter->newest = meter->n_points > 0 ? (meter->newest + 1) % METER_POINTS : 0;
	meter->points[meter->newest] = (struct meter_point){t_ns, energy_uj};
	meter->n_points += meter->n_points < METER_POINTS;
}

// Between the newest point and the nearest one that is far enough back; of a counter that says when it was updated, the one
// before.
static double power_of_points(const struct meter *meter, bool has_own_time)
{
	const struct meter_point *newest = point(meter, 0), *from = NULL;
	int64_t span_wanted_ns = has_own_time ? 0 : PERIODS_WANTED * meter->domain->update_period_ns;
	for (size_t back = 1; back < meter->n_points; back++) {
		from = point(meter, back);
		if (newest->t_ns - from->t_ns >= span_wanted_ns)
			break;
	}
	if (from == NULL || newest->t_ns <= from->t_ns)
		return (double)NAN;
	return (double)(newest->energy_uj - from->energy_uj) / (double)(newest->t_ns - from->t_ns) * 1e3; // µJ/ns = kW
}

static int64_t longest_rest_ns(const struct meter *meter)
{
	int64_t period_ns = meter->domain->update_period_ns;
	int64_t rest_ns = period_ns > 0 ? still_periods * period_ns : still_ns;
	int64_t last_ns = meter->n_points > 1 ? point(meter, 0)->t_ns - point(meter, 1)->t_ns : 0;
	return still_rests * last_ns > rest_ns ? still_rests * last_ns : rest_ns;
}

static void feed_counter(struct meter *meter, int64_t t_ns, const int64_t *row, bool suspended)
{
	uint64_t before_uj = meter->counter.total;
	enum counter_event event = counter_feed(&meter->counter, t_ns, row[DEVICE_ENERGY_RAW], suspended);
	double gain = domain_gain(meter->domain);
	if (event == COUNTER_GAP) { // the sensor may still know the power
		meter->power_w = gain * value_to_double(row[DEVICE_POWER], 1e-3);
		return;
	}
	meter->added_uj = llround(gain * (double)(meter->counter.total - before_uj));
	meter->energy_uj += meter->added_uj;
	if (event == COUNTER_RESET)
		meter->n_points = 0;
	bool has_own_time = value_ok(row[DEVICE_ENERGY_TIME]);
	bool moved = meter->added_uj > 0 || meter->n_points == 0;
	if (moved) {
		add_point(meter, has_own_time ? row[DEVICE_ENERGY_TIME] : t_ns, meter->energy_uj);
		meter->seen_ns = t_ns;
		meter->power_w = power_of_points(meter, has_own_time);
	} else if (t_ns - meter->seen_ns >= longest_rest_ns(meter)) {
		meter->power_w = 0;
	}
}

/* ---- power alone ---- */

static void feed_power(struct meter *meter, int64_t t_ns, const int64_t *row)
{
	double power_w = domain_gain(meter->domain) * value_to_double(row[DEVICE_POWER], 1e-3);
	int64_t dt_ns = meter->last_power_ns > 0 ? t_ns - meter->last_power_ns : 0;
	// The load model needs two looks for its first reading, which then is of the time between them.
	if (!meter->had_power)
		meter->last_power_w = power_w;
	meter->had_power = meter->had_power || !isnan(power_w);
	bool joined = !isnan(power_w) && !isnan(meter->last_power_w) && dt_ns > 0 && dt_ns <= meter->join_most_ns;
	if (joined)
		meter->integrated_uj += (power_w + meter->last_power_w) / 2 * (double)dt_ns / 1e3; // W·ns = 10^-3 µJ
	int64_t energy_uj = (int64_t)meter->integrated_uj;
	meter->added_uj = energy_uj > meter->energy_uj ? energy_uj - meter->energy_uj : 0;
	meter->energy_uj += meter->added_uj;
	meter->power_w = meter->last_power_w = power_w;
	meter->last_power_ns = t_ns;
}

void meter_feed(struct meter *meter, int64_t t_ns, const int64_t *row, bool suspended)
{
	meter->added_uj = 0;
	if (meter->domain->has_energy)
		feed_counter(meter, t_ns, row, suspended);
	else
		feed_power(meter, t_ns, row);
}
