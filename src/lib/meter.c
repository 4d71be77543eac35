#include "wattle.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/nan_sum.h"
#include "base/util.h"
#include "energy/track.h"
#include "lib/tracker.h"
#include "process/machine.h"
#include "sensor/gpu_roster.h"

#include <assert.h>
#include <errno.h>

// Marks of the tracks: start of the meter, and latest reading.
enum { START, NOW };

struct meter_domain {
	struct energy_track track;
	bool is_model; // power is estimated by the load model
	bool in_total; // not contained in another domain of the sum
	struct energy_amount amount; // as of the latest reading
};

struct wattle_meter {
	struct wattle_env env;
	struct sensor_set sensors;
	struct machine machine;
	struct meter_domain *domains;  // owned: sensors.n_devices of them
	int64_t (*rows)[DEVICE_COUNT]; // owned, one row per device
	bool is_disabled, env_is_open, sensors_are_open;
	bool has_model;                // also reads the machine's load
	bool is_missing[DOMAIN_KINDS]; // a domain of this kind has no energy reading: the sum of the kind is unknown
	bool is_started, has_reading;  // has_reading: since start
	int64_t start_ns, asleep_ns;   // asleep: CLOCK_BOOTTIME minus CLOCK_MONOTONIC at the latest reading
};

/* ---- open ---- */

static int options_take(const struct wattle_meter_options *options, struct sensor_options *ret_options)
{
	struct wattle_meter_options own = {0};
	if (options != NULL) {
		if (options->size < sizeof(options->size))
			return -EINVAL;
		memcpy(&own, options, options->size < sizeof(own) ? options->size : sizeof(own));
	}
	if (own.gpu_brand != NULL && !tracker_option_is_brand(own.gpu_brand))
		return -EINVAL;
	*ret_options = (struct sensor_options){
		.gpus = own.gpus,
		.gpu_brand = own.gpu_brand,
		.calibrate_ns = 5 * NS_PER_MS,
	};
	gpu_environment(ret_options);
	return 0;
}

static void note_missing(wattle_meter *meter)
{
	for (size_t s = 0; s < meter->sensors.n_slots; s++) {
		const struct sensor_slot *slot = &meter->sensors.slots[s];
		for (size_t i = 0; i < slot->n_domains; i++) {
			const struct domain *domain = &slot->domains[i];
			bool counts = !domain->unwanted && sensor_set_find(&meter->sensors, domain->name) == NULL;
			if (counts && !domain->readable)
				meter->is_missing[domain->kind] = true;
		}
	}
}

// Returns whether any energy can be measured.
static bool describe(wattle_meter *meter)
{
	bool any = false;
	for (size_t i = 0; i < meter->sensors.n_devices; i++) {
		const struct domain *domain = meter->sensors.devices[i];
		struct meter_domain *own = &meter->domains[i];
		energy_track_init(&own->track, domain, meter->sensors.sources[i], false);
		own->in_total = sensor_set_adds_up(&meter->sensors, domain);
		own->is_model = !domain->has_energy && domain->provenance == PROVENANCE_ESTIMATED;
		bool gives_energy = domain->has_energy || own->is_model;
		meter->has_model |= own->is_model;
		meter->is_missing[domain->kind] |= !gives_energy;
		any |= gives_energy && domain_kind_adds_up(domain->kind);
	}
	note_missing(meter);
	return any;
}

static int open_sensors(wattle_meter *meter, const struct sensor_options *options)
{
	int r = env_open(&meter->env, NULL);
	if (r < 0)
		return r;
	meter->env_is_open = true;
	fork_lock_take(); // loads driver libraries
	r = sensor_set_open(&meter->sensors, &meter->env, options, NULL);
	fork_lock_release();
	if (r < 0)
		return r;
	meter->sensors_are_open = true;
	machine_open(&meter->machine, &meter->env);
	size_t n = meter->sensors.n_devices;
	meter->domains = calloc_array(n, sizeof(*meter->domains));
	meter->rows = calloc_array(n, sizeof(*meter->rows));
	if (meter->domains == NULL || meter->rows == NULL)
		return -ENOMEM;
	return describe(meter) ? 0 : -ENODEV;
}

