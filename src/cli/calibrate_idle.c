#include "cli/sensors.h"

#include "base/clock.h"
#include "base/util.h"
#include "cli/command.h"
#include "process/machine.h"
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* An attempt is a sequence of windows that must all be idle. The first busy window ends the attempt; another attempt starts if
 * there is time for a complete one. */

static const double BUSY_SHARE = 0.02; // of all cores, excluding wattle's own CPU time
static const int64_t TICK_NS = 10 *
	NS_PER_MS; // tick of /proc/stat: a window may appear busier by one tick
static const useconds_t POLL_PAUSE_US = 25000;
static const int64_t CALIBRATE_NS = 250 * NS_PER_MS;
enum { POLLS_PER_POWER = 4 }; // power is read ten times per second, counters more often
enum { TRIES_MAX = 3 };       // time limit as a multiple of the requested seconds

struct load {
	int64_t busy_ns, idle_ns, own_ns;
	bool known;
};

struct calibration {
	const struct wattle_env *env;
	struct sensor_set set;
	struct machine machine;
	struct idle_monitor *watches;    // owned; one per device of the set
	int64_t (*values)[DEVICE_COUNT]; // owned
	struct busy_processes before;
	int64_t wanted_ns, window_ns;
	char reason[1024]; // why the last attempt failed
	bool has_failed;   // another attempt would fail for the same reason
};

/* ---- the machine ---- */

static struct load read_load(struct calibration *c)
{
	struct machine_reading reading;
	machine_read(&c->machine, &reading);
	return (struct load){reading.cpu_busy_ns, reading.cpu_idle_ns, clock_cpu_ns(),
		value_ok(reading.cpu_busy_ns) && value_ok(reading.cpu_idle_ns)};
}

// Whether the CPU time of all other processes exceeds the share that counts as idle.
static bool is_busy(const struct load *from, const struct load *to, int64_t allowance_ns, double *ret_share)
{
	int64_t busy_ns = to->busy_ns - from->busy_ns - (to->own_ns - from->own_ns);
	int64_t all_ns = to->busy_ns - from->busy_ns + to->idle_ns - from->idle_ns;
	*ret_share = all_ns > 0 ? fmax(0, (double)busy_ns / (double)all_ns) : 0;
	return (double)(busy_ns - allowance_ns) > BUSY_SHARE * (double)all_ns;
}

static bool has_no_result(const struct load *from, const struct load *to)
{
	return !from->known || !to->known || (to->busy_ns == from->busy_ns && to->idle_ns == from->idle_ns);
}

static void name_busy_processes(struct calibration *c, double share)
{
	struct busy_processes now;
	struct buf names;
	buf_init(&names, 200);
	busy_processes_read(&now, c->env);
	busy_processes_name(&c->before, &now, &names);
	snprintf(c->reason, sizeof(c->reason), "CPUs were %.0f %% busy%s%s", share * 100,
		names.size > 0 ? ", mostly with " : "", names.size > 0 ? names.data : "");
	busy_processes_finish(&now);
	buf_finish(&names);
}

/* ---- the GPUs ---- */

// Whether the GPU is suspended or has fallen off the bus: it shows no activity, and nothing of it is measured.
static bool has_no_power(const int64_t *values)
{
	return !value_ok(values[DEVICE_ENERGY_RAW]) && !value_ok(values[DEVICE_POWER]);
}

// A GPU is idle if at least one indicator shows no use and no indicator shows use.
static bool gpu_is_idle(struct calibration *c, const struct domain *domain, const int64_t *values)
{
	int64_t utilization = values[DEVICE_UTILIZATION], processes = values[DEVICE_OTHERS_PROCESSES];
	if (value_ok(utilization) && utilization > 0)
		snprintf(c->reason, sizeof(c->reason), "%s (%s) was %lld %% busy", domain->name, domain->device,
			(long long)utilization);
	else if (value_ok(processes) && processes > 0)
		snprintf(c->reason, sizeof(c->reason), "%lld process%s on %s (%s)", (long long)processes,
			processes == 1 ? " is" : "es are", domain->name, domain->device);
	else if (!value_ok(utilization) && !value_ok(processes)) {
		snprintf(c->reason, sizeof(c->reason), "%s (%s) does not report whether a process uses it",
			domain->name, domain->device);
		c->has_failed = true;
	} else {
		return true;
	}
	return false;
}

