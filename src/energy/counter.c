#include "energy/counter.h"

#include "base/util.h"

// Time constant of the mean power.
static const double MEAN_WINDOW_S = 10;
/* A reading is not taken at the instant of the update: a counter that updates once a second may show the energy of two
 * seconds 10 ms after the previous reading. */
static const double UPDATE_SLACK_S = 1;
/* Two updates of a hardware counter may be read in the wrong order: each read may go through another CPU, and SGX machines
 * add noise deliberately. A step back of less than this much time at full power is ignored … */
static const double NOISE_S = 0.001;
// … if the wrap that the step back would otherwise mean is this many times larger.
static const uint64_t NOISE_RATIO = 1000;

void counter_init(struct counter *counter, uint64_t range, double max_power_w)
{
	*counter = (struct counter){.range = range, .max_power_w = max_power_w};
}

static double seconds_since(int64_t then_ns, int64_t now_ns)
{
	return now_ns > then_ns ? (double)(now_ns - then_ns) / 1e9 : 0;
}

// Without a known maximum any value is plausible.
static double max_energy_uj(const struct counter *counter, double span_s)
{
	return counter->max_power_w > 0 ? counter->max_power_w * span_s * 1e6 : (double)INFINITY;
}

static enum counter_event miss(struct counter *counter)
{
	if (!counter->in_gap)
		counter->gaps++;
	counter->in_gap = true;
	return COUNTER_GAP;
}

// Makes the value the base of further counting.
static void rebase(struct counter *counter, int64_t t_ns, uint64_t raw)
{
	if (!counter->has_value || raw != counter->last_raw)
		counter->last_change_ns = t_ns;
	counter->last_raw = raw;
	counter->last_t_ns = t_ns;
	counter->has_value = true;
	counter->in_gap = false;
}

static enum counter_event reset(struct counter *counter, int64_t t_ns, uint64_t raw)
{
	rebase(counter, t_ns, raw);
	counter->resets++;
	return COUNTER_RESET;
}

// Cumulative mean up to the window length; an exponential mean afterwards.
static void note_power(struct counter *counter, uint64_t energy_uj, double dt_s)
{
	if (dt_s <= 0)
		return;
	counter->mean_span_s = fmin(counter->mean_span_s + dt_s, fmax(MEAN_WINDOW_S, dt_s));
	double power_w = (double)energy_uj / 1e6 / dt_s;
	counter->mean_power_w += (power_w - counter->mean_power_w) * dt_s / counter->mean_span_s;
}

static bool is_noise(const struct counter *counter, uint64_t raw)
{
	if (raw >= counter->last_raw || !(counter->max_power_w > 0))
		return false;
	uint64_t step_back = counter->last_raw - raw;
	bool wrap_is_far = counter->range == 0 || step_back < (counter->range - step_back) / NOISE_RATIO;
	return wrap_is_far && (double)step_back <= max_energy_uj(counter, NOISE_S);
}

/* Number of unseen full wraps in addition to the visible difference. It is zero unless one wrap at full power fits the
 * elapsed time; otherwise it is the number that brings the power closest to the earlier mean. */
static uint64_t hidden_rounds(const struct counter *counter, uint64_t seen_uj, double dt_s, bool *ret_ambiguous)
{
	double round_uj = (double)counter->range + 1;
	double possible = floor((max_energy_uj(counter, dt_s) - (double)seen_uj) / round_uj);
	*ret_ambiguous = counter->range > 0 && isfinite(possible) && possible >= 1;
	if (!*ret_ambiguous)
		return 0;
	double expected_uj = counter->mean_power_w * dt_s * 1e6;
	double likeliest = floor((expected_uj - (double)seen_uj) / round_uj + 0.5);
	return (uint64_t)fmax(0, fmin(likeliest, possible));
}

static enum counter_event count(struct counter *counter, int64_t t_ns, uint64_t raw, uint64_t seen_uj)
{
	double dt_s = seconds_since(counter->last_t_ns, t_ns);
	bool ambiguous, wrapped = raw < counter->last_raw, gap_ended = counter->in_gap;
	uint64_t rounds = hidden_rounds(counter, seen_uj, dt_s, &ambiguous);
	uint64_t energy_uj = seen_uj + rounds * (counter->range + 1);

	rebase(counter, t_ns, raw);
	note_power(counter, energy_uj, dt_s);
	counter->total += energy_uj;
	counter->wraps += (uint32_t)rounds + wrapped;
	counter->ambiguous += ambiguous;
	if (rounds > 0)
		return COUNTER_WRAPS;
	if (gap_ended)
		return COUNTER_GAP_ENDED;
	if (wrapped)
		return COUNTER_WRAP;
	return energy_uj == 0 ? COUNTER_STALLED : COUNTER_OK;
}

enum counter_event counter_feed(struct counter *counter, int64_t t_ns, int64_t raw_uj, bool suspended)
{
	// A value outside the range does not come from this counter.
	if (raw_uj < 0 || (counter->range > 0 && (uint64_t)raw_uj > counter->range))
		return miss(counter);
	uint64_t raw = (uint64_t)raw_uj;
	if (!counter->has_value) {
		rebase(counter, t_ns, raw);
		return COUNTER_FIRST;
	}
	bool went_back = raw < counter->last_raw;
	if (went_back && suspended)
		return reset(counter, t_ns, raw);
	if (is_noise(counter, raw))
		raw = counter->last_raw; // the next value is compared with the highest one, so that no energy counts twice
	else if (went_back && counter->range == 0)
		return reset(counter, t_ns, raw);

	uint64_t seen_uj = raw >= counter->last_raw ? raw - counter->last_raw
						    : counter->range - counter->last_raw + raw + 1;
	// Measured from the last change, not from the last reading: a counter that was stuck adds all its energy at once.
	double span_s = seconds_since(counter->last_change_ns, t_ns) + UPDATE_SLACK_S;
	if ((double)seen_uj > max_energy_uj(counter, span_s))
		return reset(counter, t_ns, raw);
	return count(counter, t_ns, raw, seen_uj);
}
