/* Each process on an AMD GPU: what fdinfo and KFD tell, put together. Pure. */
#pragma once

#include "sensor/gpu/kfd.h"
#include "sensor/sensor.h"

#include <stddef.h>

/* `users` has those that fdinfo knows, n of them, and room for more. Those that compute are KFD's: of them fdinfo has no work, and
 * the same memory once more in newer kernels. busy: of the whole GPU, VALUE_MISSING unknown. What nobody of them does is a user's
 * without a number. Returns how many there are. */
size_t amdgpu_users_merge(struct device_user *users, size_t n, size_t room, const struct kfd_process *processes,
	size_t n_processes, int64_t busy_percent);
