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
static const useconds_t LOOK_PAUSE_US = 1500;
// Shorter periods cannot be measured better here than by the sensor.
static const int64_t FAST_NS = 5 * NS_PER_MS;
// Time-out for a counter that does not change: the machine is suspended, or the tree is a recording.
static const int64_t PATIENCE_NS = 500 * NS_PER_MS;
// The load model needs an interval between its two readings.
static const useconds_t MODEL_PAUSE_US = 100000;

enum doctor_state doctor_state(const struct domain *domain)
{
	if (domain->used)
		return DOCTOR_USED;
	return domain->readable ? DOCTOR_NOT_USED : DOCTOR_UNREADABLE;
}

bool doctor_in_total(const struct doctor *doctor, const struct domain *domain)
{
	if (!domain->used || !domain_kind_adds_up(domain->kind))
		return false;
	for (size_t i = 0; i < doctor->set.n_devices; i++) {
		const struct domain *other = doctor->set.devices[i];
		if (strcmp(other->name, domain->inside) == 0 && domain_kind_adds_up(other->kind))
			return false;
	}
	return true;
}

bool doctor_measures(const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->n_rows; i++) {
		const struct doctor_row *row = &doctor->rows[i];
		if (row->domain->used && row->domain->provenance != PROVENANCE_ESTIMATED && !isnan(row->last))
			return true;
	}
	return false;
}

const char *doctor_lasting_remedy(const struct doctor_row *row)
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

static bool wants_watching(const struct domain *domain)
{
	return domain->has_energy && !(domain->update_period_ns > 0 && domain->update_period_ns < FAST_NS);
}

static bool is_done(const struct domain *domain, const struct edge_watch *watch, int64_t since_ns)
{
	return !wants_watching(domain) || watch->n_intervals > EDGE_INTERVALS_WANTED ||
		(watch->n_edges == 0 && since_ns > PATIENCE_NS);
}

static bool look(struct doctor *doctor, const struct wattle_env *env, struct edge_watch *watches,
	int64_t (*values)[DEVICE_COUNT], int64_t began_ns)
{
	struct sensor_context context = {
		.t_ns = env_now_ns(env),
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.self_pid = getpid(),
		.energy_only = true,
	};
	bool more = false;
	sensor_set_read(&doctor->set, &context, values);
	for (size_t i = 0; i < doctor->set.n_devices; i++) {
		if (value_ok(values[i][DEVICE_ENERGY_RAW]))
			edge_watch_feed(&watches[i], context.t_ns, (uint64_t)values[i][DEVICE_ENERGY_RAW]);
		more = more || !is_done(doctor->set.devices[i], &watches[i], context.t_ns - began_ns);
	}
	return more && context.t_ns - began_ns < WATCH_NS;
}

static void watch(struct doctor *doctor, const struct wattle_env *env, int64_t (*values)[DEVICE_COUNT])
{
	struct edge_watch *watches = calloc_array(doctor->set.n_devices, sizeof(*watches));
	if (watches == NULL)
		return; // an unknown period is not an error
	for (size_t i = 0; i < doctor->set.n_devices; i++)
		edge_watch_init(&watches[i]);
	int64_t began_ns = env_now_ns(env);
	while (look(doctor, env, watches, values, began_ns))
		usleep(LOOK_PAUSE_US);
	for (size_t i = 0; i < doctor->set.n_devices; i++) {
		struct update_period *period = &doctor->periods[i];
		if (wants_watching(doctor->set.devices[i]))
			edge_watch_period(&watches[i], &period->period_ns, &period->jitter_ns);
	}
	free(watches);
}

static void read_all(struct doctor *doctor, const struct wattle_env *env, struct machine *machine,
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
	sensor_set_read(&doctor->set, &context, values);
}

