/* The counters of energy that only root may read, kept open and known to clients by number: powercap's zones and the
 * package counters of amd_energy. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "proto/protocol.h"

#include <stddef.h>
#include <stdint.h>

enum { COUNTERS_MAX = 256 };

struct counter {
	char name[PROTO_NAME_SIZE];
	struct file_kept file;
};

struct counters {
	struct counter rows[COUNTERS_MAX];
	size_t n;
};

struct counter_told {
	struct proto_reading last; // t_ns VALUE_MISSING: none yet
	int64_t due_ns;            // when the next one may be made
};

/* A class of readers, those with one period: what they were told last. Fast reading power tells others' secret keys, so
 * a reading for those who may read every millisecond must not reach those who may every 100 ms. */
struct counter_class {
	int64_t period_ns;
	struct counter_told *told; // owned; one a counter
};

// A machine without any is normal. -ENOMEM only; *ret_counters is valid in any case.
int counters_open(struct counters *ret_counters, const struct wattle_env *env);
void counters_close(struct counters *counters);

int counter_class_init(struct counter_class *class, int64_t period_ns, const struct counters *counters);
void counter_class_finish(struct counter_class *class);

// The counter as it is now, or as it was less than the class's period ago.
struct proto_reading counters_read(struct counters *counters, struct counter_class *class, size_t number,
	int64_t now_ns);
