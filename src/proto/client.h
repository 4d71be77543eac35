/* Client side of the connection to the helper. There is one connection. A request that gets no reply within its time limit
 * closes the connection, because a late reply would be read as that of the next request. Never used in a set-uid program. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "proto/protocol.h"

#include <stdbool.h>

struct proto_client {
	const struct wattle_env *env; // borrowed
	int fd;                       // owned; -1: not connected
	int owner_pid;                // a forked child needs its own connection, else it would receive its parent's replies
};

/* Connects and sends the hello. Errors, with a sentence and a remedy: -ENOENT, -ECONNREFUSED (no helper), -EACCES (no access
 * to the socket), -ENODEV (WATTLE_HELPER=off), -EAGAIN (too many clients), -ETIMEDOUT, -EPIPE, -EPROTO. The client is valid
 * in any case. Numbers of counters and devices are valid for one connection: the next one may be to another helper. */
int proto_client_open(struct proto_client *client, const struct wattle_env *env, struct proto_hello *ret_hello,
	struct wattle_error *reterr);
// The same with a time limit, for callers that must not block.
int proto_client_open_within(struct proto_client *client, const struct wattle_env *env, int timeout_ms,
	struct proto_hello *ret_hello, struct wattle_error *reterr);
void proto_client_close(struct proto_client *client);
// Returns false after the connection was lost, and in a forked child.
bool proto_client_is_open(const struct proto_client *client);
/* Fills in the magic, sends, and waits up to timeout_ms. Returns 0 with *ret_reply (code 0), or the reply's code with its
 * text in reterr. -EPIPE, -ETIMEDOUT, -EPROTO: the connection is lost. -ENOTCONN: it was lost before; open it again. Texts in
 * the reply are NUL-terminated. Does not allocate. */
int proto_client_request(struct proto_client *client, struct proto_request *request, int timeout_ms,
	struct proto_reply *ret_reply, struct wattle_error *reterr);

// Returns the path of the helper's socket, or "off".
const char *proto_client_socket(const struct wattle_env *env);
/* Returns the command that helps after an open or a request failed with `code`, or after the helper denied it (-EPERM); "" if
 * none helps. */
const char *proto_client_remedy(int code);
// Describes the code in a few words: "no helper is running".
const char *proto_client_reason(int code);
