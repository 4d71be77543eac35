#include "sampler/sampler.h"

#include "base/util.h"
#include "metric/metric.h"

#include <string.h>

/* ---- counter events ---- */

static void report_event(struct sampler *sampler, enum event_type type, int64_t t_ns, const char *device)
{
	struct event event = event_make(type, t_ns);
	event.device = device;
	sampler_event(sampler, &event);
}

static void report_counter_event(struct sampler *sampler, int64_t t_ns, const char *name, enum counter_event event)
{
	static const enum event_type reported[] = {
		[COUNTER_OK] = EVENT_OTHER, // no event
		[COUNTER_FIRST] = EVENT_OTHER,
		[COUNTER_STALLED] = EVENT_OTHER,
		[COUNTER_WRAP] = EVENT_WRAP,
		[COUNTER_WRAPS] = EVENT_WRAP_SEVERAL,
		[COUNTER_RESET] = EVENT_RESET,
		[COUNTER_GAP] = EVENT_GAP,
		[COUNTER_GAP_ENDED] = EVENT_GAP_END,
	};
	if (reported[event] != EVENT_OTHER)
		report_event(sampler, reported[event], t_ns, name);
}

/* The period is updated as long as the run lasts. A stated period is not replaced by a longer observed one that only
 * results from coarse steps: at 5 W a counter of whole joules changes every 200 ms, however often it is updated. */
static void keep_period_up(const struct domain *domain, const struct update_detector *watch,
	struct update_period *period)
{
	struct update_period seen;
	if (!update_detector_period(watch, &seen.period_ns, &seen.jitter_ns))
		return;
	bool coarse = domain->resolution_uj > 0 && watch->smallest_step <= 2 * domain->resolution_uj;
	if (!coarse || period->period_ns <= 0 || period->period_ns >= seen.period_ns)
		*period = seen;
}

// Start of counting, first or again.
static bool is_beginning(enum counter_event event)
{
	return event == COUNTER_FIRST || event == COUNTER_RESET || event == COUNTER_GAP_ENDED;
}

// From the raw counter to the extended one; true if it changed.
static bool extend_energy(struct sampler *sampler, size_t device, int64_t t_ns, bool suspended)
{
	const struct domain *domain = sampler->sensors->devices[device];
	struct counter *counter = &sampler->counters[device];
	int64_t *row = sampler->rows[device], raw_uj = row[DEVICE_ENERGY_RAW];
	if (!domain->has_energy)
		return false;
	bool was_in_gap = counter->in_gap;
	enum counter_event event = counter_feed(counter, t_ns, raw_uj, suspended);
	if (event != COUNTER_GAP || !was_in_gap) // a gap is reported once
		report_counter_event(sampler, t_ns, domain->name, event);
	if (!value_ok(raw_uj))
		return false;
	row[DEVICE_ENERGY] = (int64_t)counter->total;
	if (!is_beginning(event))
		row[DEVICE_ENERGY_RAW] = VALUE_MISSING; // follows from the raw value stored at the beginning
	bool moved = update_detector_feed(&sampler->detectors[device], t_ns, (uint64_t)raw_uj);
	if (moved)
		keep_period_up(domain, &sampler->detectors[device], &sampler->periods[device]);
	return moved;
}

/* ---- other device events ---- */

static void report_throttling(struct sampler *sampler, size_t device, int64_t t_ns)
{
	int64_t *reported_bits = &sampler->reported[device].throttle_bits;
	int64_t bits = sampler->rows[device][DEVICE_THROTTLE_REASONS], held_back = throttle_held_back(bits);
	if (!value_ok(bits) || held_back == *reported_bits)
		return;
	*reported_bits = held_back;
	struct event event = event_make(held_back == 0 ? EVENT_THROTTLE_END : EVENT_THROTTLE, t_ns);
	event.device = sampler->sensors->devices[device]->name;
	event.new_value = held_back;
	sampler_event(sampler, &event);
}

// It is unknown who changed it: this program, `wattle cap`, nvidia-smi or the driver.
static void report_cap(struct sampler *sampler, size_t device, int64_t t_ns)
{
	int64_t *reported_mw = &sampler->reported[device].cap_mw;
	int64_t cap_mw = sampler->rows[device][DEVICE_POWER_CAP];
	if (!value_ok(cap_mw) || cap_mw < 0 || cap_mw == *reported_mw)
		return;
	struct event event = event_make(EVENT_CAP, t_ns);
	event.device = sampler->sensors->devices[device]->name;
	event.old_value = *reported_mw;
	event.new_value = cap_mw;
	if (*reported_mw != 0) // the first limit read is no change
		sampler_event(sampler, &event);
	*reported_mw = cap_mw;
}

static void report_note(struct sampler *sampler, size_t device, int64_t t_ns)
{
	const struct domain *domain = sampler->sensors->devices[device];
	char *reported = sampler->reported[device].note;
	if (strcmp(domain->note, reported) == 0)
		return;
	memcpy(reported, domain->note, sizeof(domain->note));
	if (reported[0] == '\0')
		return;
	struct event event = event_make(EVENT_NOTE_SENSOR, t_ns);
	event.device = domain->name;
	event.detail = domain->note;
	sampler_event(sampler, &event);
}

/* ---- a tick ---- */

