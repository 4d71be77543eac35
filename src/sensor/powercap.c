#include "sensor/powercap.h"

#include "base/util.h"
#include "sensor/cpu_topology.h"

#include <errno.h>
#include <stdio.h>

/* Energy of CPU packages and their parts: /sys/class/powercap, fed by the kernel's intel_rapl drivers, which serve AMD
 * and Hygon as well.
 *
 * A zone is known by its `name` file; its number means nothing (psys may be intel-rapl:1, between two packages). Its
 * `enabled` file switches the power limit, not the counter, and is of no interest here. */

// The raw counter has 32 bits, so the range says how large a step is. It says nothing if it was made up.
static uint64_t resolution_uj(uint64_t range_uj)
{
	const uint64_t steps = UINT64_C(1) << 32;
	return range_uj >= steps ? range_uj / steps + (range_uj % steps > 0) : 0;
}

static uint64_t read_range(int root_fd, const struct zone *zone)
{
	char path[sizeof(zone->path) + 24];
	uint64_t range_uj;
	snprintf(path, sizeof(path), "%s/max_energy_range_uj", zone->path);
	return file_read_u64_in(root_fd, path, &range_uj) == 0 ? range_uj : 0;
}

static void describe_counter(struct powercap *powercap, size_t index, const struct wattle_env *env,
	const struct zone *zone)
{
	struct domain *domain = &powercap->domains[index];
	uint64_t energy_uj = 0;
	int64_t t_ns;
	int r = privileged_read(&powercap->counters, index, &energy_uj, &t_ns);
	domain->provenance = PROVENANCE_MEASURED;
	domain->has_energy = true;
	domain->energy_range_uj = read_range(env->sysfs_fd, zone);
	// Since Linux 5.10 the file is readable by root only (CVE-2020-8694: power traces leak keys).
	privileged_describe(&powercap->counters, index, r, domain);
	if (energy_uj > domain->energy_range_uj) // a range that the counter is beyond already is no range
		domain->energy_range_uj = 0;
	domain->resolution_uj = resolution_uj(domain->energy_range_uj);
}

static int open_counters(struct powercap *powercap, const struct zone_list *list)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < list->n; i++) {
		char path[sizeof(list->zones[i].path) + 16];
		snprintf(path, sizeof(path), "%s/energy_uj", list->zones[i].path);
		r = privileged_add(&powercap->counters, path, list->zones[i].id);
	}
	return r < 0 ? r : 0;
}

static int open_zones(struct powercap *powercap, const struct wattle_env *env, const struct zone_list *list)
{
	powercap->domains = calloc_array(list->n, sizeof(powercap->domains[0]));
	int r = powercap->domains != NULL ? open_counters(powercap, list) : -ENOMEM;
	if (r < 0)
		return r;
	powercap->n = list->n;
	privileged_refresh(&powercap->counters);
	for (size_t i = 0; i < list->n; i++)
		describe_counter(powercap, i, env, &list->zones[i]);
	powercap_name_domains(list->zones, powercap->domains, powercap->n, cpu_dies_share_counter(env));
	return 0;
}

static int open_sensor(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct powercap *powercap = state;
	struct zone_list list;
	privileged_init(&powercap->counters, env);
	int r = zone_list_find(env->sysfs_fd, &list);
	zone_list_keep(&list, powercap_zone_is_known);
	if (r == 0 && list.n > 0)
		r = open_zones(powercap, env, &list);
	zone_list_finish(&list);
	if (r < 0)
		return error_set(reterr, r, "no memory for the zones of %s/class/powercap", env->sysfs);
	powercap_measure_periods(powercap, env, options->calibrate_ns);
	return 0;
}

static struct domain *domains(void *state, size_t *ret_count)
{
	struct powercap *powercap = state;
	*ret_count = powercap->n;
	return powercap->domains;
}

static void read_sensor(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct powercap *powercap = state;
	privileged_refresh(&powercap->counters);
	for (size_t i = 0; i < powercap->n; i++) {
		if (!powercap->domains[i].used)
			continue;
		privileged_fill(&powercap->counters, i, rows[i]);
		privileged_note(&powercap->counters, i, &powercap->domains[i]);
	}
}

static void close_sensor(void *state)
{
	struct powercap *powercap = state;
	privileged_close(&powercap->counters);
	free(powercap->domains);
	*powercap = (struct powercap){0};
}

const struct sensor_ops sensor_powercap = {
	.name = "powercap",
	.state_size = sizeof(struct powercap),
	.open = open_sensor,
	.domains = domains,
	.read = read_sensor,
	.close = close_sensor,
};
