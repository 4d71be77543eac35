#include "sampler/recorder.h"

#include "base/util.h"
#include "job/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { KEY_SIZE = 2048 };

/* ---- devices that are one claim ---- */

/* A wall meter is a file given to one of the recorders, maybe not to the one that reads the machine's sensors.
 * Domains that a GPU's driver meters beside the GPU have the GPU's UUID with a suffix. */
static bool is_its_own(const struct domain *domain)
{
	return domain->kind == DOMAIN_GPU || domain->kind == DOMAIN_WALL || domain->uuid[0] != '\0';
}

static const char *lock_name(const struct domain *domain)
{
	if (!is_its_own(domain))
		return "machine";
	return domain->uuid[0] != '\0' ? domain->uuid : domain->name;
}

/* Sensors of the machine are shared by recorders that can read the same ones: a recorder without permission for the
 * counters, which uses a load model, would otherwise block all others. */
static void put_sensors(const struct sensor_set *set, char *out, size_t size)
{
	size_t length = 0;
	for (size_t i = 0; i < set->n_devices && length < size; i++)
		if (!is_its_own(set->devices[i]))
			length += (size_t)snprintf(out + length, size - length, "|%s %s", set->devices[i]->name,
				set->sources[i]);
}

static void make_key(char key[KEY_SIZE], const char *group, const struct sensor_set *set, const struct domain *domain)
{
	int length = snprintf(key, KEY_SIZE, "%s|%s", group, lock_name(domain));
	if (!is_its_own(domain) && length < KEY_SIZE)
		put_sensors(set, key + length, KEY_SIZE - (size_t)length);
}

static bool is_same_lock(const struct domain *a, const struct domain *b)
{
	return is_its_own(a) == is_its_own(b) && strcmp(lock_name(a), lock_name(b)) == 0;
}

static size_t find_lock(struct sensor_locks *sensor_locks, const struct domain *domain)
{
	size_t i = 0;
	while (i < sensor_locks->n && !is_same_lock(sensor_locks->locks[i].first, domain))
		i++;
	if (i == sensor_locks->n)
		sensor_locks->locks[sensor_locks->n++] = (struct sensor_lock){.claim.fd = -1, .first = domain};
	return i;
}

/* ---- the event `sensors` ---- */

// "package-0 dram-0"; the first ones if there are very many.
static void put_names(const struct sensor_locks *sensor_locks, size_t lock, char *out, size_t size)
{
	const struct sensor_set *set = sensor_locks->sampler->sensors;
	size_t length = 0;
	out[0] = '\0';
	for (size_t i = 0; i < set->n_devices; i++) {
		if (sensor_locks->lock_of[i] != lock)
			continue;
		const char *name = set->devices[i]->name;
		bool has_room = length + strlen(name) + 8 < size;
		int n = snprintf(out + length, size - length, "%s%s", length > 0 ? " " : "", has_room ? name : "…");
		length += n > 0 ? (size_t)n : 0;
		if (!has_room)
			return;
	}
}

// Of the other recorder; 0: none, or unknown.
static void report_event(struct sensor_locks *sensor_locks, enum event_type type, size_t lock, int64_t t_ns,
	pid_t other)
{
	char names[EVENT_DEVICE_SIZE - 4];
	struct event event = event_make(type, t_ns);
	put_names(sensor_locks, lock, names, sizeof(names));
	event.device = names;
	event.pid = other > 0 ? other : VALUE_MISSING;
	event.rank = other > 0 ? job_owner_rank(other) : VALUE_MISSING;
	sampler_event(sensor_locks->sampler, &event);
}

static pid_t owner_of(const struct sensor_lock *claimed)
{
	return value_ok(claimed->claim.owner_pid) ? (pid_t)claimed->claim.owner_pid : 0;
}

static void report_reader(struct sensor_locks *sensor_locks, size_t lock, int64_t t_ns)
{
	struct sensor_lock *claimed = &sensor_locks->locks[lock];
	if (claimed->claim.held) {
		report_event(sensor_locks, EVENT_SENSORS_HERE, lock, t_ns, 0);
		return;
	}
	claimed->reported_owner = owner_of(claimed);
	report_event(sensor_locks, EVENT_SENSORS_ELSEWHERE, lock, t_ns, claimed->reported_owner);
}

