/* Requests of clients and their replies. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "base/util.h"
#include "cap/device.h"
#include "cap/lease.h"
#include "helper/helper.h"
#include "helper/policy.h"
#include "proto/protocol.h"

#include <stddef.h>
#include <stdint.h>

/* Energy counters that only root may read. They are kept open, and clients refer to them by number: powercap zones and
 * the package counters of amd_energy. */

enum { COUNTERS_MAX = 256 };

struct counter {
	char name[PROTO_NAME_SIZE];
	struct file_kept file;
};

struct counters {
	struct counter rows[COUNTERS_MAX];
	size_t n;
};

struct counter_state {
	struct proto_reading last; // t_ns VALUE_MISSING: no reading yet
	int64_t due_ns;            // time from which the next reading is allowed
};

/* A class of readers with the same period, and the latest readings sent to it. Fast power readings can reveal secret
 * keys of other users, so a reading for clients with a period of 1 ms must not reach those with 100 ms. */
struct counter_class {
	int64_t period_ns;
	struct counter_state *reported; // owned; one per counter
};

// Having no counters is normal. -ENOMEM only; *ret_counters is valid in any case.
int counters_open(struct counters *ret_counters, const struct wattle_env *env);
void counters_close(struct counters *counters);

int counter_class_init(struct counter_class *class, int64_t period_ns, const struct counters *counters);
void counter_class_finish(struct counter_class *class);

// Reads the counter, or returns the last reading if that is younger than the class's period.
struct proto_reading counters_read(struct counters *counters, struct counter_class *class, size_t number,
	int64_t now_ns);

/* Limits held by clients. A lease belongs to a process, identified by its pidfd, and ends with it, independent of
 * connections. wattled itself holds the lock and writes the device (cap/lease.h); its guard restores if wattled dies. */

struct limits;
struct client_identity;

// Finds the devices. Having none is normal.
int limits_open(const struct wattle_env *env, struct limits **ret_limits, struct wattle_error *reterr);
// Restores the clients' limits, then frees.
void limits_close(struct limits *limits);

// Readable when a process with a lease has ended: then call limits_turn.
int limits_fd(const struct limits *limits);
void limits_turn(struct limits *limits);
// Call about once a second: ends timed limits.
void limits_sweep(struct limits *limits, int64_t now_ns);

size_t limits_count(const struct limits *limits);
// Whether one is an NVIDIA GPU with a limit: its driver requires CAP_SYS_ADMIN for setting it.
bool limits_need_admin(const struct cap_devices *devices);
const struct cap_devices *limits_devices(const struct limits *limits);
// Whether these rights allow limiting any of the devices.
bool limits_may_any(const struct limits *limits, const struct policy *policy, struct policy_rights rights);
// Handles PROTO_DEVICE to PROTO_RESET. 0 or negative errno with the reason in the reply's outcome.text.
int limits_serve(struct limits *limits, const struct client_identity *identity, const struct proto_request *request,
	struct proto_reply *reply);

/* The server: an epoll loop with a fixed number of client slots (`place`: index of a slot). A slot has room for one
 * request and one reply; no input causes an allocation. A single thread answers all requests, except those about limits
 * if there is a worker (below).
 *
 * A turn of the loop serves at most one request per client, which bounds the delay by a fast client. A client is
 * dropped if it does not read its reply, stops within a request, or is idle for long: limits do not depend on the
 * connection. */

enum { SERVER_CLIENTS_MAX = 512 };

struct server;

struct server_parts { // all borrowed
	const struct wattle_env *env;
	const struct policy *policy; // at start; copied
	struct counters *counters;
	struct limits *limits;
};

struct server_sockets { // all borrowed; -1: none
	int listen_fd; // listening stream socket, non-blocking
	int stop_fd;   // readable when the server is to stop
	int guard_fd;  // writable pipe; if its reader is gone, the server must stop as well
	int policy_fd; // socket to the process that reads the policy (policy_reader_start)
};
int server_open(const struct server_parts *parts, const struct server_sockets *sockets, struct server **ret_server,
	struct wattle_error *reterr);
// Without a worker the server's thread also handles limits. Call after sandbox_enter.
int server_start_worker(struct server *server);
// Closes all connections. Limits are unaffected.
void server_close(struct server *server);
// Adds an existing connection and takes ownership in any case. -EBUSY: all slots are taken, or too many by this user.
int server_adopt(struct server *server, int fd);
/* Waits at most timeout_ms (-1: no limit by the caller) and handles events. 0; 1: must stop; negative errno: the loop
 * failed. */
