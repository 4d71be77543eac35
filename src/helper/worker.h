/* A thread that changes limits, one question after the other. Drivers and disks take their time for that, some GPUs
 * hundreds of milliseconds, and readings of counters, which the server's own thread answers, must not wait for it.
 *
 * A question is known by its client's place. Between worker_give and the worker_take that hands it back the place is
 * the thread's; and so are, from start to stop, the limits. */
#pragma once

#include "base/env.h"
#include "helper/limits.h"

#include <stdint.h>

struct worker;

typedef void (*worker_serve_fn)(void *data, uint32_t place);

/* To be started after sandbox_enter, which counts for the threads that come after it. Everything is borrowed;
 * `n_places` is how many questions there can be at once. */
int worker_start(struct limits *limits, const struct wattle_env *env, size_t n_places, worker_serve_fn serve,
	void *data, struct worker **ret_worker);
// Waits for the question at hand; those behind it are not answered. NULL is nothing.
void worker_stop(struct worker *worker);

int worker_fd(const struct worker *worker); // readable: worker_take has something
void worker_give(struct worker *worker, uint32_t place);
bool worker_take(struct worker *worker, uint32_t *ret_place);
