/* A run file into a store in PostgreSQL: what `wattle push` does, and the sender of `run --store`. */
#pragma once

#include "base/error.h"
#include "store/postgres/send.h"

#include <stdbool.h>
#include <stdint.h>

/* The last of a run whose recorder is gone, after send_batch has said 0: what only the whole of it tells (processes, whether all rows
 * are there, energy and code blocks by the report's own code). Returns as send_batch. */
int push_end(struct send *send, const char *path, struct wattle_error *reterr);

struct push_result {
	struct send_count sent;
	char run_id[40];
	bool is_live; // its recorder goes on: what is final so far has been sent
};

/* All that there is. A server that goes away is waited for, wait_ns in all without a batch that went through. The sentence of a failure
 * says what is not sent. */
int push_file(const char *path, const char *url, int64_t wait_ns, struct push_result *ret_result,
	struct wattle_error *reterr);

// How long to wait before the n-th try in a row, n from 1: 0.2 s, doubled up to 20 s, and somewhat by chance: many wait for one server.
int64_t push_backoff_ns(int n);
