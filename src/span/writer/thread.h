/* Per-thread state for writing spans: its ring or block, the names defined there, and the open spans.
 *
 * One pointer in initial-exec TLS points to the state, which is in separate memory that is never freed: when the thread
 * ends, the next new thread takes over the state and its ring, so short-lived threads need only as many rings as run at
 * once. In a forked child the kernel wipes the state to zeros and does not map the ring, so a child can't write to its
 * parent's ring, whichever way it was forked.
 *
 * Only the thread itself and its signal handlers use the state. A call marks it as taken by `busy`. A handler that
 * interrupts a call drops its events and adds their effect on the depth to `owed`. Calls left by siglongjmp never
 * return: the single store to `cursor` completes an event, and all other state is derived from it. */
#pragma once

#include "span/ring.h"
#include "span/span_file_format.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* Names defined in a ring. The program passes pointers; a slot is found by the pointer and always verified against our
 * copy of the text, because a name may be in a buffer on the stack, and another library may reuse the addresses of an
 * unloaded one. The number of different names is not bounded: slots and texts are reused. */

enum {
	SPAN_NAME_WAYS = 4, // number of slots where a pointer may be stored: one cache line
	SPAN_NAME_TEXT_BYTES = 65536,
	SPAN_NO_SLOT = SPAN_NAME_SLOTS,
};

struct span_name {
	const char *key; // NULL: the slot is free, or its definition is not written yet
	uint32_t at;
	uint16_t length, room; // length of the text; room for it in bytes
};

struct span_names {
	alignas(64) struct span_name slots[SPAN_NAME_SLOTS];
	uint32_t used, turn;
	char text[SPAN_NAME_TEXT_BYTES];
};

static inline uint32_t span_name_hash(const char *name)
{
	return (uint32_t)(((uint64_t)(uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15)) >> 54);
}
static_assert(SPAN_NAME_SLOTS == 1 << (64 - 54), "the hash is a slot number");

// Compares short names, the common case, byte by byte: a call of strcmp costs as much as the rest of a begin.
static inline bool span_name_is(const struct span_names *names, const struct span_name *slot, const char *name)
{
	const char *text = &names->text[slot->at];
	if (slot->length >= 16)
		return slot->length < SPAN_NAME_BYTES_MAX ? strcmp(text, name) == 0
							  : strncmp(text, name, SPAN_NAME_BYTES_MAX) == 0;
	size_t i = 0;
	while (text[i] == name[i] && text[i] != '\0')
		i++;
	return text[i] == name[i];
}

// SPAN_NO_SLOT: the name must be defined first.
static inline uint32_t span_name_find(const struct span_names *names, const char *name)
{
	uint32_t hash = span_name_hash(name);
	for (uint32_t way = 0; way < SPAN_NAME_WAYS; way++) {
		const struct span_name *slot = &names->slots[hash ^ way];
		if (slot->key == name && span_name_is(names, slot, name))
			return hash ^ way;
	}
	return SPAN_NO_SLOT;
}

void span_names_clear(struct span_names *names);
/* Takes a slot other than `keep` and copies the text. The slot can be found only after span_name_confirm, when its
 * definition has been written; a call left in between (siglongjmp) only costs a free slot. */
uint32_t span_name_take(struct span_names *names, const char *name, size_t length, uint32_t keep);
static inline void span_name_confirm(struct span_names *names, uint32_t slot, const char *name)
{
	names->slots[slot].key = name;
}

#define span_likely(condition) __builtin_expect(!!(condition), 1)
#define span_unlikely(condition) __builtin_expect(!!(condition), 0)

// For calls of a few nanoseconds without arrays on the stack.
#define SPAN_HOT __attribute__((hot, no_stack_protector))

enum {
	SPAN_RANGE_RESERVE = 2 * 64, // reserved for ends of ranges, which may come in any thread
	SPAN_RETRY_NS = 10 * 1000 * 1000,
};

enum sink_kind { SINK_NONE, SINK_RING, SINK_BLOCK };

struct span_sink { // destination of the records
	enum sink_kind kind;
	bool is_announced; // the ring or block names this thread as the writer
	void *map;
	size_t map_bytes;
	_Atomic uint64_t *tail;    // of the ring
	uint64_t backed;           // populated records of the ring
	int64_t retry_ns;          // without a ring: earliest time of the next attempt
	uint64_t stream, sequence; // of the next block
	struct {
		uint64_t index; // of a block that was claimed but not reserved; 0: none
		uint64_t device, inode;
	} pending;
};

