/* What wattle and wattled say to each other over a Unix stream socket: fixed-size messages, a request, then its reply.
 *
 * Clients send numbers out of the helper's own tables, never a path. Integers are of the machine's order (it is one
 * machine); reserved bytes are 0. Whatever is malformed (magic, size, type, reserved bytes) ends the connection. The helper
 * knows who asks from the socket (SO_PEERCRED), not from the message. */
#pragma once

#include <assert.h>
#include <stdint.h>

#define PROTO_SOCKET_DEFAULT "/run/wattle/wattled.sock"
#define PROTO_MAGIC UINT32_C(0x314c5457) // "WTL1"

enum { PROTO_COUNTERS_MAX = 16, PROTO_NAME_SIZE = 64, PROTO_TEXT_SIZE = 240 };

enum proto_type {          // on the wire as u16
	PROTO_HELLO = 1,   // -> proto_hello: what this client may do
	PROTO_COUNTER = 2, // number -> proto_counter: one row of the table of counters; -ENOENT beyond its end
	PROTO_READ = 3,    // number: the first of up to PROTO_COUNTERS_MAX counters, count -> proto_readings
	PROTO_DEVICE = 4,  // number -> proto_device: one row of the table of devices that can be limited
	PROTO_SET = 5,     // number, value, mode, for_s -> proto_outcome
	PROTO_CHECK = 6,   // number -> proto_outcome: is the client's lease as it was set?
	PROTO_END = 7,     // number -> proto_outcome: the client's lease is over, the limit restored
	PROTO_KEEP = 8,    // number -> proto_outcome: the client's lease becomes a limit that stays
	PROTO_RESET = 9,   // number, mode 1: to the default -> proto_outcome
};

enum proto_mode {           // of PROTO_SET; u16
	PROTO_LEASE = 1,    // until PROTO_END or the client's death (its pidfd), whatever becomes of the connection
	PROTO_STANDING = 2, // stays; for_s > 0: so many seconds
};

struct proto_request {
	uint32_t magic;
	uint16_t type;
	uint16_t mode;
	uint32_t number; // row of the table that the type speaks of
	uint32_t count;
	int64_t value; // mW, MHz
	uint32_t for_s;
	uint8_t reserved[12];
	char name[24]; // what the owner of a lease is called ("wattle cap set"); NUL-terminated, printable
};
static_assert(sizeof(struct proto_request) == 64, "a request on the wire");

struct proto_hello {
	uint32_t n_counters, n_devices;
	uint32_t may_read, may_cap; // 0 or 1
	uint32_t read_period_us;    // a counter is read so often for this client, at most
	uint32_t pid;               // of the helper
};
struct proto_counter {
	char name[PROTO_NAME_SIZE]; // "intel-rapl:0:1", as the zone's folder is called; "amd_energy/energy17_input"
};
struct proto_reading {
	int64_t energy_uj; // the raw counter; VALUE_MISSING (INT64_MIN) where it can't be read
	int64_t t_ns;      // CLOCK_MONOTONIC of that reading: an earlier one, where the client asks too often
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
	uint32_t may_set;              // this client
	int64_t least, most;           // of what this client may ask for: mW, MHz
	uint32_t lease_pid, lease_uid; // 0: none
	char lease_name[64];
};
struct proto_outcome {
	int64_t previous, set, foreign; // mW, MHz; INT64_MIN unknown
	uint32_t was_foreign, was_rounded;
	char text[PROTO_TEXT_SIZE]; // what cap_outcome has to tell
};

struct proto_reply {
	uint32_t magic;
	uint16_t type; // of the request
	uint16_t reserved;
	int32_t code; // 0 or negative errno; then `outcome.text` says why
	uint32_t reserved2;
	union {
		struct proto_hello hello;
		struct proto_counter counter;
		struct proto_readings readings;
		struct proto_device device;
		struct proto_outcome outcome;
		uint8_t room[304];
	};
};
static_assert(sizeof(struct proto_reply) == 320, "a reply on the wire");