int wattle_meter_open(const struct wattle_meter_options *options, wattle_meter **ret)
{
	struct sensor_options sensor_options;
	int r = ret != NULL ? options_take(options, &sensor_options) : -EINVAL;
	if (r < 0)
		return r;
	wattle_meter *meter = calloc(1, sizeof(*meter));
	if (meter == NULL)
		return -ENOMEM;
	meter->is_disabled = is_disabled_by_environment();
	if (!meter->is_disabled)
		r = open_sensors(meter, &sensor_options);
	if (r < 0)
		wattle_meter_close(meter);
	else
		*ret = meter;
	return r;
}

void wattle_meter_close(wattle_meter *meter)
{
	if (meter == NULL)
		return;
	if (meter->sensors_are_open) {
		machine_close(&meter->machine);
		fork_lock_take();
		sensor_set_close(&meter->sensors);
		fork_lock_release();
	}
	if (meter->env_is_open)
		env_close(&meter->env);
	free(meter->domains);
	free(meter->rows);
	free(meter);
}

/* ---- readings ---- */

static int64_t read_sensors(wattle_meter *meter)
{
	struct machine_reading load = {.cpu_busy_ns = VALUE_MISSING, .cpu_idle_ns = VALUE_MISSING};
	if (meter->has_model)
		machine_read(&meter->machine, &load);
	const struct sensor_context context = {
		.t_ns = env_now_ns(&meter->env),
		.system_busy_ns = load.cpu_busy_ns,
		.system_idle_ns = load.cpu_idle_ns,
		.energy_only = !meter->has_model,
	};
	sensor_set_read(&meter->sensors, &context, meter->rows);
	return context.t_ns;
}

// Adds one reading to all domains; `begin`: it becomes their starting point.
static int64_t take_reading(wattle_meter *meter, bool begin)
{
	if (meter->is_disabled)
		return clock_now_ns();
	int64_t t_ns = read_sensors(meter);
	int64_t asleep_ns = env_boottime_ns(&meter->env) - env_now_ns(&meter->env);
	bool suspended = asleep_ns - meter->asleep_ns > NS_PER_MS;
	for (size_t i = 0; i < meter->sensors.n_devices; i++) {
		struct energy_track *track = &meter->domains[i].track;
		energy_track_feed(track, t_ns, meter->rows[i], suspended);
		if (begin)
			energy_track_mark(track, START, t_ns);
		energy_track_mark(track, NOW, t_ns);
	}
	meter->asleep_ns = asleep_ns;
	return t_ns;
}

int wattle_meter_start(wattle_meter *meter)
{
	if (meter == NULL)
		return -EINVAL;
	meter->start_ns = take_reading(meter, true);
	meter->is_started = true;
	meter->has_reading = false;
	return 0;
}

/* ---- sums ---- */

struct sums {
	double energy_j[DOMAIN_KINDS]; // NaN: unknown
	double total_j;                // NaN: nothing is known, or a part was lost
	double model_error_j, error_j2, calibration_error_j;
	bool is_estimated;
};

static void add(double *sum_j, double energy_j)
{
	*sum_j = isnan(*sum_j) ? energy_j : *sum_j + energy_j;
}

// A power sensor read only at both ends gives no energy.
static struct energy_amount measure(struct meter_domain *domain)
{
	if (domain->track.domain->has_energy ? energy_track_is_lost(&domain->track, START) : !domain->is_model)
		return (struct energy_amount){(double)NAN, (double)NAN, (double)NAN};
	return energy_track_between(&domain->track, START, NOW);
}

// The sum of a kind is known if all of its domains are.
static void add_kinds(const wattle_meter *meter, struct sums *sums)
{
	bool is_known[DOMAIN_KINDS];
	for (size_t k = 0; k < DOMAIN_KINDS; k++) {
		sums->energy_j[k] = (double)NAN;
		is_known[k] = !meter->is_missing[k];
	}
	for (size_t i = 0; i < meter->sensors.n_devices; i++) {
		enum domain_kind kind = meter->domains[i].track.domain->kind;
		double energy_j = meter->domains[i].amount.j;
		is_known[kind] = is_known[kind] && !isnan(energy_j);
		add(&sums->energy_j[kind], energy_j);
	}
	for (size_t k = 0; k < DOMAIN_KINDS; k++)
		if (!is_known[k])
			sums->energy_j[k] = (double)NAN;
}

