#include "monitor/internal.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>

/* CLOCK_BOOTTIME and CLOCK_MONOTONIC are read one after the other; a real suspend lasts longer than this. */
static const int64_t suspend_min_ns = 100 * NS_PER_MS;
static const int64_t calibrate_ns = 5 * NS_PER_MS;

/* ---- open ---- */

static int compare_domains(const struct domain *a, const struct domain *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->index != b->index)
		return a->index < b->index ? -1 : 1;
	return strcmp(a->name, b->name);
}

// Insertion sort: there are a few dozen domains at most.
static void put_in_order(struct domain_table *table)
{
	for (size_t i = 0; i < table->n; i++) {
		size_t k = i;
		for (; k > 0; k--) {
			size_t before = table->device_of[k - 1];
			if (compare_domains(table->sensors.devices[before], table->sensors.devices[i]) <= 0)
				break;
			table->device_of[k] = before;
		}
		table->device_of[k] = i;
	}
}

/* Continues from an earlier track of the same domain. The hardware counter continues too unless the machine has rebooted. */
static void track_resume(struct energy_track *track, const struct monitor_kept *kept, bool same_counter)
{
	struct counter *counter = &track->counter;
	track->energy_uj = kept->energy_uj;
	track->integrated_uj = (double)kept->energy_uj;
	counter->wraps = kept->wraps;
	counter->resets = kept->resets;
	counter->gaps = kept->gaps;
	if (!same_counter || !kept->has_raw)
		return;
	counter->has_value = true;
	counter->last_raw = kept->last_raw;
	counter->last_t_ns = kept->last_t_ns;
	counter->last_change_ns = kept->last_change_ns;
	counter->mean_power_w = kept->mean_power_w;
	counter->mean_span_s = kept->mean_span_s;
}

// The counter continues if its source is the same; otherwise only the energy does.
static void resume(struct domain_table *table, size_t i, const struct monitor_options *options)
{
	const struct domain *domain = table->domains[i].domain;
	for (size_t k = 0; k < options->n_kept; k++) {
		const struct monitor_kept *kept = &options->kept[k];
		if (strcmp(kept->name, domain->name) != 0 || strcmp(kept->uuid, domain->uuid) != 0)
			continue;
		bool same_counter = options->same_boot && strcmp(kept->source, table->domains[i].source) == 0;
		track_resume(&table->tracks[table->device_of[i]], kept, same_counter);
	}
}

void domain_table_keep(const struct domain_table *table, size_t i, struct monitor_kept *ret_kept)
{
	const struct domain *domain = table->domains[i].domain;
	const struct energy_track *track = &table->tracks[table->device_of[i]];
	const struct counter *counter = &track->counter;
	*ret_kept = (struct monitor_kept){
		.energy_uj = track->energy_uj,
		.wraps = counter->wraps,
		.resets = counter->resets,
		.gaps = counter->gaps,
		.has_raw = domain->has_energy && counter->has_value,
		.last_raw = counter->last_raw,
		.last_t_ns = counter->last_t_ns,
		.last_change_ns = counter->last_change_ns,
		.mean_power_w = counter->mean_power_w,
		.mean_span_s = counter->mean_span_s,
	};
	text_copy(ret_kept->name, sizeof(ret_kept->name), domain->name);
	text_copy(ret_kept->uuid, sizeof(ret_kept->uuid), domain->uuid);
	text_copy(ret_kept->source, sizeof(ret_kept->source), table->domains[i].source);
}

static int open_domain(struct domain_table *table, size_t i, const struct monitor_options *options)
{
	const double none = (double)NAN;
	const size_t device = table->device_of[i];
	const struct domain *domain = table->sensors.devices[device];
	energy_track_init(&table->tracks[device], domain, table->sensors.sources[device], false);
	package_limit_open(&table->limits[i], options->env, domain, table->sensors.sources[device]);
	table->domains[i] = (struct monitor_domain){
		.domain = domain,
		.source = table->sensors.sources[device],
		.in_total = sensor_set_adds_up(&table->sensors, domain),
		.power_w = none,
		.cap_w = none,
		.target_w = none,
#define DEVICE_LIVE(id, member, ...) .member = none,
#include "metric/metrics.def"
		.memory_total_bytes = domain->memory_total_bytes > 0 ? (double)domain->memory_total_bytes : none,
		.throttle_bits = VALUE_MISSING,
	};
	resume(table, i, options);
	int r = monitor_history_open(&table->domains[i].power_history_w, options->history);
	return r == 0 ? monitor_history_open(&table->domains[i].utilization_history_percent, options->history) : r;
}

