/* What a program and the recorder share: one ring of records for each thread, in memory that both have mapped.
 *
 * The program makes the ring: a memfd of ring_bytes(n_records), sealed against shrinking and growing, mapped, and sent with a
 * struct ring_hello to the recorder's socket (the address is in WATTLE_RING); it waits for no answer. From then on the thread
 * writes and the recorder reads; no call is made, nobody waits. After the program's death the memory still stands at the
 * recorder's, with all that was written before.
 *
 * The same records in blocks make a span file (WATTLE_SPANS): reader/reader.h.
 *
 * One writer (the thread), one reader. `head` and `tail` only grow; record i lies at i % n_records. The writer stores records,
 * then head with release; the reader loads head with acquire, copies, and stores tail with release. Nothing here is to be
 * trusted by the reader: the program may be broken or hostile. */
#pragma once

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RING_MAGIC = 0x52544157,       // "WATR"
	RING_VERSION = 1,              // of everything in this file
	RING_RECORDS_DEFAULT = 131072, // 2 MiB: half a second of 131,072 spans/s
	RING_RECORDS_LEAST = 1024,
	RING_RECORDS_MOST = 1 << 22,
	RING_HEADER_BYTES = 4096,

	SPAN_NAME_SLOTS = 1024,     // names that a ring knows at a time; a slot may be defined again
	SPAN_NAME_BYTES_MAX = 1023, // longer ones are cut
	SPAN_DEPTH_MAX = 1024,      // spans open in one thread
};

enum ring_flag {
	RING_CPU_TIME = 1, // asked by the recorder: begin and end of nested spans tell the thread's CPU time
};

struct ring_header {
	uint32_t magic, version;
	uint32_t n_records; // a power of two
	uint32_t flags;     // enum ring_flag
	int32_t pid, tid;   // of the first thread that writes here, as its own pid namespace has them
	uint32_t image;     // the same for all rings of one program image, another after exec
	uint32_t reserved;
	alignas(64) _Atomic uint64_t head; // records ever written
	_Atomic uint64_t lost;             // spans, ranges, marks and metrics that found no room
	_Atomic uint64_t unwound;          // spans that were left without an end of their own
	alignas(64) _Atomic uint64_t tail; // records ever read
};
static_assert(sizeof(struct ring_header) <= RING_HEADER_BYTES, "the records begin on a page of their own");

static inline size_t ring_bytes(uint32_t n_records)
{
	return RING_HEADER_BYTES + (size_t)n_records * 16;
}

// Sent with the memfd in one SOCK_SEQPACKET message.
struct ring_hello {
	uint32_t magic, version;
	uint32_t n_records;
	uint32_t image;
	int32_t pid, tid;
	uint64_t token; // of the address: what only those know who were given it
};
static_assert(sizeof(struct ring_hello) == 32, "one message, without holes");

enum record_kind { // on the wire as uint8_t
	RECORD_PAD,         // nothing; the rest of a block of a file
	RECORD_NAME,        // slot, n: bytes of the name; the bytes follow in (n + 15) / 16 records
	RECORD_BEGIN,       // t_ns, slot: a nested span begins
	RECORD_END,         // t_ns, n: how many open spans end here, the innermost first; all but the last were unwound.
			    // slot: so many of the innermost open spans are passed over and go on (NVTX domains that cross)
	RECORD_RANGE_BEGIN, // t_ns, slot; the range's number follows in a struct record_extra
	RECORD_RANGE_END,   // t_ns; the range's number follows
	RECORD_METRIC,      // t_ns, slot; the value (double) follows
	RECORD_MARK,        // t_ns, slot
	RECORD_THREAD,      // n: tid of the thread that writes from here on (the ring was left by one that has ended)
	RECORD_THREAD_END,  // t_ns: the thread has ended, its open spans end here
	RECORD_KINDS
};

enum record_flag { // each adds a struct record_extra after the record, in this order, after the kind's own
	RECORD_HAS_CPU = 1,      // BEGIN, END: CPU time of the thread, ns
	RECORD_HAS_CATEGORY = 2, // BEGIN, RANGE_BEGIN, MARK: slot of the category's name
};

struct span_record {
	int64_t t_ns; // CLOCK_MONOTONIC
	uint8_t kind, flags;
	uint16_t slot;
	uint32_t n;
};
static_assert(sizeof(struct span_record) == 16, "records are 16 bytes in shared memory and in files");

struct record_extra {
	union {
		uint64_t number;
		double value;
	};
	uint64_t reserved;
};
static_assert(sizeof(struct record_extra) == sizeof(struct span_record), "an extra takes the room of a record");

// How many records an event takes, itself included; 0: a kind or a length that there is not.
static inline uint32_t span_record_count(const struct span_record *record)
{
	switch ((enum record_kind)record->kind) {
	case RECORD_NAME:
		return record->n <= SPAN_NAME_BYTES_MAX ? 1 + (record->n + 15) / 16 : 0;
	case RECORD_RANGE_BEGIN:
	case RECORD_RANGE_END:
	case RECORD_METRIC:
		return 2 + (uint32_t)((record->flags & RECORD_HAS_CATEGORY) != 0);
	case RECORD_BEGIN:
	case RECORD_END:
	case RECORD_MARK:
		return 1 + (uint32_t)((record->flags & RECORD_HAS_CPU) != 0) +
			(uint32_t)((record->flags & RECORD_HAS_CATEGORY) != 0);
	case RECORD_PAD:
	case RECORD_THREAD:
	case RECORD_THREAD_END:
		return 1;
	case RECORD_KINDS:
		break;
	}
	return 0;
}

/* The address in WATTLE_RING: "VERSION:FLAGS:N_RECORDS:TOKEN:@NAME" (the token as 16 hex digits), an abstract socket of type
 * SOCK_SEQPACKET. Abstract, so that nothing is left behind, and found also after chroot and setuid; who knocks is checked by
 * the recorder. Everybody can read the name in /proc/net/unix; the token shows that a process which is gone before it could
 * be looked at (a forked child of a millisecond) had the address from its parents. */
struct ring_address {
	uint32_t flags, n_records;
	uint64_t token;
	char name[64]; // without the @
};
enum { RING_ADDRESS_TEXT = 128 };
// -ERANGE: does not fit.
int ring_address_format(const struct ring_address *address, char *out, size_t size);
// -EINVAL: not ours, or of another version. Async-signal-safe.
int ring_address_parse(const char *text, struct ring_address *ret_address);