// Afterwards the rows of the set contain the last readings.
static int read_twice(struct doctor *doctor, const struct wattle_env *env)
{
	int64_t(*values)[DEVICE_COUNT] = calloc_array(doctor->set.n_devices, sizeof(*values));
	if (values == NULL)
		return -ENOMEM;
	struct machine machine;
	machine_open(&machine, env);
	read_all(doctor, env, &machine, values);
	watch(doctor, env, values);
	usleep(MODEL_PAUSE_US);
	read_all(doctor, env, &machine, values);
	machine_close(&machine);
	free(values);
	return 0;
}

/* ---- rows ---- */

static void last_reading(const int64_t *values, struct doctor_row *row)
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

static bool has_package(const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->set.n_devices; i++)
		if (doctor->set.devices[i]->kind == DOMAIN_PACKAGE &&
			doctor->set.devices[i]->provenance != PROVENANCE_ESTIMATED)
			return true;
	return false;
}

static struct update_period period_stated(const struct domain *domain)
{
	return (struct update_period){domain->update_period_ns, domain->update_jitter_ns};
}

static int make_rows(struct doctor *doctor, const struct wattle_env *env)
{
	const struct sensor_set *set = &doctor->set;
	doctor->rows = calloc_array(set->n_rows + 1, sizeof(doctor->rows[0]));
	if (doctor->rows == NULL)
		return -ENOMEM;
	size_t n = 0;
	if (!has_sensor(set, "powercap") && !has_package(doctor) && doctor_explain_powercap(env, &doctor->missing))
		doctor->rows[n++] = (struct doctor_row){
			.sensor = "powercap", .domain = &doctor->missing, .last = (double)NAN};
	const int64_t(*values)[DEVICE_COUNT] = (const int64_t(*)[DEVICE_COUNT])set->rows;
	size_t device = 0;
	for (size_t s = 0; s < set->n_slots; s++)
		for (size_t i = 0; i < set->slots[s].n_domains; i++, n++) {
			const struct domain *domain = &set->slots[s].domains[i];
			doctor->rows[n] = (struct doctor_row){.sensor = set->slots[s].ops->name,
				.domain = domain,
				.period = period_stated(domain)};
			last_reading(*values++, &doctor->rows[n]);
			if (!domain->used)
				continue;
			doctor->rows[n].period = doctor->periods[device];
			doctor->rows[n].idle = doctor->idle[device].power_w > 0 ? &doctor->idle[device] : NULL;
			device++;
		}
	doctor->n_rows = n;
	return 0;
}

static int describe_devices(struct doctor *doctor, const struct wattle_env *env)
{
	const struct sensor_set *set = &doctor->set;
	doctor->periods = calloc_array(set->n_devices, sizeof(*doctor->periods));
	doctor->idle = calloc_array(set->n_devices, sizeof(*doctor->idle));
	if (doctor->periods == NULL || doctor->idle == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < set->n_devices; i++)
		doctor->periods[i] = period_stated(set->devices[i]);
	idle_baseline_of(env, set, doctor->idle, doctor->baseline_note, sizeof(doctor->baseline_note));
	return 0;
}

int doctor_open(struct doctor *doctor, const struct wattle_env *env, struct wattle_error *reterr)
{
	*doctor = (struct doctor){0};
	struct sensor_options options = {.describe_only = true, .calibrate_ns = CALIBRATE_NS};
	gpu_environment(&options);
	int r = sensor_set_open(&doctor->set, env, &options, reterr);
	if (r < 0)
		return r;
	doctor->is_open = true;
	r = describe_devices(doctor, env);
	if (r == 0)
		r = read_twice(doctor, env);
	if (r == 0)
		r = make_rows(doctor, env);
	if (r == 0)
		return 0;
	doctor_close(doctor);
	return error_set(reterr, r, "out of memory");
}

void doctor_close(struct doctor *doctor)
{
	if (doctor->is_open)
		sensor_set_close(&doctor->set);
	free(doctor->rows);
	free(doctor->periods);
	free(doctor->idle);
	*doctor = (struct doctor){0};
}
