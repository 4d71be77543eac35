#include "sampler/sampler.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "process/machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* /proc counts CPU time in ticks of 10 ms, and formatting its files is most of the cost of a sample. Sampling faster than
 * these ticks reads the sensors each time, and /proc twice in each window of 100 ms in which analysis divides energy. */
static const int64_t proc_tick_ns = 10 * NS_PER_MS, proc_period_ns = 50 * NS_PER_MS;
static const int64_t hwm_period_ns = NS_PER_S;
/* CLOCK_BOOTTIME is read just after the CLOCK_MONOTONIC of a sample; a real suspend lasts longer than this. */
static const int64_t suspend_min_ns = 100 * NS_PER_MS;

static void counters_init(struct sampler *sampler)
{
	for (size_t i = 0; i < sampler->sensors->n_devices; i++) {
		const struct domain *domain = sampler->sensors->devices[i];
		counter_init(&sampler->counters[i], domain->energy_range_uj, domain->max_power_w);
		update_detector_init(&sampler->detectors[i]);
		sampler->periods[i] = (struct update_period){domain->update_period_ns, domain->update_jitter_ns};
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
		.detectors = calloc_array(n, sizeof(*sampler->detectors)),
		.periods = calloc_array(n, sizeof(*sampler->periods)),
		.polls = calloc_array(n, sizeof(*sampler->polls)),
		.reported = calloc_array(n, sizeof(*sampler->reported)),
		.left = calloc_array(n, sizeof(*sampler->left)),
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
	if (sampler->counters == NULL || sampler->rows == NULL || sampler->detectors == NULL ||
		sampler->periods == NULL || sampler->polls == NULL || sampler->reported == NULL ||
		sampler->left == NULL)
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
	free(sampler->detectors);
	free(sampler->periods);
	free(sampler->polls);
	free(sampler->reported);
	free(sampler->left);
	*sampler = (struct sampler){0};
}

static bool owns(const struct sensor_slot *slot, const struct domain *domain)
{
	return domain >= slot->domains && domain < slot->domains + slot->n_domains;
}

/* For GPUs read by another recorder the target's own share is still needed. A model reads no hardware, and reports
 * the time since its last reading. */
void sampler_choose_sensors(struct sampler *sampler)
{
	const struct sensor_set *set = sampler->sensors;
	for (size_t s = 0; s < set->n_slots; s++) {
		struct sensor_slot *slot = &sampler->sensors->slots[s];
		slot->rests = slot->rests_between = true;
		for (size_t i = 0; i < set->n_devices; i++) {
			const struct domain *domain = set->devices[i];
			if (!owns(slot, domain))
				continue;
			bool is_cheap = domain->provenance == PROVENANCE_ESTIMATED;
			slot->rests &= !sampler_reads(sampler, i) && domain->kind != DOMAIN_GPU && !is_cheap;
			slot->rests_between &= !sampler_reads(sampler, i);
		}
	}
}

static bool was_suspended(struct sampler *sampler, int64_t t_ns)
{
	int64_t suspended_ns = env_boottime_ns(sampler->env) - t_ns;
	int64_t slept_ns = suspended_ns - sampler->suspended_ns;
	sampler->suspended_ns = suspended_ns;
	if (slept_ns < suspend_min_ns)
		return false;
	struct event event = event_make(EVENT_SUSPEND, t_ns);
	event.duration_ns = slept_ns;
	sampler_event(sampler, &event);
	return true;
}

// Ticks are slightly early or late: nine tenths of the period are enough.
static bool proc_is_due(const struct sampler *sampler, int64_t t_ns)
{
	return sampler->read_all || !value_ok(sampler->proc_t_ns) || sampler->options.interval_ns >= proc_tick_ns ||
		t_ns - sampler->proc_t_ns >= proc_period_ns * 9 / 10;
}

/* ---- the target ---- */

// The kernel keeps the peak of a process itself; it is lost with the process, so it is read now and then.
static void read_hwm(struct sampler *sampler, int64_t t_ns, int64_t main_rss_bytes)
{
	bool due = !value_ok(sampler->hwm_t_ns) || t_ns - sampler->hwm_t_ns >= hwm_period_ns ||
		main_rss_bytes > sampler->main_peak_rss_bytes;
	bool has_ended = tree_find(sampler->tree, sampler->tree->main_pid) == NULL; // then the pid may have been reused
	if (!due || !value_ok(main_rss_bytes) || has_ended)
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
	memory_measure(&sampler->memory, &sampler->estimate, sampler->tree, t_ns, totals, values);
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
	const struct companion *companion = sampler->env->companion;
	values[RUN_SELF_CPU] = clock_cpu_ns() + (companion != NULL ? companion->cpu_ns : 0);
	if (t_ns - sampler->slow_t_ns >= NS_PER_S || sampler->read_all) {
		values[RUN_REFEREE_CPU] = referee_read_ns(sampler->referee_fd);
		values[RUN_SELF_RSS] = self_rss_bytes();
		if (companion != NULL && value_ok(values[RUN_SELF_RSS]))
			values[RUN_SELF_RSS] += companion->rss_bytes;
		sampler->slow_t_ns = t_ns;
	}
}

void sampler_tick(struct sampler *sampler, int64_t t_ns, struct batch *batch)
{
	bool suspended = was_suspended(sampler, t_ns);
	bool proc_due = proc_is_due(sampler, t_ns);
	if (proc_due)
		machine_read(&sampler->machine,
			&sampler->machine_reading); // before the sensors: the load model needs it
	devices_sample(sampler, t_ns, suspended, batch);
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
