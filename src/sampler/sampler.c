#include "sampler/sampler.h"

#include "base/file.h"
#include "base/util.h"
#include "process/referee.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* /proc counts CPU time in ticks of 10 ms, and formatting its files is most of what a sample costs: faster sampling
 * reads the sensors each time, and /proc no more often than it can tell something new. */
static const int64_t proc_period_ns = 10 * NS_PER_MS;
static const int64_t hwm_period_ns = NS_PER_S;
/* CLOCK_BOOTTIME and CLOCK_MONOTONIC are read one after the other; a real sleep lasts longer than this. */
static const int64_t suspend_min_ns = 100 * NS_PER_MS;

static void counters_init(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->sensors->n_devices; i++) {
		const struct domain *domain = sampler->sensors->devices[i];
		counter_init(&sampler->counters[i], domain->energy_range_uj, domain->max_power_w);
		sampler->throttle_bits[i] = 0;
	}
}

int sampler_open(struct sampler *sampler, const struct wattle_env *env, struct sensor_set *sensors, struct tree *tree,
	const struct sampler_options *options)
{
	size_t n = sensors->n_devices;
	*sampler = (struct sampler){
		.env = env,
		.sensors = sensors,
		.tree = tree,
		.options = *options,
		.counters = calloc_array(n, sizeof(*sampler->counters)),
		.rows = calloc_array(n, sizeof(*sampler->rows)),
		.throttle_bits = calloc_array(n, sizeof(*sampler->throttle_bits)),
		.self_pid = getpid(),
		.proc_t_ns = VALUE_MISSING,
		.suspended_ns = env_boottime_ns(env) - env_now_ns(env),
		.referee_fd = -1,
		.last_rss_bytes = VALUE_MISSING,
		.peak_rss_bytes = VALUE_MISSING,
		.main_peak_rss_bytes = VALUE_MISSING,
		.hwm_t_ns = VALUE_MISSING,
	};
	machine_open(&sampler->machine, env);
	if (memory_reader_open(&sampler->memory, options->budget_percent, env_now_ns(env)) < 0)
		return -ENOMEM;
	if (sampler->counters == NULL || sampler->rows == NULL || sampler->throttle_bits == NULL)
		return -ENOMEM;
	counters_init(sampler);
	return 0;
}

void sampler_close(struct sampler *sampler)
{
	machine_close(&sampler->machine);
	memory_reader_close(&sampler->memory);
	free(sampler->counters);
	free(sampler->rows);
	free(sampler->throttle_bits);
	*sampler = (struct sampler){0};
}

void sampler_event(struct sampler *sampler, int64_t t_ns, const char *kind, const char *format, ...)
{
	if (sampler->n_events == SAMPLER_EVENTS_MAX) {
		sampler->n_events_lost++;
		return;
	}
	struct store_event *event = &sampler->events[sampler->n_events++];
	event->t_ns = t_ns;
	text_copy(event->kind, sizeof(event->kind), kind);
	va_list args;
	va_start(args, format);
	vsnprintf(event->text, sizeof(event->text), format, args);
	va_end(args);
}

void sampler_forget_events(struct sampler *sampler)
{
	sampler->n_events = 0;
	sampler->n_events_lost = 0;
}

static int64_t self_cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static bool was_suspended(struct sampler *sampler, int64_t t_ns)
{
	int64_t suspended_ns = env_boottime_ns(sampler->env) - env_now_ns(sampler->env);
	int64_t slept_ns = suspended_ns - sampler->suspended_ns;
	sampler->suspended_ns = suspended_ns;
	if (slept_ns < suspend_min_ns)
		return false;
	sampler_event(sampler, t_ns, "suspend", "the machine slept for %lld ms", (long long)(slept_ns / NS_PER_MS));
	return true;
}

// Ticks come a little early or late: nine tenths of the period are enough.
static bool proc_is_due(const struct sampler *sampler, int64_t t_ns)
{
	return sampler->read_all || !value_ok(sampler->proc_t_ns) ||
		t_ns - sampler->proc_t_ns >= proc_period_ns * 9 / 10;
}

/* ---- devices ---- */

static void tell_counter_event(struct sampler *sampler, int64_t t_ns, const char *name, enum counter_event event)
{
	static const struct {
		const char *kind, *text; // NULL: nothing to tell
	} told[] = {
		[COUNTER_OK] = {NULL, NULL},
		[COUNTER_FIRST] = {NULL, NULL},
		[COUNTER_STALLED] = {NULL, NULL},
		[COUNTER_WRAP] = {"wrap", "the energy counter wrapped"},
		[COUNTER_WRAPS] = {"wrap",
			"the energy counter wrapped; it had time for more than once, and the power before tells how often"},
		[COUNTER_RESET] = {"reset", "the energy counter was reset; the energy in between is unknown"},
		[COUNTER_GAP] = {"gap", "the energy counter can't be read"},
		[COUNTER_GAP_ENDED] = {"gap-end", "the energy counter can be read again"},
	};
	if (told[event].kind != NULL)
		sampler_event(sampler, t_ns, told[event].kind, "%s: %s", name, told[event].text);
}

