/* RAM of the target, private memory and shared memory once, from look to look: as a recording has it at its last sample, carried
 * forward between readings (process/memory.h). */
#pragma once

#include "base/env.h"

#include <sys/types.h>

struct target_ram;

// NULL: no memory, or no such process.
struct target_ram *target_ram_open(const struct wattle_env *env, pid_t pid);
void target_ram_close(struct target_ram *ram);                // NULL allowed, here and below
double target_ram_look(struct target_ram *ram, int64_t t_ns); // bytes; NaN unknown
