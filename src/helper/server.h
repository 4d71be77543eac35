/* What clients ask for, and how it is answered. */
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

/* The counters of energy that only root may read, kept open and known to clients by number: powercap's zones and the
 * package counters of amd_energy. */

enum { COUNTERS_MAX = 256 };

struct counter {
	char name[PROTO_NAME_SIZE];
	struct file_kept file;
};

struct counters {
	struct counter rows[COUNTERS_MAX];
	size_t n;
};

struct counter_told {
	struct proto_reading last; // t_ns VALUE_MISSING: none yet
	int64_t due_ns;            // when the next one may be made
};

/* A class of readers, those with one period: what they were told last. Fast reading power tells others' secret keys, so
 * a reading for those who may read every millisecond must not reach those who may every 100 ms. */
struct counter_class {
	int64_t period_ns;
	struct counter_told *told; // owned; one a counter
};

// A machine without any is normal. -ENOMEM only; *ret_counters is valid in any case.
int counters_open(struct counters *ret_counters, const struct wattle_env *env);
void counters_close(struct counters *counters);

int counter_class_init(struct counter_class *class, int64_t period_ns, const struct counters *counters);
void counter_class_finish(struct counter_class *class);

// The counter as it is now, or as it was less than the class's period ago.
struct proto_reading counters_read(struct counters *counters, struct counter_class *class, size_t number,
	int64_t now_ns);

/* The limits that clients hold. A lease belongs to a process, known by its pidfd: it ends when that ends, whatever
 * becomes of its connections. wattled itself holds the lock and writes the device (cap/lease.h); its guard restores
 * if it dies. */

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

/* The server: epoll, places that are made once. A client has a place with room for one request and one reply; nothing
 * it sends makes anything grow. Its one thread answers all; but for questions about limits, once it has a worker
 * (below).
 *
 * A turn of the loop serves at most one request of each client, so a fast one slows nobody down by more than that.
 * Who does not read its reply, or stops in the middle of a request, is dropped; so is who is idle for long: a limit
 * does not hang on the connection. */

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

/* One request into its reply: which right it needs, what it is answered. Knows no connections. */

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

/* What the two files of limits share: the table of devices, what clients hold of them, and a question on its way. */

// What a client holds of the device of the same number.
struct held {
	struct cap_lease *lease; // NULL: nothing
	struct cap_owner owner;
	int pidfd;        // owned; -1: a limit for a time, which outlives who asked for it
	int64_t until_ns; // VALUE_MISSING: as long as the owner lives
};

/* Each change is written to disk and asks a driver, so there are only so many a second, whoever wants them. */
struct pace {
	int64_t free_ns; // when all changes so far would have been made at that rate
};

/* What does not change of a device, as it was at start: the rest is the worker's, which wakes GPUs while
 * another thread answers who says hello. */
struct known {
	char name[48], id[CAP_ID_SIZE];
	enum policy_kind kind;
	bool can_be_set;
};

enum { TOLD_MAX = 32 };
struct told { // sentences of one look at the journal
	uint64_t hashes[TOLD_MAX];
	size_t n;
};

struct limits {
	const struct wattle_env *env; // borrowed
	struct cap_devices devices;
	struct held *held;             // owned; as many as devices
	struct pace *paces;            // owned; likewise
	struct known *known;           // owned; likewise
	int epoll_fd;                  // owned; the pidfds
	int64_t recover_ns;            // when the journal is looked at next
	struct told told, told_before; // of the last look and the one before
	struct log_shares log;
};

// One question about one device, on its way through the functions below.
struct question {
	struct limits *limits;
	const struct asker *asker;
	const struct proto_request *request;
	struct cap_device *device;
	struct held *held;
	bool may;           // limit this device
	double least, most; // of what the asker may ask for, W or MHz; NaN: not known
};

static inline double limit_scale(const struct cap_device *device) // mW and MHz on the wire, W and MHz in caps
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

/* limit_changes.c */
void held_forget(struct held *held); // after the end of its lease
// PROTO_SET to PROTO_RESET, of who may limit the device. 0 or negative errno with a sentence.
int limit_change(const struct question *question, struct cap_outcome *ret_outcome, struct wattle_error *reterr);

/* A thread that changes limits, one question after the other. Drivers and disks take their time for that, some GPUs
 * hundreds of milliseconds, and readings of counters, which the server's own thread answers, must not wait for it.
 *
 * A question is known by its client's place. Between worker_give and the worker_take that hands it back the place is
 * the thread's; and so are, from start to stop, the limits. */

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