static void extend_energy(struct sampler *sampler, size_t device, int64_t t_ns, bool suspended)
{
	const struct domain *domain = sampler->sensors->devices[device];
	struct counter *counter = &sampler->counters[device];
	int64_t *energy_uj = &sampler->rows[device][DEVICE_ENERGY];
	if (!domain->has_energy)
		return;
	bool was_in_gap = counter->in_gap;
	enum counter_event event = counter_feed(counter, t_ns, *energy_uj, suspended);
	if (event != COUNTER_GAP || !was_in_gap) // a gap is told once
		tell_counter_event(sampler, t_ns, domain->name, event);
	if (value_ok(*energy_uj))
		*energy_uj = (int64_t)counter->total;
}

static void tell_throttling(struct sampler *sampler, size_t device, int64_t t_ns)
{
	// Idle, application clocks and display clock are no reasons to worry; the rest hold a busy GPU back.
	static const int64_t harmless_bits = 0x1 | 0x2 | 0x100;
	int64_t bits = sampler->rows[device][DEVICE_THROTTLE_REASONS];
	if (!value_ok(bits))
		return;
	bits &= ~harmless_bits;
	if (bits == sampler->throttle_bits[device])
		return;
	const char *name = sampler->sensors->devices[device]->name;
	if (bits != 0)
		sampler_event(sampler, t_ns, "throttle", "%s: clocks held back (NVML reasons 0x%llx)", name,
			(unsigned long long)bits);
	else
		sampler_event(sampler, t_ns, "throttle-end", "%s: clocks are free again", name);
	sampler->throttle_bits[device] = bits;
}

static void sample_devices(struct sampler *sampler, int64_t t_ns, bool suspended, struct batch *batch)
{
	struct sensor_context context = {
		.t_ns = t_ns,
		.system_busy_ns = sampler->machine_reading.cpu_busy_ns,
		.system_idle_ns = sampler->machine_reading.cpu_idle_ns,
		.main_pid = sampler->tree->main_pid,
		.target_pids = sampler->tree->pids,
		.n_target_pids = sampler->tree->n_pids,
		.self_pid = sampler->self_pid,
	};
	sensor_set_read(sampler->sensors, &context, sampler->rows);
	for (size_t i = 0; i < sampler->sensors->n_devices; i++) {
		extend_energy(sampler, i, t_ns, suspended);
		tell_throttling(sampler, i, t_ns);
		struct record *record = batch_add(batch, METRIC_DEVICE, t_ns, (int64_t)i, 0);
		if (record != NULL)
			memcpy(record->values, sampler->rows[i], sizeof(sampler->rows[i]));
	}
}

/* ---- the target ---- */

// The kernel keeps the peak of a process itself; it is lost with the process, so it is fetched now and then.
static void read_hwm(struct sampler *sampler, int64_t t_ns, int64_t main_rss_bytes)
{
	bool due = !value_ok(sampler->hwm_t_ns) || t_ns - sampler->hwm_t_ns >= hwm_period_ns ||
		main_rss_bytes > sampler->main_peak_rss_bytes;
	if (!due || !value_ok(main_rss_bytes))
		return;
	sampler->hwm_t_ns = t_ns;
	char path[32], text[4096];
	snprintf(path, sizeof(path), "%d/status", sampler->tree->main_pid);
	if (file_read_in(sampler->tree->procfs_fd, path, text, sizeof(text)) <= 0)
		return;
	const char *line = strstr(text, "\nVmHWM:");
	if (line == NULL)
		return;
	int64_t bytes = strtoll(line + 7, NULL, 10) * 1024;
	if (bytes > sampler->main_peak_rss_bytes)
		sampler->main_peak_rss_bytes = bytes;
}

static void sample_processes(struct sampler *sampler, int64_t t_ns, struct batch *batch)
{
	const struct tree *tree = sampler->tree;
	for (size_t i = 0; i < tree->n_members; i++) {
		const struct tree_member *member = &tree->members[i];
		if (!member->alive || member->is_reaper || !member->readable)
			continue;
		struct record *record = batch_add(batch, METRIC_PROCESS, t_ns, member->pid,
			tree_start_ns(tree, member));
		if (record == NULL)
			return;
		record->values[PROCESS_CPU] = member->stat.own_ns;
		record->values[PROCESS_RSS] = member->stat.rss_bytes;
		record->values[PROCESS_THREADS] = member->stat.threads;
	}
}