/* ---- an attempt ---- */

static bool is_measured(const struct domain *domain)
{
	return domain->provenance != PROVENANCE_ESTIMATED;
}

static void poll_once(struct calibration *c, bool energy_only)
{
	const struct sensor_context context = {
		.t_ns = env_now_ns(c->env),
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.self_pid = getpid(),
		.energy_only = energy_only,
	};
	sensor_set_read(&c->set, &context, c->values);
	for (size_t i = 0; i < c->set.n_devices; i++)
		idle_monitor_feed(&c->watches[i], context.t_ns, c->values[i]);
}

static bool devices_are_idle(struct calibration *c)
{
	for (size_t i = 0; i < c->set.n_devices; i++) {
		const struct domain *domain = c->set.devices[i];
		struct idle_result result;
		if (!is_measured(domain))
			continue;
		if (domain->kind == DOMAIN_GPU && !has_no_power(c->values[i]) && !gpu_is_idle(c, domain, c->values[i]))
			return false;
		if (idle_monitor_is_steady(&c->watches[i], &result))
			continue;
		snprintf(c->reason, sizeof(c->reason), "power of %s was not steady: between %.1f and %.1f W",
			domain->name, result.lowest_w, result.highest_w);
		return false;
	}
	return true;
}

static bool window_is_idle(struct calibration *c, const struct load *began, struct load *last)
{
	int64_t end_ns = env_now_ns(c->env) + c->window_ns;
	for (unsigned n_polls = 1; env_now_ns(c->env) < end_ns; n_polls++) {
		poll_once(c, n_polls % POLLS_PER_POWER != 0);
		usleep(POLL_PAUSE_US);
	}
	poll_once(c, false);
	for (size_t i = 0; i < c->set.n_devices; i++)
		idle_monitor_end_window(&c->watches[i]);
	struct load now = read_load(c), before = *last;
	double share;
	*last = now;
	if (has_no_result(&before, &now)) {
		snprintf(c->reason, sizeof(c->reason), "%s/stat does not report how busy the CPUs are",
			c->env->procfs);
		c->has_failed = true;
		return false;
	}
	if (is_busy(&before, &now, TICK_NS, &share) || is_busy(began, &now, TICK_NS, &share)) {
		name_busy_processes(c, share);
		return false;
	}
	return devices_are_idle(c);
}

static bool attempt(struct calibration *c)
{
	int64_t began_ns = env_now_ns(c->env);
	struct load began = read_load(c), last = began;
	for (size_t i = 0; i < c->set.n_devices; i++)
		idle_monitor_init(&c->watches[i], c->set.devices[i], began_ns);
	while (env_now_ns(c->env) - began_ns < c->wanted_ns)
		if (!window_is_idle(c, &began, &last))
			return false;
	return true;
}

static bool find_idleness(struct calibration *c)
{
	int64_t until_ns = env_now_ns(c->env) + TRIES_MAX * c->wanted_ns;
	busy_processes_read(&c->before, c->env);
	do
		if (attempt(c))
			return true;
	while (!c->has_failed && env_now_ns(c->env) + c->wanted_ns <= until_ns);
	return false;
}

/* ---- result ---- */

static void print_result(const struct idle_entry *entry, struct buf *out)
{
	size_t start = out->size;
	buf_pad_to(out, start, 2);
	buf_str(out, entry->domain);
	buf_pad_to(out, start, 20);
	human_power(out, entry->idle_w);
	buf_str(out, " ± ");
	human_power(out, entry->error_w);
	buf_pad_to(out, start, 42);
	buf_str(out, entry->source);
	if (!isnan(entry->temperature_c)) {
		buf_str(out, ", at ");
		buf_fixed(out, entry->temperature_c, 0);
		buf_str(out, " °C");
	}
	buf_char(out, '\n');
}

