/* Compute processes on AMD GPUs: class/kfd, which ROCm's runtime goes through. It lists those of all users, with their
 * memory, and what fdinfo lacks: their work is not in the engine times there. */
#pragma once

#include "base/env.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Processes that hold memory of one GPU, the target's and all others.
struct kfd_use {
	int64_t main_bytes, target_bytes, others_bytes;
	int64_t target_processes, others_processes;
	int64_t target_units, others_units; // compute units in use at the moment; VALUE_MISSING: not told
	int64_t unknown_processes;          // of which it can't be told whose they are: KFD has the host's numbers
};

struct kfd_process { // one of them
	pid_t pid; // as /proc here numbers it; 0: that can't be told
	int64_t bytes, units;
};

struct kfd;

// pci: addresses of the n cards, read now. NULL: no KFD, or no memory.
struct kfd *kfd_new(const struct wattle_env *env, const char *const *pci, size_t n);
void kfd_free(struct kfd *kfd); // NULL allowed
// Whether card i can compute at all: ROCm counts no other. kfd NULL: none can.
bool kfd_has(const struct kfd *kfd, size_t card);
// ret_uses[i] is for card i, all 0 for one without KFD. /sys is asked four times a second at most.
void kfd_read(struct kfd *kfd, const struct sensor_context *context, struct kfd_use *ret_uses);
// The processes on card i at that time. Returns how many.
size_t kfd_processes(const struct kfd *kfd, size_t card, struct kfd_process *processes, size_t room);
