#include "lib/cap.h"

#include "base/util.h"
#include "lib/tracker.h"
#include "sensor/sensor.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

// Limits slow drivers to one part in (1 + REST_OVER_READING) of the thread's time.
enum { REST_OVER_READING = 4 };

struct cap_meter {
	const struct wattle_env *env;
	struct sensor_set sensors;
	struct tune_meter meter;
	pthread_mutex_t lock; // protects the tracks and `ending`
	pthread_cond_t wake;
	pthread_t thread;
	bool sensors_are_open, has_thread, ending;
};

/* ---- reader thread ---- */

static void poll_sensors(struct cap_meter *meter)
{
	int64_t t_ns;
	for (size_t p = 0; p < meter->meter.n_parts; p++) {
		if (!tune_meter_read(&meter->meter, p, &t_ns))
			continue;
		pthread_mutex_lock(&meter->lock);
		tune_meter_feed(&meter->meter, p, t_ns);
		pthread_mutex_unlock(&meter->lock);
	}
}

static void *watch(void *data)
{
	struct cap_meter *meter = data;
	bool ending = false;
	while (!ending) {
		int64_t before_ns = env_now_ns(meter->env);
		poll_sensors(meter);
		int64_t took_ns = env_now_ns(meter->env) - before_ns;
		int64_t rest_ns = took_ns * REST_OVER_READING > TUNE_POLL_NS ? took_ns * REST_OVER_READING
									     : TUNE_POLL_NS;
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

// Blocks all signals: they belong to the program's own threads.
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

// Names of these GPUs as the sensors know them, so that only these are opened. "": packages only.
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
		is_guess ? ", only estimated from load" : "",
		domain != NULL && !is_guess && domain->why[0] != '\0' ? ": " : "",
		domain != NULL && !is_guess ? domain->why : "", domain != NULL && domain->remedy[0] != '\0' ? "; " : "",
		domain != NULL ? domain->remedy : "");
}

// `ret_seen`: a domain of that name that can't be used, for the error message.
static bool add_part(struct cap_meter *meter, const char *name, const struct domain **ret_seen)
{
	for (size_t s = 0; s < meter->sensors.n_slots; s++) {
		const struct sensor_slot *slot = &meter->sensors.slots[s];
		for (size_t i = 0; i < slot->n_domains; i++) {
			const struct domain *domain = &slot->domains[i];
			if (strcmp(domain->name, name) != 0)
				continue;
			if (*ret_seen == NULL)
				*ret_seen = domain;
			if (!domain->used || domain->provenance == PROVENANCE_ESTIMATED)
				continue;
			tune_meter_add(&meter->meter, slot, i);
			return true;
		}
	}
	return false;
}

static int add_parts(struct cap_meter *meter, struct cap_device *const *devices, size_t n, struct wattle_error *reterr)
{
	int r = tune_meter_open(&meter->meter, meter->env, &meter->sensors, n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct domain *seen = NULL;
		if (!add_part(meter, devices[i]->name, &seen))
			r = no_energy(devices[i], seen, reterr);
	}
	return r;
}

static int open_all(struct cap_meter *meter, struct cap_device *const *devices, size_t n, struct wattle_error *reterr)
{
	char gpus[1024];
	list_gpus(devices, n, gpus, sizeof(gpus));
	const struct sensor_options options = {.gpus = gpus[0] != '\0' ? gpus : NULL};
	fork_lock_take(); // loads driver libraries
	int r = sensor_set_open(&meter->sensors, meter->env, &options, reterr);
	fork_lock_release();
	if (r < 0)
		return r;
	meter->sensors_are_open = true;
	r = add_parts(meter, devices, n, reterr);
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
	if (meter->sensors_are_open) {
		fork_lock_take();
		sensor_set_close(&meter->sensors);
		fork_lock_release();
	}
	tune_meter_close(&meter->meter);
	free(meter);
}

/* ---- results ---- */

int64_t cap_meter_mark(struct cap_meter *meter, size_t mark)
{
	pthread_mutex_lock(&meter->lock);
	int64_t now_ns = env_now_ns(meter->env);
	tune_meter_mark(&meter->meter, mark, now_ns);
	pthread_mutex_unlock(&meter->lock);
	return now_ns;
}

bool cap_meter_between(struct cap_meter *meter, size_t from, size_t to, struct tune_span *ret_span)
{
	pthread_mutex_lock(&meter->lock);
	bool is_known = tune_meter_between(&meter->meter, from, to, false, ret_span);
	pthread_mutex_unlock(&meter->lock);
	return is_known;
}

uint64_t cap_meter_updates(struct cap_meter *meter)
{
	pthread_mutex_lock(&meter->lock);
	uint64_t fewest = tune_meter_updates(&meter->meter);
	pthread_mutex_unlock(&meter->lock);
	return fewest;
}

bool cap_meter_is_lost(struct cap_meter *meter)
{
	pthread_mutex_lock(&meter->lock);
	bool is_lost = tune_meter_is_lost(&meter->meter);
	pthread_mutex_unlock(&meter->lock);
	return is_lost;
}
