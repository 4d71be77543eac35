/* Interface between a program and the recorder: one ring of records per thread, in memory mapped by both.
 *
 * The program creates the ring: a memfd of ring_bytes(n_records), sealed against resizing, mapped, and sent with a
 * struct ring_hello to the recorder's socket (address in WATTLE_RING), without waiting for a reply. Then the thread
 * writes and the recorder reads, without calls or waiting. After the program's death the recorder still has the memory
 * with everything written before.
 *
 * The same records in blocks form a span file (WATTLE_SPANS): see reader/reader.h.
 *
 * One writer (the thread), one reader. `head` and `tail` only grow; record i is at i % n_records. The writer stores
 * records, then head with release; the reader loads head with acquire, copies, and stores tail with release. The reader
 * trusts nothing here: the program may be faulty or malicious. */
#pragma once

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RING_MAGIC = 0x52544157,       // "WATR"
	RING_VERSION = 1,              // version of everything in this file
	RING_RECORDS_DEFAULT = 131072, // 2 MiB: half a second of 131,072 spans/s
	RING_RECORDS_MIN = 1024,
	RING_RECORDS_MAX = 1 << 22,
	RING_HEADER_BYTES = 4096,

	SPAN_NAME_SLOTS = 1024,     // names that a ring holds at a time; slots may be redefined
	SPAN_NAME_BYTES_MAX = 1023, // longer ones are truncated
	SPAN_DEPTH_MAX = 1024,      // maximum depth of open spans per thread
};

enum ring_flag {
	RING_CPU_TIME = 1, // requested by the recorder: begin and end of nested spans include the thread's CPU time
};

struct ring_header {
	uint32_t magic, version;
	uint32_t n_records; // a power of two
	uint32_t flags;     // enum ring_flag
	int32_t pid, tid;   // of the first thread that writes here, in its own pid namespace
	uint32_t image;     // same value for all rings of one program image; changes after exec
	uint32_t reserved;
	alignas(64) _Atomic uint64_t head; // number of records written
	_Atomic uint64_t lost;             // number of spans, ranges, marks and metrics without room
	_Atomic uint64_t unwound;          // number of spans without their own end
	alignas(64) _Atomic uint64_t tail; // number of records read
};
static_assert(sizeof(struct ring_header) <= RING_HEADER_BYTES, "the records begin on a new page");

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
	uint64_t token; // from the address: known only to processes that received it
};
static_assert(sizeof(struct ring_hello) == 32, "no padding in the message");

enum record_kind { // stored as uint8_t
	RECORD_PAD,         // no content; fills the rest of a block of a file
	RECORD_NAME,        // slot, n: length of the name in bytes; the bytes follow in (n + 15) / 16 records
	RECORD_BEGIN,       // t_ns, slot: a nested span begins
	RECORD_END,         // t_ns, n: number of open spans that end here, innermost first; all but the last were
	                    // unwound. slot: number of innermost open spans to skip, which continue (NVTX domains that
	                    // interleave)
	RECORD_RANGE_BEGIN, // t_ns, slot; the range's number follows in a struct record_extra
	RECORD_RANGE_END,   // t_ns; the range's number follows
	RECORD_METRIC,      // t_ns, slot; the value (double) follows
	RECORD_MARK,        // t_ns, slot
	RECORD_THREAD,      // n: tid of the thread that writes from here on (it took over the ring of an ended thread)
	RECORD_THREAD_END,  // t_ns: the thread has ended and its open spans end here
	RECORD_KINDS
};

enum record_flag { // each adds a struct record_extra after the record and the kind's own extras, in this order
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
static_assert(sizeof(struct record_extra) == sizeof(struct span_record), "an extra record has the size of a record");

// Number of records of an event, including itself; 0: unknown kind or invalid length.
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

/* The address in WATTLE_RING: "VERSION:FLAGS:N_RECORDS:TOKEN:@NAME" (the token as 16 hex digits), an abstract socket of
 * type SOCK_SEQPACKET. Abstract, so that no file is left behind and it works after chroot and setuid; the recorder
 * checks who connects. Everybody can read the name in /proc/net/unix. The token shows that a process which ended before
 * the recorder could look it up (a short-lived forked child) had the address from its parents. */
struct ring_address {
	uint32_t flags, n_records;
	uint64_t token;
	char name[64]; // without the @
};
enum { RING_ADDRESS_TEXT = 128 };
// -ERANGE: does not fit.
int ring_address_format(const struct ring_address *address, char *out, size_t size);
// -EINVAL: malformed, or of another version. Async-signal-safe.
int ring_address_parse(const char *text, struct ring_address *ret_address);
