/* wattle's side of the talk with the helper. One connection; a request waits at most so long for its reply, after which the
 * connection is given up (-ETIMEDOUT) and made again at the next call. Never from a set-uid program. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "proto/protocol.h"

#include <stdbool.h>

struct proto_client {
	const struct wattle_env *env; // borrowed
	int fd;                       // owned; -1: not connected
	int owner_pid;                // a forked child has its own connection, or it would take its parent's replies
};

// Connects and says hello. -ENOENT, -ECONNREFUSED (no helper), -EACCES (the socket is not for this user), -ENODEV (WATTLE_HELPER=off),
// with a sentence that says how to get one. The client is valid in any case.
int proto_client_open(struct proto_client *client, const struct wattle_env *env, struct proto_hello *ret_hello,
	struct wattle_error *reterr);
void proto_client_close(struct proto_client *client);
/* Fills in magic; sends, waits up to timeout_ms. 0 and *ret_reply with code 0; the reply's code, with its text in
 * reterr; -EPIPE, -ETIMEDOUT, -EPROTO: the connection is gone. Allocates nothing. */
int proto_client_ask(struct proto_client *client, struct proto_request *request, int timeout_ms,
	struct proto_reply *ret_reply, struct wattle_error *reterr);
