/* The limits that clients hold. A lease belongs to a process, known by its pidfd: it ends when that ends, whatever
 * becomes of its connections. wattled itself holds the lock and writes the device (cap/lease.h); its guard restores
 * if it dies. */
#pragma once

#include "base/env.h"
#include "cap/device.h"
#include "helper/peer.h"
#include "helper/policy.h"
#include "proto/protocol.h"

struct limits;
struct asker;

// Finds the devices. A machine without any is normal.
int limits_open(const struct wattle_env *env, struct limits **ret_limits, struct wattle_error *reterr);
// Restores what clients hold, then frees.
void limits_close(struct limits *limits);

// Readable when a process with a lease has ended: call limits_turn.
int limits_fd(const struct limits *limits);
void limits_turn(struct limits *limits);
// Once a second or so: limits that were to last for a time.
void limits_sweep(struct limits *limits, int64_t now_ns);

size_t limits_count(const struct limits *limits);
// Whether one is an NVIDIA GPU that can be limited: its driver wants CAP_SYS_ADMIN of who does.
bool limits_need_admin(const struct cap_devices *devices);
const struct cap_devices *limits_devices(const struct limits *limits);
// Whether one of them may be limited under these rights.
bool limits_may_any(const struct limits *limits, const struct policy *policy, struct policy_rights rights);
// PROTO_DEVICE to PROTO_RESET. 0 or negative errno, then the reply's outcome.text says why.
int limits_serve(struct limits *limits, const struct policy *policy, const struct asker *asker,
	const struct proto_request *request, struct proto_reply *reply);
