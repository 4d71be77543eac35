/* One request into its reply: which right it needs, what it is answered. Knows no connections. */
#pragma once

#include "helper/peer.h"
#include "helper/server.h"
#include "proto/protocol.h"

struct asker {
	int fd; // the connection, for a pidfd of the process behind it
	struct peer peer;
	struct policy_rights rights;
};

struct request_context { // all borrowed
	const struct server_parts *parts;
	struct counter_class *classes; // parts->policy->n_periods of them
};

// False: malformed, which ends the connection.
bool request_is_sound(const struct proto_request *request);
// Fills in the whole of *ret_reply.
void request_serve(const struct request_context *context, const struct asker *asker,
	const struct proto_request *request, struct proto_reply *ret_reply);
