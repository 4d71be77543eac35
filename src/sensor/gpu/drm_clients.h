/* What processes, the target's or all, do on graphics cards, by the descriptors that they have open (drm_fdinfo.h).
 *
 * Which descriptors those are is looked for once a second, a limited number a reading; in between only they are read.
 * Everything is allocated at open. Shared by the sensors of all makers whose drivers speak this format. */
#pragma once

#include "base/env.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The target's use of one card, the sum over its processes.
struct drm_use {
	bool known;           // false: the descriptors can't be seen (another user's process, no /proc)
	int64_t processes;    // with the card open
	double busy_percent;  // of the engines that run shaders; NaN: a process does not tell; 0 with no process
	int64_t memory_bytes; // VALUE_MISSING: a process does not tell; 0 with no process
	int64_t main_memory_bytes;
};

struct drm_clients;

// pci: addresses of the n cards, borrowed. NULL: no memory.
struct drm_clients *drm_clients_new(const struct wattle_env *env, const char *const *pci, size_t n);
void drm_clients_free(struct drm_clients *clients); // NULL allowed
// One reading; ret_uses[i] is for card i.
void drm_clients_read(struct drm_clients *clients, const struct sensor_context *context, struct drm_use *ret_uses);

/* Of all processes, one by one, for those who look at the whole machine: clients of their own, which take the numbers from
 * context.all_pids and look through fewer descriptors a reading, as there are so many. Those of other users are seen by root
 * alone. */
void drm_clients_read_all(struct drm_clients *clients, const struct sensor_context *context);
// Who was on a card at the last reading; one that opened it several times stands there as often. Returns how many.
size_t drm_clients_users(const struct drm_clients *clients, size_t card, struct device_user *users, size_t room);