// Sets the message for users without power readings: which sensors this machine could use, and how to enable them.
static void set_problem(struct domain_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->domains[i].in_total)
			return;
	for (size_t s = 0; s < table->sensors.n_slots; s++)
		for (size_t i = 0; i < table->sensors.slots[s].n_domains; i++) {
			const struct domain *domain = &table->sensors.slots[s].domains[i];
			if (domain->readable || !domain_kind_adds_up(domain->kind))
				continue;
			snprintf(table->problem, sizeof(table->problem), "%s can't be read: %s%s%s", domain->name,
				domain->why, domain->remedy[0] != '\0' ? "; " : "", domain->remedy);
			return;
		}
	text_copy(table->problem, sizeof(table->problem),
		"this machine has no energy or power sensor that wattle can read; `wattle sensors` shows why");
}

int domain_table_open(struct domain_table *table, const struct monitor_options *options, struct wattle_error *reterr)
{
	const struct sensor_options all = {.calibrate_ns = calibrate_ns};
	struct sensor_options n_lookups = options->sensors != NULL ? *options->sensors : all;
	n_lookups.list_users = true;
	*table = (struct domain_table){0};
	int r = sensor_set_open(&table->sensors, options->env, &n_lookups, reterr);
	if (r < 0)
		return r;
	size_t n = table->sensors.n_devices;
	table->rows = calloc_array(n, sizeof(*table->rows));
	table->tracks = calloc_array(n, sizeof(*table->tracks));
	table->domains = calloc_array(n, sizeof(*table->domains));
	table->limits = calloc_array(n, sizeof(*table->limits));
	table->device_of = calloc_array(n, sizeof(*table->device_of));
	if (table->rows == NULL || table->tracks == NULL || table->domains == NULL || table->limits == NULL ||
		table->device_of == NULL)
		return error_set(reterr, -ENOMEM, "out of memory for %zu domains", n);
	table->n = n;
	table->suspended_ns = env_boottime_ns(options->env) - env_now_ns(options->env);
	put_in_order(table);
	for (size_t i = 0; i < n; i++)
		if (open_domain(table, i, options) < 0)
			return error_set(reterr, -ENOMEM, "out of memory for the history of %zu domains", n);
	set_problem(table);
	return 0;
}

void domain_table_close(struct domain_table *table)
{
	for (size_t i = 0; i < table->n; i++) {
		package_limit_close(&table->limits[i]);
		monitor_history_close(&table->domains[i].power_history_w);
		monitor_history_close(&table->domains[i].utilization_history_percent);
	}
	sensor_set_close(&table->sensors);
	free(table->rows);
	free(table->tracks);
	free(table->domains);
	free(table->limits);
	free(table->device_of);
	*table = (struct domain_table){0};
}

/* ---- sampling ---- */

static bool was_suspended(struct domain_table *table, const struct wattle_env *env)
{
	int64_t suspended_ns = env_boottime_ns(env) - env_now_ns(env);
	int64_t slept_ns = suspended_ns - table->suspended_ns;
	table->suspended_ns = suspended_ns;
	return slept_ns >= suspend_min_ns;
}

static void fill(struct monitor_domain *domain, struct energy_track *track, const int64_t *row)
{
	domain->energy_uj = track->energy_uj;
	domain->power_w = energy_track_power_w(track);
	domain->wraps = track->counter.wraps;
	domain->resets = track->counter.resets;
	domain->gaps = track->counter.gaps;
	domain->cap_w = value_to_double(row[DEVICE_POWER_CAP], 1e-3);
#define DEVICE_LIVE(id, member, ...) domain->member = value_to_double(row[DEVICE_##id], 1);
#include "metric/metrics.def"
	domain->throttle_bits = row[DEVICE_THROTTLE_REASONS];
}

void domain_table_sample(struct domain_table *table, const struct wattle_env *env, const struct sensor_context *context)
{
	bool suspended = was_suspended(table, env);
	sensor_set_read(&table->sensors, context, table->rows);
	for (size_t i = 0; i < table->n; i++) {
		const size_t device = table->device_of[i];
		struct energy_track *track = &table->tracks[device];
		energy_track_feed(track, context->t_ns, table->rows[device], suspended);
		fill(&table->domains[i], track, table->rows[device]);
		if (table->limits[i].exists)
			table->domains[i].cap_w = package_limit_w(&table->limits[i]);
	}
}