static void fill_memory(struct sampler *sampler, int64_t t_ns, const struct tree_totals *totals, int64_t *values)
{
	int64_t rss_bytes = totals->processes > 0 ? totals->main_rss_bytes + totals->descendants_rss_bytes
						  : VALUE_MISSING;
	sampler->last_rss_bytes = rss_bytes;
	if (rss_bytes > sampler->peak_rss_bytes)
		sampler->peak_rss_bytes = rss_bytes;
	if (!memory_reader_due(&sampler->memory, t_ns, rss_bytes, totals->processes))
		return;
	struct memory_reading reading;
	memory_reader_read(&sampler->memory, sampler->tree, t_ns, rss_bytes, totals->processes, &reading);
	values[RUN_MAIN_PSS] = reading.main.pss_bytes;
	values[RUN_MAIN_USS] = reading.main.uss_bytes;
	values[RUN_MAIN_PRIVATE] = reading.main.private_bytes;
	values[RUN_MAIN_SHARED] = reading.main.shared_bytes;
	values[RUN_DESCENDANTS_PSS] = reading.descendants.pss_bytes;
	values[RUN_DESCENDANTS_USS] = reading.descendants.uss_bytes;
	values[RUN_DESCENDANTS_PRIVATE] = reading.descendants.private_bytes;
	values[RUN_DESCENDANTS_SHARED] = reading.descendants.shared_bytes;
	values[RUN_COMBINED_SHARED] = reading.combined_shared_bytes;
}

static void read_target(struct sampler *sampler, int64_t t_ns, struct tree_totals *ret_totals)
{
	if (!sampler->target_held) {
		tree_update(sampler->tree, t_ns, ret_totals);
		return;
	}
	*ret_totals = (struct tree_totals){.main_rss_bytes = VALUE_MISSING,
		.descendants_rss_bytes = VALUE_MISSING,
		.main_threads = VALUE_MISSING,
		.descendants_threads = VALUE_MISSING};
}

static void sample_target(struct sampler *sampler, int64_t t_ns, int64_t *values)
{
	struct tree_totals totals;
	read_target(sampler, t_ns, &totals);
	read_hwm(sampler, t_ns, totals.main_rss_bytes);
	values[RUN_MAIN_CPU] = totals.main_cpu_ns;
	values[RUN_DESCENDANTS_CPU] = totals.descendants_cpu_ns;
	values[RUN_MAIN_RSS] = totals.main_rss_bytes;
	values[RUN_DESCENDANTS_RSS] = totals.descendants_rss_bytes;
	values[RUN_MAIN_THREADS] = totals.main_threads;
	values[RUN_DESCENDANTS_THREADS] = totals.descendants_threads;
	values[RUN_PROCESSES] = totals.processes;
	values[RUN_SYSTEM_BUSY] = sampler->machine_reading.cpu_busy_ns;
	values[RUN_SYSTEM_IDLE] = sampler->machine_reading.cpu_idle_ns;
	values[RUN_SYSTEM_MEMORY] = sampler->machine_reading.memory_used_bytes;
	fill_memory(sampler, t_ns, &totals, values);
	values[RUN_SELF_CPU] = self_cpu_ns();
	if (t_ns - sampler->referee_t_ns >= NS_PER_S || sampler->read_all) {
		values[RUN_REFEREE_CPU] = referee_read_ns(sampler->referee_fd);
		sampler->referee_t_ns = t_ns;
	}
}

void sampler_tick(struct sampler *sampler, int64_t t_ns, struct batch *batch)
{
	bool suspended = was_suspended(sampler, t_ns);
	bool proc_due = proc_is_due(sampler, t_ns);
	if (proc_due)
		machine_read(&sampler->machine,
			&sampler->machine_reading); // before the sensors: the load model wants it
	sample_devices(sampler, t_ns, suspended, batch);
	struct record *record = batch_add(batch, METRIC_RUN, t_ns, 0, 0);
	if (proc_due) {
		int64_t nowhere[RUN_COUNT]; // no room for the record: the peaks are kept all the same
		sample_target(sampler, t_ns, record != NULL ? record->values : nowhere);
		if (sampler->options.per_process)
			sample_processes(sampler, t_ns, batch);
		sampler->proc_t_ns = t_ns;
		sampler->read_all = false;
	}
	sampler->last_t_ns = t_ns;
	sampler->n_samples++;
}