// Kinds without any reading (including a counter that never changes) are left out. If a kind is lost during the
// measurement, the total is unknown: the sum of the rest would look like the total.
static void add_total(const wattle_meter *meter, struct sums *sums)
{
	for (size_t i = 0; i < meter->sensors.n_devices; i++) {
		const struct meter_domain *domain = &meter->domains[i];
		const enum domain_kind kind = domain->track.domain->kind;
		if (!domain->in_total || meter->is_missing[kind])
			continue;
		if (domain->track.domain->has_energy && energy_track_is_lost(&domain->track, START)) {
			sums->total_j = (double)NAN;
			return;
		}
		if (isnan(sums->energy_j[kind]))
			continue;
		const struct energy_amount amount = domain->amount;
		add(&sums->total_j, amount.j);
		sums->calibration_error_j = nan_sum(sums->calibration_error_j, amount.calibration_error_j);
		sums->is_estimated |= domain->is_model;
		if (domain->is_model) // errors of the model are fully correlated
			sums->model_error_j += amount.error_j;
		else
			sums->error_j2 += amount.error_j * amount.error_j;
	}
}

static struct sums add_up(wattle_meter *meter)
{
	for (size_t i = 0; i < meter->sensors.n_devices; i++)
		meter->domains[i].amount = measure(&meter->domains[i]);
	struct sums sums = {.total_j = (double)NAN, .calibration_error_j = (double)NAN};
	add_kinds(meter, &sums);
	add_total(meter, &sums);
	return sums;
}

int wattle_meter_read(wattle_meter *meter, struct wattle_reading *ret)
{
	if (meter == NULL || ret == NULL || ret->size < sizeof(ret->size))
		return -EINVAL;
	if (!meter->is_started)
		return -EPERM;
	int64_t t_ns = take_reading(meter, false);
	struct sums sums = add_up(meter);
	meter->has_reading = true;
	bool is_known = !isnan(sums.total_j);
	const struct wattle_reading reading = {
		.size = ret->size,
		.seconds = (double)(t_ns - meter->start_ns) / 1e9,
		.cpu_j = sums.energy_j[DOMAIN_PACKAGE],
		.dram_j = sums.energy_j[DOMAIN_DRAM],
		.gpu_j = sums.energy_j[DOMAIN_GPU],
		.total_j = sums.total_j,
		.error_j = is_known ? sqrt(sums.model_error_j * sums.model_error_j + sums.error_j2) : (double)NAN,
		.estimated = sums.is_estimated,
		.calibration_error_j = is_known ? sums.calibration_error_j : (double)NAN,
	};
	memcpy(ret, &reading, reading.size < sizeof(reading) ? reading.size : sizeof(reading));
	return 0;
}

int wattle_meter_stop(wattle_meter *meter, struct wattle_reading *ret)
{
	int r = wattle_meter_read(meter, ret);
	if (r == 0)
		meter->is_started = false;
	return r;
}

int wattle_meter_domain(const wattle_meter *meter, size_t index, struct wattle_domain_reading *ret)
{
	if (meter == NULL || ret == NULL || ret->size < sizeof(ret->size))
		return -EINVAL;
	if (!meter->has_reading)
		return -EPERM;
	if (index >= meter->sensors.n_devices)
		return -ENOENT;
	const struct meter_domain *domain = &meter->domains[index];
	struct wattle_domain_reading reading = {
		.size = ret->size,
		.energy_j = domain->amount.j,
		.error_j = domain->amount.error_j,
		.calibration_error_j = domain->amount.calibration_error_j,
		.in_total = domain->in_total,
		.estimated = domain->is_model,
	};
	static_assert(sizeof(reading.domain) == sizeof(domain->track.domain->name), "any domain name fits");
	memcpy(reading.domain, domain->track.domain->name, sizeof(reading.domain));
	memcpy(ret, &reading, reading.size < sizeof(reading) ? reading.size : sizeof(reading));
	return 0;
}
