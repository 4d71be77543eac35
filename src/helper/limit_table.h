/* What the two files of limits share: the table of devices, what clients hold of them, and a question on its way. */
#pragma once

#include "base/util.h"
#include "cap/lease.h"
#include "helper/limits.h"
#include "helper/log.h"
#include "helper/request.h"

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

/* What does not change of a device, as it was at start: the rest is the worker's (worker.h), which wakes GPUs while
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
