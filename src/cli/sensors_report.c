#include "cli/sensors.h"

#include "base/util.h"
#include "process/machine.h"
#include "energy/counter.h"
#include "sensor/gpu_roster.h"

#include <errno.h>
#include <unistd.h>

/* Powercap counters change about every millisecond: the sensor itself polls them without pause while it opens. All others are
 * slower, and a reading may cost a millisecond; they are polled here, with pauses. */
static const int64_t CALIBRATE_NS = 250 * NS_PER_MS;
static const int64_t WATCH_NS = 1200 * NS_PER_MS;
static const useconds_t POLL_PAUSE_US = 1500;
// A busy machine delays polls by more than this. Such times show no period and do not count, up to WATCH_MAX_NS in total.
static const int64_t LATE_NS = 20 * NS_PER_MS, WATCH_MAX_NS = 5 * NS_PER_S;
// Shorter periods cannot be measured better here than by the sensor.
static const int64_t FAST_NS = 5 * NS_PER_MS;
// Time-out for a counter that does not change: the machine is suspended, or the tree is a recording.
static const int64_t PATIENCE_NS = 500 * NS_PER_MS;
// The load model needs an interval between its two readings.
static const useconds_t MODEL_PAUSE_US = 100000;

enum sensors_report_state doctor_state(const struct domain *domain)
{
	if (domain->used)
		return SENSORS_REPORT_USED;
	return domain->readable ? SENSORS_REPORT_NOT_USED : SENSORS_REPORT_UNREADABLE;
}

bool sensors_report_in_total(const struct sensors_report *report, const struct domain *domain)
{
	if (!domain->used || !domain_kind_adds_up(domain->kind))
		return false;
	for (size_t i = 0; i < report->set.n_devices; i++) {
		const struct domain *other = report->set.devices[i];
		if (strcmp(other->name, domain->inside) == 0 && domain_kind_adds_up(other->kind))
			return false;
	}
	return true;
}

bool sensors_report_measures(const struct sensors_report *report)
{
	for (size_t i = 0; i < report->n_rows; i++) {
		const struct sensors_report_row *row = &report->rows[i];
		if (row->domain->used && row->domain->provenance != PROVENANCE_ESTIMATED && !isnan(row->last))
			return true;
	}
	return false;
}

const char *sensors_report_permanent_remedy(const struct sensors_report_row *row)
{
	static const char udev_rule[] =
		"echo 'SUBSYSTEM==\"powercap\", ACTION==\"add\", TEST==\"energy_uj\", RUN+=\"/bin/chmod a+r "
		"/sys%p/energy_uj\"' | sudo tee /etc/udev/rules.d/70-wattle.rules && sudo udevadm control --reload && "
		"sudo udevadm trigger --action=add --subsystem-match=powercap";
	bool holds_until_boot = strcmp(row->sensor, "powercap") == 0 &&
		strncmp(row->domain->remedy, "sudo chmod ", 11) == 0;
	return holds_until_boot ? udev_rule : NULL;
}

/* ---- measuring update periods ---- */

static bool needs_observation(const struct domain *domain)
{
	return domain->has_energy && !(domain->update_period_ns > 0 && domain->update_period_ns < FAST_NS);
}

static bool is_done(const struct domain *domain, const struct update_detector *watch, int64_t since_ns)
{
	return !needs_observation(domain) || watch->n_intervals > UPDATE_INTERVALS_NEEDED ||
		(watch->n_edges == 0 && since_ns > PATIENCE_NS);
}

struct watch_time {
	int64_t began_ns, last_ns, passed_ns; // passed: without late polls
};

static bool poll_once(struct sensors_report *report, const struct wattle_env *env, struct update_detector *watches,
	int64_t (*values)[DEVICE_COUNT], struct watch_time *time)
{
	struct sensor_context context = {
		.t_ns = env_now_ns(env),
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.self_pid = getpid(),
		.energy_only = true,
	};
	bool more = false;
	int64_t step_ns = context.t_ns - time->last_ns, since_ns = context.t_ns - time->began_ns;
	time->last_ns = context.t_ns;
	time->passed_ns += step_ns > LATE_NS ? 0 : step_ns;
	sensor_set_read(&report->set, &context, values);
	for (size_t i = 0; i < report->set.n_devices; i++) {
		if (value_ok(values[i][DEVICE_ENERGY_RAW]))
			update_detector_feed(&watches[i], context.t_ns, (uint64_t)values[i][DEVICE_ENERGY_RAW]);
		more = more || !is_done(report->set.devices[i], &watches[i], since_ns);
	}
	return more && time->passed_ns < WATCH_NS && since_ns < WATCH_MAX_NS;
}

static void watch(struct sensors_report *report, const struct wattle_env *env, int64_t (*values)[DEVICE_COUNT])
{
	struct update_detector *watches = calloc_array(report->set.n_devices, sizeof(*watches));
	if (watches == NULL)
		return; // an unknown period is not an error
	for (size_t i = 0; i < report->set.n_devices; i++)
		update_detector_init(&watches[i]);
	int64_t now_ns = env_now_ns(env);
	struct watch_time time = {.began_ns = now_ns, .last_ns = now_ns};
	while (poll_once(report, env, watches, values, &time))
		usleep(POLL_PAUSE_US);
	for (size_t i = 0; i < report->set.n_devices; i++) {
		struct update_period *period = &report->periods[i];
		if (needs_observation(report->set.devices[i]))
			update_detector_period(&watches[i], &period->period_ns, &period->jitter_ns);
	}
	free(watches);
}

