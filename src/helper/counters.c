#include "helper/server.h"

#include "base/util.h"
#include "sensor/internal.h"
#include "sensor/sysfs.h"

#include <errno.h>
#include <stdio.h>

// Added even if it can't be read now: it may become readable later.
static void add(struct counters *counters, const struct wattle_env *env, const char *name, const char *path)
{
	if (counters->n == COUNTERS_MAX)
		return;
	struct counter *counter = &counters->rows[counters->n++];
	text_copy(counter->name, sizeof(counter->name), name);
	file_kept_open(&counter->file, env->sysfs_fd, path);
}

static int add_zones(struct counters *counters, const struct wattle_env *env)
{
	struct zone_list list;
	int r = zone_list_find(env->sysfs_fd, &list);
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		char path[sizeof(list.zones[i].path) + 16];
		snprintf(path, sizeof(path), "%s/energy_uj", list.zones[i].path);
		if (powercap_zone_is_known(&list.zones[i]))
			add(counters, env, list.zones[i].id, path);
	}
	zone_list_finish(&list);
	return r;
}

// The package counters, "Esocket0" …; the counters of cores follow them and are not offered.
static void add_sockets(struct counters *counters, const struct wattle_env *env, const struct hwmon_chip *chip)
{
	static const char socket[] = "Esocket";
	for (int input = 1; input < COUNTERS_MAX; input++) {
		char attribute[32], label[32], name[PROTO_NAME_SIZE], path[HWMON_PATH_SIZE];
		snprintf(attribute, sizeof(attribute), "energy%d_label", input);
		if (!hwmon_attribute_read(env->sysfs_fd, chip, attribute, label, sizeof(label)))
			break;
		snprintf(attribute, sizeof(attribute), "energy%d_input", input);
		snprintf(name, sizeof(name), "amd_energy/%s", attribute);
		if (strncmp(label, socket, strlen(socket)) == 0 &&
			hwmon_attribute_path(env->sysfs_fd, chip, attribute, path))
			add(counters, env, name, path);
	}
}

static int add_amd_energy(struct counters *counters, const struct wattle_env *env)
{
	struct hwmon_chips chips;
	int r = hwmon_chips_find(env->sysfs_fd, &chips);
	for (size_t i = 0; r == 0 && i < chips.n; i++)
		if (strcmp(chips.chips[i].name, "amd_energy") == 0) {
			add_sockets(counters, env, &chips.chips[i]);
			break; // the driver creates one chip for the whole machine
		}
	hwmon_chips_finish(&chips);
	return r;
}

int counters_open(struct counters *ret_counters, const struct wattle_env *env)
{
	ret_counters->n = 0;
	int r = add_zones(ret_counters, env);
	return r < 0 ? r : add_amd_energy(ret_counters, env);
}

void counters_close(struct counters *counters)
{
	for (size_t i = 0; i < counters->n; i++)
		file_kept_close(&counters->rows[i].file);
	counters->n = 0;
}

int counter_class_init(struct counter_class *class, int64_t period_ns, const struct counters *counters)
{
	*class = (struct counter_class){.period_ns = period_ns};
	class->reported = calloc_array(counters->n, sizeof(class->reported[0]));
	if (class->reported == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < counters->n; i++)
		class->reported[i].last = (struct proto_reading){VALUE_MISSING, VALUE_MISSING};
	return 0;
}

void counter_class_finish(struct counter_class *class)
{
	free(class->reported);
	*class = (struct counter_class){0};
}

struct proto_reading counters_read(struct counters *counters, struct counter_class *class, size_t number,
	int64_t now_ns)
{
	struct counter_state *reported = &class->reported[number];
	struct proto_reading *last = &reported->last;
	if (value_ok(last->t_ns) && now_ns < reported->due_ns)
		return *last;
	/* Requests sent once per period arrive slightly early or late, and clients would get only every second reading.
	 * So the lateness of one reading shortens the wait for the next, by at most a twentieth of the period: the
	 * average rate stays one per period, and constant polling gains nothing. */
	int64_t late_ns = value_ok(last->t_ns) ? now_ns - reported->due_ns : 0;
	int64_t max_ns = class->period_ns / 20;
	reported->due_ns = now_ns + class->period_ns - (late_ns < max_ns ? late_ns : max_ns);
	uint64_t energy_uj;
	int r = file_kept_read_u64(&counters->rows[number].file, &energy_uj);
	last->energy_uj = r == 0 && energy_uj <= INT64_MAX ? (int64_t)energy_uj : VALUE_MISSING;
	last->t_ns = now_ns;
	return *last;
}
