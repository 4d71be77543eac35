/* Figures of the whole machine: /proc/stat and /proc/meminfo, kept open. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "process/stat.h"

#include <stdint.h>

struct machine {
	struct file_kept stat, meminfo;
	struct process_units units;
};

struct machine_reading {     // VALUE_MISSING where it could not be read
	int64_t cpu_busy_ns; // user+nice+system+irq+softirq+steal of all cores; guest time is in user already
	int64_t cpu_idle_ns; // idle+iowait
	int64_t memory_total_bytes;
	int64_t memory_used_bytes; // MemTotal - MemAvailable
};

void machine_open(struct machine *machine, const struct wattle_env *env);
void machine_close(struct machine *machine);
void machine_read(struct machine *machine, struct machine_reading *ret_reading);

// Pure halves, for tests.
void machine_parse_stat(const char *text, int64_t tick_ns, struct machine_reading *reading);
void machine_parse_meminfo(const char *text, struct machine_reading *reading);

int64_t machine_cores(
	const struct wattle_env *env); // cores online, from /proc/stat; VALUE_MISSING if that can't be read
