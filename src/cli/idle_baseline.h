/* The idle power of each domain, measured when the machine was provably idle and kept in the state folder as idle.json:
 *
 *	{"schema": "wattle-idle/1", "host": "…", "date": "2026-01-31T12:00:00Z", "temperature_c": 38,
 *	 "domains": [{"domain", "source", "device", "uuid", "idle_w", "error_w", "seconds", "temperature_c", "date"}…]}
 *
 * `host` is a hash that tells machines apart and names none. date and temperature_c of the whole are those of the last
 * calibration; a domain that it did not meet keeps its older one. */
#pragma once

#include "base/arena.h"
#include "base/env.h"
#include "base/error.h"
#include "sensor/sensor.h"
#include "store/store.h"

#include <stddef.h>
#include <stdint.h>

enum { IDLE_BASELINE_MAX = 256, IDLE_BASELINE_DAYS = 90 };

struct idle_entry {
	char domain[48], source[16], device[96], uuid[96];
	char date[32]; // RFC 3339, UTC
	double idle_w, error_w, seconds;
	double temperature_c; // NaN unknown
};

struct idle_baseline {
	char host[20];
	char date[32];        // of the last calibration
	double temperature_c; // then; NaN unknown
	struct idle_entry *entries;
	size_t n;
	struct arena *arena; // owns the entries
};

// Where the file is: env->state_dir/idle.json. False if the path does not fit.
bool idle_baseline_path(const struct wattle_env *env, char *ret_path, size_t size);
// -ENOENT: none is stored; -EINVAL with a sentence: the file is not what it should be. *ret_baseline is always valid.
int idle_baseline_load(const struct wattle_env *env, struct idle_baseline *ret_baseline, struct wattle_error *reterr);
// Replaces the entries of the same domain, source, device and uuid, keeps the others, and writes the file whole; what
// was stored for another machine is dropped.
int idle_baseline_store(const struct wattle_env *env, const struct idle_entry *entries, size_t n,
	struct wattle_error *reterr);
int idle_baseline_folder(const struct wattle_env *env, struct wattle_error *reterr); // makes the state folder
void idle_baseline_finish(struct idle_baseline *baseline);

void idle_baseline_host(char *ret_host, size_t size); // of this machine
void idle_baseline_date(int64_t wall_ns, char *ret_date, size_t size);

/* The stored idle power of each device of the set, in an array with room for all of them; what has none stays. What is stored but does not count (too old, another
 * machine, broken) leaves a sentence in ret_note, "" else. Returns the number of domains that got one. */
size_t idle_baseline_of(const struct wattle_env *env, const struct sensor_set *set, struct idle_power *ret_idle,
	char *ret_note, size_t size);