struct span_thread {
	// Members used by each call.
	alignas(64) int session; // value of span_writer_state at setup
	bool with_cpu_time;
	uint8_t end_records;     // records per end
	_Atomic uintptr_t busy;  // stack frame of the call in progress; 0: none
	_Atomic uint64_t cursor; // upper half: low half of head; lower half: depth
	uint64_t head;           // records written to this ring or block
	uint64_t limit;          // head may grow up to here
	uint64_t mask;
	struct span_record *records;
	_Atomic uint64_t *shared_head;
	int64_t latest_ns; // of all records: a signal handler may write between a call's clock read and its record
	_Atomic int32_t owed;
	uint32_t excess; // open spans above SPAN_DEPTH_MAX

	alignas(64) _Atomic uint64_t *lost;
	_Atomic uint64_t *unwound;
	_Atomic uint64_t nowhere[3]; // head, lost, unwound while there is no ring
	struct span_sink sink;
	_Atomic uint64_t n_ranges; // number of ranges begun
	uint32_t number;           // of this state in this process, from 1
	int32_t tid;
	struct {
		uint64_t cursor;
		int64_t since_ns;
	} refused; // the call found in progress repeatedly

	_Atomic int is_taken;
	_Atomic bool is_unwatched; // no destructor will report the end of the thread
	uint8_t end_rounds;        // number of destructor rounds so far
	struct span_thread *next;

	uint8_t dropped[SPAN_DEPTH_MAX]; // the begin at this depth was not written
	struct span_names names;
	char path[PATH_MAX];
};

extern __thread struct span_thread *span_thread_self __attribute__((tls_model("initial-exec")));

void span_threads_init(void);
// State of this thread in the present session, created if necessary. NULL: recording is off, or out of memory.
struct span_thread *span_thread_set_up(void);
// Gets room for `need` more records, from the recorder's progress or in a new block.
bool span_thread_make_room(struct span_thread *thread, uint32_t need);
// For a state that is taken: false: by a call further up on the stack; true: by a call that will never return.
bool span_thread_is_abandoned(struct span_thread *thread, uintptr_t frame);
// After span_thread_is_abandoned: keeps the completed event and discards the rest.
void span_thread_repair(struct span_thread *thread);
// Whether a state with this number was created in this process, not in its parent.
bool span_threads_had(uint64_t number);

static inline struct span_thread *span_thread_get(int session)
{
	struct span_thread *thread = span_thread_self;
	if (span_likely(thread != NULL && thread->session == session))
		return thread;
	return span_thread_set_up();
}

static inline void span_thread_mark_busy(struct span_thread *thread, uintptr_t frame)
{
	atomic_store_explicit(&thread->busy, frame, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

// Inlined, so that the frame address is that of the caller.
static inline __attribute__((always_inline)) bool span_thread_take(struct span_thread *thread)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	if (span_unlikely(atomic_load_explicit(&thread->busy, memory_order_relaxed) != 0)) {
		if (!span_thread_is_abandoned(thread, frame))
			return false;
		span_thread_repair(thread);
	}
	span_thread_mark_busy(thread, frame);
	return true;
}

static inline uint32_t span_thread_depth(const struct span_thread *thread)
{
	return (uint32_t)atomic_load_explicit(&thread->cursor, memory_order_relaxed);
}

// Completes an event: n records have been written, and `depth` spans are open now.
static inline void span_thread_commit(struct span_thread *thread, uint32_t n, uint32_t depth)
{
	uint64_t head = thread->head + n;
	_Atomic uint64_t *shared_head = thread->shared_head;
	thread->head = head;
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&thread->cursor, head << 32 | depth, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(shared_head, head, memory_order_release);
}

// The i-th record after the written ones.
static inline struct span_record *span_thread_record(const struct span_thread *thread, uint32_t i)
{
	return &thread->records[(thread->head + i) & thread->mask];
}

// Room kept free for the ends of the open spans, which never fail.
static inline uint32_t span_thread_reserve(const struct span_thread *thread, uint32_t depth)
{
	return depth * thread->end_records + 1;
}

static inline bool span_thread_has_room(struct span_thread *thread, uint32_t need)
{
	return span_likely(thread->head + need <= thread->limit) || span_thread_make_room(thread, need);
}

static inline void span_thread_count_lost(struct span_thread *thread, uint32_t n)
{
	atomic_fetch_add_explicit(thread->lost, n, memory_order_relaxed);
}
