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

static const char *thing_name(const struct domain *domain)
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
	int length = snprintf(key, KEY_SIZE, "%s|%s", group, thing_name(domain));
	if (!is_its_own(domain) && length < KEY_SIZE)
		put_sensors(set, key + length, KEY_SIZE - (size_t)length);
}

static bool is_same_thing(const struct domain *a, const struct domain *b)
{
	return is_its_own(a) == is_its_own(b) && strcmp(thing_name(a), thing_name(b)) == 0;
}

static size_t find_thing(struct claims *claims, const struct domain *domain)
{
	size_t i = 0;
	while (i < claims->n && !is_same_thing(claims->things[i].first, domain))
		i++;
	if (i == claims->n)
		claims->things[claims->n++] = (struct claimed){.claim.fd = -1, .first = domain};
	return i;
}

/* ---- the event `sensors` ---- */

// "package-0 dram-0"; the first ones if there are very many.
static void put_names(const struct claims *claims, size_t thing, char *out, size_t size)
{
	const struct sensor_set *set = claims->sampler->sensors;
	size_t length = 0;
	out[0] = '\0';
	for (size_t i = 0; i < set->n_devices; i++) {
		if (claims->thing_of[i] != thing)
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
static void tell(struct claims *claims, enum event_type type, size_t thing, int64_t t_ns, pid_t other)
{
	char names[EVENT_DEVICE_SIZE - 4];
	struct event event = event_make(type, t_ns);
	put_names(claims, thing, names, sizeof(names));
	event.device = names;
	event.pid = other > 0 ? other : VALUE_MISSING;
	event.rank = other > 0 ? job_owner_rank(other) : VALUE_MISSING;
	sampler_event(claims->sampler, &event);
}

static pid_t owner_of(const struct claimed *claimed)
{
	return value_ok(claimed->claim.owner_pid) ? (pid_t)claimed->claim.owner_pid : 0;
}

static void tell_reader(struct claims *claims, size_t thing, int64_t t_ns)
{
	struct claimed *claimed = &claims->things[thing];
	if (claimed->claim.held) {
		tell(claims, EVENT_SENSORS_HERE, thing, t_ns, 0);
		return;
	}
	claimed->told_owner = owner_of(claimed);
	tell(claims, EVENT_SENSORS_ELSEWHERE, thing, t_ns, claimed->told_owner);
}

static void tell_taken(struct claims *claims, size_t thing, int64_t t_ns)
{
	tell(claims, EVENT_SENSORS_TAKEN, thing, t_ns, claims->things[thing].told_owner);
}

/* ---- open ---- */

static void give_to_sampler(struct claims *claims)
{
	for (size_t i = 0; i < claims->sampler->sensors->n_devices; i++)
		claims->sampler->left[i] = !claims->things[claims->thing_of[i]].claim.held;
	sampler_choose_sensors(claims->sampler);
}

/* Two recorders of one rank are not two ranks: a tracker in a program that `wattle run` measures, or a new worker
 * beside the last moments of the old one. The report tells their readings apart; without readings the inner one
 * could report no energy. */
static void settle_with_kin(struct claims *claims, struct claim *claim, pid_t target)
{
	if (claim->held || !value_ok(claim->owner_pid))
		return;
	pid_t owner = (pid_t)claim->owner_pid;
	bool is_same_rank = value_ok(claims->rank) && job_owner_rank(owner) == claims->rank;
	if (is_same_rank || job_owner_is_kin(owner, target))
		claim_go_alone(claim);
}

int claims_open(struct claims *claims, struct sampler *sampler, const char *group, int64_t rank, pid_t target)
{
	const struct sensor_set *set = sampler->sensors;
	*claims = (struct claims){.sampler = sampler, .rank = rank};
	if (group == NULL || group[0] == '\0' || set->n_devices == 0)
		return 0;
	claims->things = calloc_array(set->n_devices, sizeof(*claims->things));
	claims->thing_of = calloc_array(set->n_devices, sizeof(*claims->thing_of));
	if (claims->things == NULL || claims->thing_of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < set->n_devices; i++)
		claims->thing_of[i] = find_thing(claims, set->devices[i]);
	for (size_t i = 0; i < claims->n; i++) {
		char key[KEY_SIZE];
		make_key(key, group, set, claims->things[i].first);
		claim_open(&claims->things[i].claim, key);
		settle_with_kin(claims, &claims->things[i].claim, target);
		tell_reader(claims, i, env_now_ns(sampler->env));
	}
	give_to_sampler(claims);
	return 0;
}

void claims_let_go(struct claims *claims)
{
	for (size_t i = 0; i < claims->n; i++)
		claim_close(&claims->things[i].claim);
	claims->n = 0;
}

void claims_close(struct claims *claims)
{
	claims_let_go(claims);
	free(claims->things);
	free(claims->thing_of);
	*claims = (struct claims){0};
}

/* ---- turns ---- */

int claims_fd(const struct claims *claims, size_t thing)
{
	const struct claim *claim = &claims->things[thing].claim;
	return claim->held ? -1 : claim->fd;
}

bool claims_has(const struct claims *claims, int fd)
{
	for (size_t i = 0; i < claims->n; i++)
		if (fd >= 0 && claims_fd(claims, i) == fd)
			return true;
	return false;
}

bool claims_turn(struct claims *claims, int fd, int64_t t_ns, bool *ret_took)
{
	bool changed = false;
	*ret_took = false;
	for (size_t i = 0; i < claims->n; i++) {
		struct claimed *claimed = &claims->things[i];
		if (claimed->claim.held || claimed->claim.fd != fd || !claim_turn(&claimed->claim))
			continue;
		changed = true;
		if (claimed->claim.held)
			tell_taken(claims, i, t_ns);
		else if (owner_of(claimed) != 0 && owner_of(claimed) != claimed->told_owner)
			tell_reader(claims, i, t_ns);
		*ret_took |= claimed->claim.held;
	}
	if (*ret_took)
		give_to_sampler(claims);
	return changed;
}