static void read_all(struct sensors_report *report, const struct wattle_env *env, struct machine *machine,
	int64_t (*values)[DEVICE_COUNT])
{
	struct machine_reading reading;
	machine_read(machine, &reading);
	const struct sensor_context context = {
		.t_ns = env_now_ns(env),
		.system_busy_ns = reading.cpu_busy_ns,
		.system_idle_ns = reading.cpu_idle_ns,
		.self_pid = getpid(),
	};
	sensor_set_read(&report->set, &context, values);
}

// Afterwards the rows of the set contain the last readings.
static int read_twice(struct sensors_report *report, const struct wattle_env *env)
{
	int64_t(*values)[DEVICE_COUNT] = calloc_array(report->set.n_devices, sizeof(*values));
	if (values == NULL)
		return -ENOMEM;
	struct machine machine;
	machine_open(&machine, env);
	read_all(report, env, &machine, values);
	watch(report, env, values);
	usleep(MODEL_PAUSE_US);
	read_all(report, env, &machine, values);
	machine_close(&machine);
	free(values);
	return 0;
}

/* ---- rows ---- */

static void last_reading(const int64_t *values, struct sensors_report_row *row)
{
	row->last = (double)NAN;
	if (value_ok(values[DEVICE_ENERGY_RAW])) {
		row->last = (double)values[DEVICE_ENERGY_RAW] / 1e6;
		row->last_unit = "J";
	} else if (value_ok(values[DEVICE_POWER])) {
		row->last = (double)values[DEVICE_POWER] / 1e3;
		row->last_unit = "W";
	}
}

static bool has_sensor(const struct sensor_set *set, const char *name)
{
	for (size_t s = 0; s < set->n_slots; s++)
		if (strcmp(set->slots[s].ops->name, name) == 0 && set->slots[s].n_domains > 0)
			return true;
	return false;
}

static bool has_package(const struct sensors_report *report)
{
	for (size_t i = 0; i < report->set.n_devices; i++)
		if (report->set.devices[i]->kind == DOMAIN_PACKAGE &&
			report->set.devices[i]->provenance != PROVENANCE_ESTIMATED)
			return true;
	return false;
}

static struct update_period period_stated(const struct domain *domain)
{
	return (struct update_period){domain->update_period_ns, domain->update_jitter_ns};
}

static int make_rows(struct sensors_report *report, const struct wattle_env *env)
{
	const struct sensor_set *set = &report->set;
	report->rows = calloc_array(set->n_rows + 1, sizeof(report->rows[0]));
	if (report->rows == NULL)
		return -ENOMEM;
	size_t n = 0;
	if (!has_sensor(set, "powercap") && !has_package(report) &&
		sensors_report_explain_powercap(env, &report->missing))
		report->rows[n++] = (struct sensors_report_row){.sensor = "powercap",
			.domain = &report->missing,
			.last = (double)NAN};
	const int64_t(*values)[DEVICE_COUNT] = (const int64_t(*)[DEVICE_COUNT])set->rows;
	size_t device = 0;
	for (size_t s = 0; s < set->n_slots; s++)
		for (size_t i = 0; i < set->slots[s].n_domains; i++, n++) {
			const struct domain *domain = &set->slots[s].domains[i];
			report->rows[n] = (struct sensors_report_row){.sensor = set->slots[s].ops->name,
				.domain = domain,
				.period = period_stated(domain)};
			last_reading(*values++, &report->rows[n]);
			if (!domain->used)
				continue;
			report->rows[n].period = report->periods[device];
			report->rows[n].idle = report->idle[device].power_w > 0 ? &report->idle[device] : NULL;
			device++;
		}
	report->n_rows = n;
	return 0;
}

static int describe_devices(struct sensors_report *report, const struct wattle_env *env)
{
	const struct sensor_set *set = &report->set;
	report->periods = calloc_array(set->n_devices, sizeof(*report->periods));
	report->idle = calloc_array(set->n_devices, sizeof(*report->idle));
	if (report->periods == NULL || report->idle == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < set->n_devices; i++)
		report->periods[i] = period_stated(set->devices[i]);
	idle_baseline_of(env, set, report->idle, report->baseline_note, sizeof(report->baseline_note));
	return 0;
}

int sensors_report_open(struct sensors_report *report, const struct wattle_env *env, struct wattle_error *reterr)
{
	*report = (struct sensors_report){0};
	struct sensor_options options = {.describe_only = true, .calibrate_ns = CALIBRATE_NS};
	gpu_environment(&options);
	int r = sensor_set_open(&report->set, env, &options, reterr);
	if (r < 0)
		return r;
	report->is_open = true;
	r = describe_devices(report, env);
	if (r == 0)
		r = read_twice(report, env);
	if (r == 0)
		r = make_rows(report, env);
	if (r == 0)
		return 0;
	sensors_report_close(report);
	return error_set(reterr, r, "out of memory");
}

void sensors_report_close(struct sensors_report *report)
{
	if (report->is_open)
		sensor_set_close(&report->set);
	free(report->rows);
	free(report->periods);
	free(report->idle);
	*report = (struct sensors_report){0};
}
