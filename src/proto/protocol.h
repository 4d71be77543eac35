/* Protocol between wattle and wattled on a Unix stream socket: fixed-size messages, a request followed by its reply.
 *
 * Clients send indices into the helper's own tables, never a path. Integers have the machine's byte order, because both run
 * on one machine; reserved bytes are 0. A malformed message (magic, size, type, reserved bytes) closes the connection. The
 * helper identifies the client by the socket (SO_PEERCRED), not by the message. */
#pragma once

#include <assert.h>
#include <stdint.h>

#define PROTO_SOCKET_DEFAULT "/run/wattle/wattled.sock"
#define PROTO_MAGIC UINT32_C(0x314c5457) // "WTL1"

enum { PROTO_COUNTERS_MAX = 16, PROTO_NAME_SIZE = 64, PROTO_TEXT_SIZE = 240 };

enum proto_type {          // on the wire as u16
	PROTO_HELLO = 1,   // -> proto_hello: permissions of this client
	PROTO_COUNTER = 2, // number -> proto_counter: one row of the counter table; -ENOENT beyond its end
	PROTO_READ = 3,    // number: the first of up to PROTO_COUNTERS_MAX counters, count -> proto_readings
	PROTO_DEVICE = 4,  // number -> proto_device: one row of the table of devices with limits
	PROTO_SET = 5,     // number, value, mode, for_s -> proto_outcome
	PROTO_CHECK = 6,   // number -> proto_outcome: is the limit still the one that the client's lease set?
	PROTO_END = 7,     // number -> proto_outcome: ends the client's lease and restores the limit
	PROTO_KEEP = 8,    // number -> proto_outcome: makes the limit of the client's lease permanent
	PROTO_RESET = 9,   // number, mode 1: to the default -> proto_outcome
};

enum proto_mode {             // for PROTO_SET; u16
	PROTO_LEASE = 1,      // until PROTO_END or the client's death (its pidfd), whatever happens to the connection
	PROTO_PERSISTENT = 2, // permanent; for_s > 0: for that many seconds
};

struct proto_request {
	uint32_t magic;
	uint16_t type;
	uint16_t mode;
	uint32_t number; // row of the table that belongs to the type
	uint32_t count;
	int64_t value; // mW, MHz
	uint32_t for_s;
	uint8_t reserved[12];
	char name[24]; // name of the lease's owner ("wattle cap set"); NUL-terminated, printable
};
static_assert(sizeof(struct proto_request) == 64, "size of a request on the wire");

struct proto_hello {
	uint32_t n_counters, n_devices;
	uint32_t may_read, may_cap; // 0 or 1
	uint32_t read_period_us;    // minimum time between two reads of a counter for this client
	uint32_t pid;               // of the helper
};
struct proto_counter {
	char name[PROTO_NAME_SIZE]; // "intel-rapl:0:1", the name of the zone's folder; "amd_energy/energy17_input"
};
struct proto_reading {
	int64_t energy_uj; // raw counter; VALUE_MISSING (INT64_MIN) if it can't be read
	int64_t t_ns;      // CLOCK_MONOTONIC of that reading; an earlier one if the client asks too often
};
struct proto_readings {
	uint32_t count;
	uint32_t reserved;
	struct proto_reading readings[PROTO_COUNTERS_MAX];
};
struct proto_device {
	char name[48]; // "gpu-0"
	char id[96];
	uint32_t what;                 // 0 power, 1 clocks
	uint32_t may_set;              // whether this client may set limits
	int64_t least, most;           // limits that this client may request: mW, MHz
	uint32_t lease_pid, lease_uid; // 0: none
	char lease_name[64];
};
struct proto_outcome {
	int64_t previous, set, foreign; // mW, MHz; INT64_MIN: unknown
	uint32_t was_foreign, was_rounded;
	char text[PROTO_TEXT_SIZE]; // message of cap_outcome
};

struct proto_reply {
	uint32_t magic;
	uint16_t type; // of the request
	uint16_t reserved;
	int32_t code; // 0 or negative errno; then `outcome.text` has the reason
	uint32_t reserved2;
	union {
		struct proto_hello hello;
		struct proto_counter counter;
		struct proto_readings readings;
		struct proto_device device;
		struct proto_outcome outcome;
		uint8_t buffer[304];
	};
};
static_assert(sizeof(struct proto_reply) == 320, "size of a reply on the wire");