static size_t gather(const struct calibration *c, struct idle_entry *entries, struct buf *out)
{
	size_t n = 0;
	for (size_t i = 0; i < c->set.n_devices && n < IDLE_BASELINE_MAX; i++) {
		const struct domain *domain = c->set.devices[i];
		struct idle_result result;
		if (!is_measured(domain))
			continue;
		if (!idle_monitor_result(&c->watches[i], &result)) {
			buf_printf(out, "  %s did not change: not stored\n", domain->name);
			continue;
		}
		struct idle_entry *entry = &entries[n++];
		*entry = (struct idle_entry){
			.idle_w = result.idle_w,
			.error_w = result.error_w,
			.seconds = result.seconds,
			.temperature_c = result.temperature_c,
		};
		text_copy(entry->domain, sizeof(entry->domain), domain->name);
		text_copy(entry->source, sizeof(entry->source), c->set.sources[i]);
		text_copy(entry->device, sizeof(entry->device), domain->device);
		text_copy(entry->uuid, sizeof(entry->uuid), domain->uuid);
		idle_baseline_date(env_wall_ns(c->env), entry->date, sizeof(entry->date));
		print_result(entry, out);
	}
	return n;
}

static int keep(const struct calibration *c)
{
	struct wattle_error error = {0};
	struct idle_entry *entries = calloc_array(IDLE_BASELINE_MAX, sizeof(*entries));
	char path[600];
	struct buf out = cli_buf();
	buf_str(&out, "Idle power\n");
	size_t n = entries != NULL ? gather(c, entries, &out) : 0;
	int r = n > 0 ? idle_baseline_store(c->env, entries, n, &error)
		      : error_set(&error, -ENODATA, "no counter changed: nothing was stored");
	free(entries);
	int status = r < 0 ? cli_fail(EXIT_FAILED, &error) : EXIT_DONE;
	if (r == 0) {
		idle_baseline_path(c->env, path, sizeof(path));
		buf_printf(&out, "Stored in %s; `wattle run --attribution active` subtracts it first.\n", path);
		status = cli_write(&out, "-");
	}
	buf_finish(&out);
	return status;
}

static bool measures_anything(const struct sensor_set *set)
{
	for (size_t i = 0; i < set->n_devices; i++)
		if (is_measured(set->devices[i]))
			return true;
	return false;
}

static int calibrate(struct calibration *c)
{
	if (!measures_anything(&c->set)) {
		fputs("wattle: can't measure idle power: this machine has no readable energy sensor; `wattle sensors` shows why\n",
			stderr);
		return EXIT_FAILED;
	}
	if (find_idleness(c))
		return keep(c);
	fprintf(stderr, "wattle: can't measure idle power, nothing was stored: %s\n", c->reason);
	return EXIT_FAILED;
}

int calibrate_idle(const struct wattle_env *env, double seconds)
{
	struct wattle_error error = {0};
	// Opens all GPUs, regardless of CUDA_VISIBLE_DEVICES: the baseline is that of the machine.
	const struct sensor_options options = {.calibrate_ns = CALIBRATE_NS};
	struct calibration c = {.env = env, .wanted_ns = (int64_t)(seconds * 1e9)};
	c.window_ns = c.wanted_ns / 4 < NS_PER_S ? c.wanted_ns / 4 : NS_PER_S;
	if (sensor_set_open(&c.set, env, &options, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	c.watches = calloc_array(c.set.n_devices, sizeof(*c.watches));
	c.values = calloc_array(c.set.n_devices, sizeof(*c.values));
	machine_open(&c.machine, env);
	int status = EXIT_FAILED;
	if (c.watches != NULL && c.values != NULL)
		status = calibrate(&c);
	machine_close(&c.machine);
	busy_processes_finish(&c.before);
	free(c.watches);
	free(c.values);
	sensor_set_close(&c.set);
	return status;
}
