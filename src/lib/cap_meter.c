#include "lib/cap_meter.h"

#include "base/util.h"
#include "sensor/sensor.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

// A reading so often sees updates of 20 ms to a tenth of that, and those of package counters (1 ms) one by one.
static const int64_t LOOK_NS = 2 * NS_PER_MS;
// Drivers that take long to answer get at most this share of the thread's time.
enum { REST_OVER_READING = 4 };

struct part { // one device
	const struct sensor_slot *slot;
	size_t domain; // of the slot's
	struct cap_trace trace;
};

struct cap_meter {
	const struct wattle_env *env;
	struct sensor_set sensors;
	struct part *parts; // owned
	size_t n_parts;
	int64_t (*rows)[DEVICE_COUNT]; // owned: room for the largest slot
	pthread_mutex_t lock;          // of the traces and of `ending`
	pthread_cond_t wake;
	pthread_t thread;
	bool sensors_are_open, has_thread, ending;
};

/* ---- the thread ---- */

static void read_slot(struct cap_meter *meter, const struct sensor_slot *slot, bool energy_only)
{
	const struct sensor_context context = {.t_ns = env_now_ns(meter->env),
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.energy_only = energy_only};
	for (size_t i = 0; i < slot->n_domains; i++)
		for (size_t k = 0; k < DEVICE_COUNT; k++)
			meter->rows[i][k] = VALUE_MISSING;
	slot->ops->read(slot->state, &context, meter->rows);
}

static bool is_first_of_slot(const struct cap_meter *meter, size_t part)
{
	for (size_t i = 0; i < part; i++)
		if (meter->parts[i].slot == meter->parts[part].slot)
			return false;
	return true;
}

// Of the sensors of the limited devices only, each once.
static void look(struct cap_meter *meter)
{
	for (size_t p = 0; p < meter->n_parts; p++) {
		const struct sensor_slot *slot = meter->parts[p].slot;
		if (!is_first_of_slot(meter, p))
			continue;
		bool energy_only = true;
		for (size_t i = p; i < meter->n_parts; i++)
			energy_only &= meter->parts[i].slot != slot || meter->parts[i].trace.domain->has_energy;
		int64_t before_ns = env_now_ns(meter->env);
		read_slot(meter, slot, energy_only);
		int64_t t_ns = before_ns + (env_now_ns(meter->env) - before_ns) / 2;
		pthread_mutex_lock(&meter->lock);
		for (size_t i = p; i < meter->n_parts; i++)
			if (meter->parts[i].slot == slot)
				cap_trace_feed(&meter->parts[i].trace, t_ns, meter->rows[meter->parts[i].domain]);
		pthread_mutex_unlock(&meter->lock);
	}
}

static void *watch(void *data)
{
	struct cap_meter *meter = data;
	bool ending = false;
	while (!ending) {
		int64_t before_ns = env_now_ns(meter->env);
		look(meter);
		int64_t took_ns = env_now_ns(meter->env) - before_ns;
		int64_t rest_ns = took_ns * REST_OVER_READING > LOOK_NS ? took_ns * REST_OVER_READING : LOOK_NS;
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		int64_t until_ns = until.tv_nsec + rest_ns;
		until.tv_sec += until_ns / NS_PER_S;
		until.tv_nsec = until_ns % NS_PER_S;
		pthread_mutex_lock(&meter->lock);
		if (!meter->ending)
			pthread_cond_timedwait(&meter->wake, &meter->lock, &until);
		ending = meter->ending;
		pthread_mutex_unlock(&meter->lock);
	}
	return NULL;
}

// Signals are for the program's own threads.
static int start_thread(struct cap_meter *meter)
{
	sigset_t all, before;
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_mutex_init(&meter->lock, NULL);
	pthread_cond_init(&meter->wake, &clock);
	pthread_condattr_destroy(&clock);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = pthread_create(&meter->thread, NULL, watch, meter);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0) {
		pthread_cond_destroy(&meter->wake);
		pthread_mutex_destroy(&meter->lock);
		return -r;
	}
	meter->has_thread = true;
	return 0;
}

/* ---- open ---- */

// What the sensors call these GPUs, so that no others are opened. "": packages only.
static void list_gpus(struct cap_device *const *devices, size_t n, char *ret_list, size_t size)
{
	size_t used = 0;
	ret_list[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++)
		if (strncmp(devices[i]->name, "gpu-", 4) == 0)
			used += (size_t)snprintf(ret_list + used, size - used, "%s%s", used > 0 ? "," : "",
				devices[i]->name + 4);
}

static int no_energy(const struct cap_device *device, const struct domain *domain, struct wattle_error *reterr)
{
	bool is_guess = domain != NULL && domain->readable;
	return error_set(reterr, -ENOTSUP, "%s: its energy can't be measured%s%s%s%s%s", device->name,
		is_guess ? ", only guessed from the load" : "",
		domain != NULL && !is_guess && domain->why[0] != '\0' ? ": " : "",
		domain != NULL && !is_guess ? domain->why : "", domain != NULL && domain->remedy[0] != '\0' ? "; " : "",
		domain != NULL ? domain->remedy : "");
}