static void read_all(struct sampler *sampler, int64_t t_ns)
{
	const struct sensor_context context = {
		.t_ns = t_ns,
		.system_busy_ns = sampler->machine_reading.cpu_busy_ns,
		.system_idle_ns = sampler->machine_reading.cpu_idle_ns,
		.main_pid = sampler->tree->main_pid,
		.target_pids = sampler->tree->pids,
		.n_target_pids = sampler->tree->n_pids,
		.self_pid = sampler->self_pid,
	};
	sensor_set_read(sampler->sensors, &context, sampler->rows);
}

static void remember(struct sampler *sampler, size_t device, int64_t t_ns, bool stored)
{
	int64_t energy_uj = sampler->rows[device][DEVICE_ENERGY];
	if (value_ok(energy_uj))
		sampler->polls[device] = (struct device_poll){t_ns, energy_uj, stored};
}

/* Only one recorder of a job stores the readings of a device, so that the sum over ranks is the machine's energy. Every
 * recorder stores the use of devices by its target and by others: it only divides energy, so the sum does not change. */
static void leave_to_others(int64_t row[DEVICE_COUNT])
{
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		if (m < DEVICE_UTILIZATION || m > DEVICE_OTHERS_MIG_SHARE)
			row[m] = VALUE_MISSING;
}

static bool is_empty(const int64_t row[DEVICE_COUNT])
{
	for (size_t i = 0; i < DEVICE_COUNT; i++)
		if (value_ok(row[i]))
			return false;
	return true;
}

static void sample_device(struct sampler *sampler, size_t device, int64_t t_ns, bool suspended)
{
	if (sampler_reads(sampler, device))
		extend_energy(sampler, device, t_ns, suspended);
	else
		leave_to_others(sampler->rows[device]);
	report_throttling(sampler, device, t_ns);
	report_cap(sampler, device, t_ns);
	report_note(sampler, device, t_ns);
	remember(sampler, device, t_ns, true);
}

void devices_sample(struct sampler *sampler, int64_t t_ns, bool suspended, struct batch *batch)
{
	read_all(sampler, t_ns);
	for (size_t i = 0; i < sampler->sensors->n_devices; i++) {
		sample_device(sampler, i, t_ns, suspended);
		if (!sampler_reads(sampler, i) && is_empty(sampler->rows[i]))
			continue; // nothing of it is stored here
		struct record *record = batch_add(batch, METRIC_DEVICE, t_ns, (int64_t)i, 0);
		if (record != NULL)
			memcpy(record->values, sampler->rows[i], sizeof(sampler->rows[i]));
	}
}

/* ---- quick reading ---- */

static struct record *store_poll(struct batch *batch, size_t device, const struct device_poll *poll, const int64_t *row)
{
	struct record *record = batch_add(batch, METRIC_DEVICE, poll->t_ns, (int64_t)device, 0);
	if (record == NULL)
		return NULL;
	record->values[DEVICE_ENERGY] = poll->energy_uj;
	if (row == NULL)
		return record;
	record->values[DEVICE_ENERGY_TIME] = row[DEVICE_ENERGY_TIME];
	record->values[DEVICE_ENERGY_RAW] = row[DEVICE_ENERGY_RAW];
	return record;
}

static void poll_device(struct sampler *sampler, size_t device, int64_t t_ns, struct batch *batch)
{
	const int64_t *row = sampler->rows[device];
	if (!sampler_reads(sampler, device) || !value_ok(row[DEVICE_ENERGY_RAW]))
		return; // ticks handle gaps
	const struct device_poll before = sampler->polls[device];
	bool moved = extend_energy(sampler, device, t_ns, false);
	bool is_told = moved || value_ok(row[DEVICE_ENERGY_RAW]);
	if (moved && before.t_ns != 0 && !before.stored)
		store_poll(batch, device, &before, NULL);
	remember(sampler, device, t_ns, is_told);
	if (is_told)
		store_poll(batch, device, &sampler->polls[device], row);
}

static void read_between(struct sampler *sampler, int64_t t_ns, bool energy_only)
{
	const struct sensor_context context = {
		.t_ns = t_ns,
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.main_pid = sampler->tree->main_pid,
		.self_pid = sampler->self_pid,
		.energy_only = energy_only,
	};
	sensor_set_read(sampler->sensors, &context, sampler->rows);
}

void devices_poll(struct sampler *sampler, int64_t t_ns, struct batch *batch)
{
	read_between(sampler, t_ns, true);
	for (size_t i = 0; i < sampler->sensors->n_devices; i++)
		poll_device(sampler, i, t_ns, batch);
}

void devices_read_power(struct sampler *sampler, int64_t t_ns, struct batch *batch)
{
	read_between(sampler, t_ns, false);
	for (size_t i = 0; i < sampler->sensors->n_devices; i++) {
		const int64_t *row = sampler->rows[i];
		bool has_power = value_ok(row[DEVICE_POWER]) || value_ok(row[DEVICE_POWER_AVERAGE]);
		if (!sampler_reads(sampler, i) || !has_power || !value_ok(row[DEVICE_ENERGY_RAW]))
			continue;
		extend_energy(sampler, i, t_ns, false);
		remember(sampler, i, t_ns, true);
		struct record *record = store_poll(batch, i, &sampler->polls[i], row);
		if (record == NULL)
			continue;
		record->values[DEVICE_POWER] = row[DEVICE_POWER];
		record->values[DEVICE_POWER_AVERAGE] = row[DEVICE_POWER_AVERAGE];
	}
}