static void report_takeover(struct sensor_locks *sensor_locks, size_t lock, int64_t t_ns)
{
	report_event(sensor_locks, EVENT_SENSORS_TAKEN, lock, t_ns, sensor_locks->locks[lock].reported_owner);
}

/* ---- open ---- */

static void pass_to_sampler(struct sensor_locks *sensor_locks)
{
	for (size_t i = 0; i < sensor_locks->sampler->sensors->n_devices; i++)
		sensor_locks->sampler->left[i] = !sensor_locks->locks[sensor_locks->lock_of[i]].claim.held;
	sampler_choose_sensors(sensor_locks->sampler);
}

/* Two recorders of one rank are not two ranks: a tracker in a program that `wattle run` measures, or a new worker
 * beside the last moments of the old one. The report distinguishes their readings; without readings the inner one
 * could report no energy. */
static void resolve_related_recorders(struct sensor_locks *sensor_locks, struct claim *claim, pid_t target)
{
	if (claim->held || !value_ok(claim->owner_pid))
		return;
	pid_t owner = (pid_t)claim->owner_pid;
	bool is_same_rank = value_ok(sensor_locks->rank) && job_owner_rank(owner) == sensor_locks->rank;
	if (is_same_rank || job_owner_is_related(owner, target))
		claim_hold_alone(claim);
}

int sensor_locks_open(struct sensor_locks *sensor_locks, struct sampler *sampler, const char *group, int64_t rank,
	pid_t target)
{
	const struct sensor_set *set = sampler->sensors;
	*sensor_locks = (struct sensor_locks){.sampler = sampler, .rank = rank};
	if (group == NULL || group[0] == '\0' || set->n_devices == 0)
		return 0;
	sensor_locks->locks = calloc_array(set->n_devices, sizeof(*sensor_locks->locks));
	sensor_locks->lock_of = calloc_array(set->n_devices, sizeof(*sensor_locks->lock_of));
	if (sensor_locks->locks == NULL || sensor_locks->lock_of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < set->n_devices; i++)
		sensor_locks->lock_of[i] = find_lock(sensor_locks, set->devices[i]);
	for (size_t i = 0; i < sensor_locks->n; i++) {
		char key[KEY_SIZE];
		make_key(key, group, set, sensor_locks->locks[i].first);
		claim_open(&sensor_locks->locks[i].claim, key);
		resolve_related_recorders(sensor_locks, &sensor_locks->locks[i].claim, target);
		report_reader(sensor_locks, i, env_now_ns(sampler->env));
	}
	pass_to_sampler(sensor_locks);
	return 0;
}

void sensor_locks_release(struct sensor_locks *sensor_locks)
{
	for (size_t i = 0; i < sensor_locks->n; i++)
		claim_close(&sensor_locks->locks[i].claim);
	sensor_locks->n = 0;
}

void sensor_locks_close(struct sensor_locks *sensor_locks)
{
	sensor_locks_release(sensor_locks);
	free(sensor_locks->locks);
	free(sensor_locks->lock_of);
	*sensor_locks = (struct sensor_locks){0};
}

/* ---- turns ---- */

int sensor_locks_fd(const struct sensor_locks *sensor_locks, size_t lock)
{
	const struct claim *claim = &sensor_locks->locks[lock].claim;
	return claim->held ? -1 : claim->fd;
}

bool sensor_locks_has(const struct sensor_locks *sensor_locks, int fd)
{
	for (size_t i = 0; i < sensor_locks->n; i++)
		if (fd >= 0 && sensor_locks_fd(sensor_locks, i) == fd)
			return true;
	return false;
}

bool sensor_locks_turn(struct sensor_locks *sensor_locks, int fd, int64_t t_ns, bool *ret_took)
{
	bool changed = false;
	*ret_took = false;
	for (size_t i = 0; i < sensor_locks->n; i++) {
		struct sensor_lock *claimed = &sensor_locks->locks[i];
		if (claimed->claim.held || claimed->claim.fd != fd || !claim_turn(&claimed->claim))
			continue;
		changed = true;
		if (claimed->claim.held)
			report_takeover(sensor_locks, i, t_ns);
		else if (owner_of(claimed) != 0 && owner_of(claimed) != claimed->reported_owner)
			report_reader(sensor_locks, i, t_ns);
		*ret_took |= claimed->claim.held;
	}
	if (*ret_took)
		pass_to_sampler(sensor_locks);
	return changed;
}