// `ret_seen`: a domain of that name that is not used, for the message.
static bool find_domain(const struct sensor_set *sensors, const char *name, struct part *part,
	const struct domain **ret_seen)
{
	for (size_t s = 0; s < sensors->n_slots; s++) {
		const struct sensor_slot *slot = &sensors->slots[s];
		for (size_t i = 0; i < slot->n_domains; i++) {
			const struct domain *domain = &slot->domains[i];
			if (strcmp(domain->name, name) != 0)
				continue;
			if (*ret_seen == NULL)
				*ret_seen = domain;
			if (!domain->used || domain->provenance == PROVENANCE_ESTIMATED)
				continue;
			part->slot = slot;
			part->domain = i;
			cap_trace_init(&part->trace, domain);
			return true;
		}
	}
	return false;
}

static int find_parts(struct cap_meter *meter, struct cap_device *const *devices, size_t n, struct wattle_error *reterr)
{
	size_t most = 1;
	for (size_t s = 0; s < meter->sensors.n_slots; s++)
		if (meter->sensors.slots[s].n_domains > most)
			most = meter->sensors.slots[s].n_domains;
	meter->rows = calloc_array(most, sizeof(*meter->rows));
	meter->parts = calloc_array(n, sizeof(*meter->parts));
	if (meter->rows == NULL || meter->parts == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct domain *seen = NULL;
		if (!find_domain(&meter->sensors, devices[i]->name, &meter->parts[i], &seen))
			return no_energy(devices[i], seen, reterr);
	}
	meter->n_parts = n;
	return 0;
}

static int open_all(struct cap_meter *meter, struct cap_device *const *devices, size_t n, struct wattle_error *reterr)
{
	char gpus[1024];
	list_gpus(devices, n, gpus, sizeof(gpus));
	const struct sensor_options options = {.gpus = gpus[0] != '\0' ? gpus : NULL};
	int r = sensor_set_open(&meter->sensors, meter->env, &options, reterr);
	if (r < 0)
		return r;
	meter->sensors_are_open = true;
	r = find_parts(meter, devices, n, reterr);
	return r < 0 ? r : start_thread(meter);
}

int cap_meter_open(const struct wattle_env *env, struct cap_device *const *devices, size_t n,
	struct cap_meter **ret_meter, struct wattle_error *reterr)
{
	struct cap_meter *meter = calloc(1, sizeof(*meter));
	if (meter == NULL)
		return -ENOMEM;
	meter->env = env;
	int r = open_all(meter, devices, n, reterr);
	if (r < 0)
		cap_meter_close(meter);
	else
		*ret_meter = meter;
	return r;
}

void cap_meter_close(struct cap_meter *meter)
{
	if (meter == NULL)
		return;
	if (meter->has_thread) {
		pthread_mutex_lock(&meter->lock);
		meter->ending = true;
		pthread_cond_signal(&meter->wake);
		pthread_mutex_unlock(&meter->lock);
		pthread_join(meter->thread, NULL);
		pthread_cond_destroy(&meter->wake);
		pthread_mutex_destroy(&meter->lock);
	}
	if (meter->sensors_are_open)
		sensor_set_close(&meter->sensors);
	free(meter->rows);
	free(meter->parts);
	free(meter);
}

/* ---- what it tells ---- */

int64_t cap_meter_mark(struct cap_meter *meter, size_t mark)
{
	pthread_mutex_lock(&meter->lock);
	int64_t now_ns = env_now_ns(meter->env);
	for (size_t i = 0; i < meter->n_parts; i++)
		cap_trace_mark(&meter->parts[i].trace, mark, now_ns);
	pthread_mutex_unlock(&meter->lock);
	return now_ns;
}

static bool between(const struct cap_meter *meter, size_t from, size_t to, struct cap_span *span)
{
	double error_j2 = 0;
	for (size_t i = 0; i < meter->n_parts; i++) {
		const struct cap_mark *a = &meter->parts[i].trace.marks[from], *b = &meter->parts[i].trace.marks[to];
		if (!a->is_known || !b->is_known)
			return false;
		span->energy_j += b->energy_j - a->energy_j;
		span->most_j = fmax(span->most_j, b->energy_j - a->energy_j);
		error_j2 += a->error_j * a->error_j + b->error_j * b->error_j;
		span->seconds = (double)(b->t_ns - a->t_ns) / 1e9;
	}
	span->error_j = sqrt(error_j2);
	return true;
}

bool cap_meter_between(struct cap_meter *meter, size_t from, size_t to, struct cap_span *ret_span)
{
	struct cap_span span = {0};
	pthread_mutex_lock(&meter->lock);
	bool is_known = between(meter, from, to, &span);
	pthread_mutex_unlock(&meter->lock);
	if (is_known)
		*ret_span = span;
	return is_known;
}

uint64_t cap_meter_updates(struct cap_meter *meter)
{
	uint64_t fewest = UINT64_MAX;
	pthread_mutex_lock(&meter->lock);
	for (size_t i = 0; i < meter->n_parts; i++)
		if (meter->parts[i].trace.n_updates < fewest)
			fewest = meter->parts[i].trace.n_updates;
	pthread_mutex_unlock(&meter->lock);
	return fewest;
}

bool cap_meter_is_lost(struct cap_meter *meter)
{
	bool is_lost = false;
	pthread_mutex_lock(&meter->lock);
	for (size_t i = 0; i < meter->n_parts; i++)
		is_lost |= meter->parts[i].trace.is_lost;
	pthread_mutex_unlock(&meter->lock);
	return is_lost;
}
