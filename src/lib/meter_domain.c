/* docs/accuracy.md has the reasons; here two readings are all there is, so the bounds are simpler and wider:
 *
 *   error = sqrt((relative · E)² + ends² + 4 · 2 · step²/12), at least one step of the counter
 *
 *   ends  A reading tells the energy at the counter's last update, up to one period T ago. What was used between the
 *         update and the start is counted, what was used after the last one is missing: at most power · T each, and
 *         partly against each other. The power at the ends is not known: twice the mean of the stretch, or of what
 *         was before it, whichever is larger. Nothing seen at all: what a domain of this kind draws at most.
 *   model its stated error, else 50 %, of E. */
#include "lib/meter_domain.h"

#include "base/util.h"
#include "sensor/gpu_gain.h"

// Of a counter whose period nobody has measured or stated: none that we know is slower but the wall meters.
static const double PERIOD_UNKNOWN_S = 0.1;
static const double MODEL_ERROR = 0.5;
static const double ENDS_OVER_MEAN = 2;
// A counter that stood still for so long, and so many periods, is stuck: idle hardware uses energy too.
static const double STUCK_S = 1, STUCK_PERIODS = 5;

void meter_domain_init(struct meter_domain *domain, const struct domain *description)
{
	*domain = (struct meter_domain){
		.domain = description,
		.is_model = !description->has_energy && description->provenance == PROVENANCE_ESTIMATED,
		.before_w = (double)NAN,
	};
}

static struct meter_amount as_read(const struct meter_domain *domain);

static double square(double x)
{
	return x * x;
}

void meter_domain_start(struct meter_domain *domain, int64_t t_ns, const int64_t row[DEVICE_COUNT])
{
	// All up to now was fed just before.
	double seconds = seconds_between(domain->start_ns, t_ns);
	domain->before_w = domain->is_whole && seconds > 0 ? as_read(domain).energy_j / seconds : (double)NAN;
	const struct domain *description = domain->domain;
	counter_init(&domain->counter, description->energy_range_uj, description->max_power_w);
	domain->start_ns = domain->last_t_ns = t_ns;
	domain->energy_j = 0;
	domain->is_whole = domain->is_model ||
		(description->has_energy &&
			counter_feed(&domain->counter, t_ns, row[DEVICE_ENERGY_RAW], false) == COUNTER_FIRST);
}

static void feed_model(struct meter_domain *domain, int64_t t_ns, int64_t power_mw)
{
	// The model tells the mean since the reading before; before its second one it knows no load.
	double power_w = value_to_double(power_mw, 1e-3);
	domain->energy_j += power_w * seconds_between(domain->last_t_ns, t_ns);
	domain->is_whole = domain->is_whole && !isnan(domain->energy_j);
}

static void feed_counter(struct meter_domain *domain, int64_t t_ns, int64_t raw_uj, bool suspended)
{
	counter_feed(&domain->counter, t_ns, raw_uj, suspended);
	if (domain->counter.resets > 0 || domain->counter.ambiguous > 0)
		domain->is_whole = false;
}

void meter_domain_feed(struct meter_domain *domain, int64_t t_ns, const int64_t row[DEVICE_COUNT], bool suspended)
{
	if (domain->is_model)
		feed_model(domain, t_ns, row[DEVICE_POWER]);
	else if (domain->domain->has_energy)
		feed_counter(domain, t_ns, row[DEVICE_ENERGY_RAW], suspended);
	domain->last_t_ns = t_ns;
}

static double period_s(const struct domain *description)
{
	if (description->update_period_ns <= 0)
		return PERIOD_UNKNOWN_S;
	return (double)(description->update_period_ns + description->update_jitter_ns) / 1e9;
}

static double ends_j(const struct meter_domain *domain, double energy_j, double seconds)
{
	const struct domain *description = domain->domain;
	double period = period_s(description);
	double mean_w = energy_j /
		fmax(seconds, period); // within one period one update's energy may be all that is seen
	double power_w = ENDS_OVER_MEAN * fmax(mean_w, domain->before_w); // fmax passes over NaN
	if (energy_j <= 0 && !(domain->before_w > 0))
		power_w = description->max_power_w;
	return power_w * period;
}

static struct meter_amount counter_amount(const struct meter_domain *domain, double seconds)
{
	const struct meter_amount unknown = {.energy_j = (double)NAN, .error_j = (double)NAN};
	const struct domain *description = domain->domain;
	double energy_j = (double)domain->counter.total / 1e6;
	bool still = domain->counter.total == 0 && seconds >= fmax(STUCK_S, STUCK_PERIODS * period_s(description));
	if (domain->counter.in_gap || (still && description->kind != DOMAIN_UNCORE))
		return unknown;
	double step_j = (double)description->resolution_uj / 1e6;
	double error_j = sqrt(square(description->relative_error * energy_j) +
		square(ends_j(domain, energy_j, seconds)) + 4 * 2 * square(step_j) / 12);
	return (struct meter_amount){.energy_j = energy_j, .error_j = fmax(error_j, step_j)};
}

bool meter_domain_is_lost(const struct meter_domain *domain)
{
	return domain->domain->has_energy && (!domain->is_whole || domain->counter.in_gap);
}

static struct meter_amount as_read(const struct meter_domain *domain)
{
	if (!domain->is_whole)
		return (struct meter_amount){.energy_j = (double)NAN, .error_j = (double)NAN};
	if (!domain->is_model)
		return counter_amount(domain, seconds_between(domain->start_ns, domain->last_t_ns));
	double relative = domain->domain->relative_error > 0 ? domain->domain->relative_error : MODEL_ERROR;
	return (struct meter_amount){.energy_j = domain->energy_j, .error_j = relative * domain->energy_j};
}

static double calibration_error(const struct domain *domain)
{
	if (domain->kind != DOMAIN_GPU || domain->provenance == PROVENANCE_ESTIMATED)
		return (double)NAN;
	return domain_is_calibrated(domain) ? domain->calibration->error : GPU_GAIN_ASSUMED_ERROR;
}

struct meter_amount meter_domain_amount(const struct meter_domain *domain)
{
	struct meter_amount amount = as_read(domain);
	amount.energy_j *= domain_gain(domain->domain);
	amount.error_j *= domain_gain(domain->domain);
	amount.calibration_error_j = calibration_error(domain->domain) * amount.energy_j;
	return amount;
}
