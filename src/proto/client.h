/* wattle's side of the talk with the helper. One connection; a request waits at most so long for its reply, else the
 * connection is given up, as a late reply would be taken for the next one's. Never from a set-uid program. */
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

/* Connects and says hello. -ENOENT, -ECONNREFUSED (no helper), -EACCES (the socket is not for this user), -ENODEV
 * (WATTLE_HELPER=off), -EAGAIN (too many want to talk to it), -ETIMEDOUT, -EPIPE, -EPROTO, with a sentence that says how to
 * get one. The client is valid in any case. The numbers of counters and devices hold for one connection: after another
 * opening it may be another helper that answers. */
int proto_client_open(struct proto_client *client, const struct wattle_env *env, struct proto_hello *ret_hello,
	struct wattle_error *reterr);
// As above with a limit of its own to what it may take, for those who must not wait.
int proto_client_open_within(struct proto_client *client, const struct wattle_env *env, int timeout_ms,
	struct proto_hello *ret_hello, struct wattle_error *reterr);
void proto_client_close(struct proto_client *client);
// False after the connection was lost, and in a forked child.
bool proto_client_is_open(const struct proto_client *client);
/* Fills in magic; sends, waits up to timeout_ms. 0 and *ret_reply with code 0; the reply's code, with its text in
 * reterr; -EPIPE, -ETIMEDOUT, -EPROTO: the connection is lost; -ENOTCONN: it was before, open it again. Texts in the reply
 * are terminated. Allocates nothing. */
int proto_client_ask(struct proto_client *client, struct proto_request *request, int timeout_ms,
	struct proto_reply *ret_reply, struct wattle_error *reterr);

// The socket that is asked, or "off".
const char *proto_client_socket(const struct wattle_env *env);
/* What a person does about an opening or a question that failed with `code`, or about a helper that does not let them
 * (-EPERM): a command. "" where none helps. */
const char *proto_client_remedy(int code);
// What the code means, a few words: "no helper is running".
const char *proto_client_reason(int code);
