/* The server: epoll, places that are made once. A client has a place with room for one request and one reply; nothing
 * it sends makes anything grow. Its one thread answers all; but for questions about limits, once it has a worker
 * (helper/worker.h).
 *
 * A turn of the loop serves at most one request of each client, so a fast one slows nobody down by more than that.
 * Who does not read its reply, or stops in the middle of a request, is dropped; so is who is idle for long: a limit
 * does not hang on the connection. */
#pragma once

#include "base/env.h"
#include "helper/counters.h"
#include "helper/limits.h"
#include "helper/policy.h"

enum { SERVER_CLIENTS_MAX = 512 };

struct server;

struct server_parts { // all borrowed
	const struct wattle_env *env;
	const struct policy *policy;
	struct counters *counters;
	struct limits *limits;
};

struct server_doors {  // all borrowed; -1: none
	int listen_fd; // a listening stream socket, not blocking
	int stop_fd;   // readable when the server is to stop
	int guard_fd;  // a pipe to write to; without its reader the server is to stop, too
};
int server_open(const struct server_parts *parts, const struct server_doors *doors, struct server **ret_server,
	struct wattle_error *reterr);
// Without, what is asked about limits is answered in turn with the rest. After sandbox_enter.
int server_start_worker(struct server *server);
// Hangs up on everybody. Limits are not its business.
void server_close(struct server *server);
// A connection that came another way; taken over in any case. -EBUSY: all places are taken, or too many by this user.
int server_adopt(struct server *server, int fd);
/* Waits at most timeout_ms (-1: for long) and serves what came. 0; 1: to stop; negative errno: the loop itself is
 * broken. */
int server_turn(struct server *server, int timeout_ms);
size_t server_clients(const struct server *server);