int server_turn(struct server *server, int timeout_ms);
/* Requests the policy anew. It is valid for all later requests, also of present clients. A request that waits for the worker is
 * handled by the policy under which it came. Limits that are held stay. If the new policy is invalid the old one stays valid; the
 * log has the result. */
void server_reload(struct server *server);
size_t server_clients(const struct server *server);

/* Handles one request: checks the required right and fills in the reply. Independent of connections. */

struct client_identity {
	int fd; // the connection, for a pidfd of the client process
	struct peer peer;
	const struct policy *policy; // in the server
	struct policy_rights rights; // by that policy
};

struct request_context { // all borrowed
	const struct server_parts *parts;
	struct counter_class *classes; // one per period of the current policy
};

// False: malformed; the connection must be closed.
bool request_is_sound(const struct proto_request *request);
// Fills in all of *ret_reply.
void request_serve(const struct request_context *context, const struct client_identity *identity,
	const struct proto_request *request, struct proto_reply *ret_reply);

/* Shared by the two files for limits: the table of devices, the limits held by clients, and a request in progress. */

// Limit held on the device with the same index.
struct held {
	struct cap_lease *lease; // NULL: none
	struct cap_owner owner;
	int pidfd;        // owned; -1: a timed limit, which outlives the process that set it
	int64_t until_ns; // VALUE_MISSING: until the owner ends
};

/* Rate limit: each change is written to disk and passed to a driver, so the number per second is limited for all
 * clients together. */
struct pace {
	int64_t free_ns; // time when all changes so far would be done at the allowed rate
};

/* Constant values of a device, read at start. The rest belongs to the worker, which wakes GPUs while another thread
 * answers hello requests. */
struct known {
	char name[48], id[CAP_ID_SIZE];
	enum policy_kind kind;
	bool can_be_set;
};

enum { REPORTED_MAX = 32 };
struct reported_messages { // hashes of the messages of one check of the journal
	uint64_t hashes[REPORTED_MAX];
	size_t n;
};

struct limits {
	const struct wattle_env *env; // borrowed
	struct cap_devices devices;
	struct held *held;             // owned; one per device
	struct pace *paces;            // owned; one per device
	struct known *known;           // owned; one per device
	int epoll_fd;                  // owned; waits for the pidfds
	int64_t recover_ns;            // time of the next check of the journal
	struct reported_messages reported, reported_before; // of the last check and the one before
	struct log_shares log;
};

// A request about one device.
struct question {
	struct limits *limits;
	const struct client_identity *identity;
	const struct proto_request *request;
	struct cap_device *device;
	struct held *held;
	bool may;           // the client may limit this device by the current policy
	double least, most; // range allowed for the client, W or MHz; NaN: unknown
};

static inline double limit_scale(const struct cap_device *device) // units are mW and MHz in the protocol, W and MHz in cap
{
	return device->what == CAP_POWER ? 1e3 : 1;
}

static inline int64_t limit_to_wire(const struct cap_device *device, double value)
{
	double scaled = value * limit_scale(device);
	return isfinite(scaled) && fabs(scaled) < 1e15 ? llround(scaled) : VALUE_MISSING;
}

static inline double limit_from_wire(const struct cap_device *device, int64_t value)
{
	return (double)value / limit_scale(device);
}

/* Implemented in limit_changes.c. */
void held_remove(struct held *held);             // call after the end of the lease
bool is_holder(const struct question *question); // the client's process holds the limit of this device
// Handles PROTO_SET to PROTO_RESET for clients that may limit the device. 0 or negative errno with a message.
int limit_change(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr);

/* Worker thread that changes limits, one request after the other. Drivers and disks are slow, some GPUs take hundreds
 * of milliseconds, and the server's own thread must answer counter readings meanwhile.
 *
 * A request is identified by its client's slot (`place`). Between worker_give and the worker_take that returns it, the
 * slot belongs to the thread, and so do the limits from start to stop. */

struct worker;

typedef void (*worker_serve_fn)(void *data, uint32_t index);

/* Start after sandbox_enter, which applies to threads created later. Everything is borrowed; `n_slots`: maximum number
 * of requests at a time. */
int worker_start(struct limits *limits, const struct wattle_env *env, size_t n_slots, worker_serve_fn serve, void *data,
	struct worker **ret_worker);
// Waits for the present request; queued ones are not answered. NULL allowed.
void worker_stop(struct worker *worker);

int worker_fd(const struct worker *worker); // readable when worker_take has a result
void worker_give(struct worker *worker, uint32_t index);
bool worker_take(struct worker *worker, uint32_t *ret_place);
