/* Which socket and die a CPU belongs to, and what kind of CPU it is; read once, at open. */
#pragma once

#include "base/env.h"

#include <stdbool.h>
#include <stddef.h>

struct cpu_place {
	int package, die; // as the kernel numbers them; -1: not said
};

struct cpu_place cpu_place_read(int sysfs_fd, int cpu);
// "0,16" or "0-1,64": the CPUs of a list as the kernel writes it, at most `size` of them; how many were stored.
size_t cpu_list_parse(const char *text, int *ret_cpus, size_t size);
// Sockets of the machine by cpuinfo, at least 1.
int cpu_count_packages(const struct wattle_env *env);
// AMD and Hygon count energy once a socket, however many dies it has.
bool cpu_dies_share_counter(const struct wattle_env *env);
// A guest: whatever counters it shows may be the hypervisor's inventions.
bool cpu_is_virtual(const struct wattle_env *env);
