/* What a thread needs to write spans: its ring or block, the names known there, the spans that are open.
 *
 * The state is reached by one pointer in initial-exec TLS and lives in memory of its own that is never given back: when the
 * thread ends, the next new one takes it over together with its ring, so short-lived threads need as many rings as ran at
 * once. In a forked child the kernel hands it out zeroed and the ring not at all, so a child can't write where its parent
 * does, whichever way it was forked.
 *
 * Only the thread itself and its signal handlers come here. A call takes the state by `busy`; a handler that interrupts one
 * drops its events and leaves in `owed` what they would have done to the depth. Calls that a handler leaves by siglongjmp
 * don't come back: `cursor` is the one word whose store makes an event have happened, all else follows from it. */
#pragma once

#include "span/ring.h"
#include "span/span_file_format.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* The names that a ring knows at present. The program gives pointers; a slot is found by the pointer and always proven by the
 * text that we hold a copy of: a name may stand in a buffer on the stack, and a library that is unloaded leaves its addresses
 * to the next one. The number of different names has no bound: slots and text are used again. */

enum {
	SPAN_NAME_WAYS = 4, // slots in which a pointer may stand: one cache line
	SPAN_NAME_TEXT_BYTES = 65536,
	SPAN_NO_SLOT = SPAN_NAME_SLOTS,
};

struct span_name {
	const char *key; // NULL: the slot is free, or its definition is not written yet
	uint32_t at;
	uint16_t length, room; // of the text; bytes it may take
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
static_assert(SPAN_NAME_SLOTS == 1 << (64 - 54), "the hash names a slot");

// Short names, which is most of them, byte by byte: a call of strcmp costs as much as the rest of a begin.
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

// SPAN_NO_SLOT: it must be defined first.
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
/* A slot other than `keep` with a copy of the text. It is found only after span_name_confirm, when its definition has been
 * written; a call that was left in between (siglongjmp) has cost a free slot. */
uint32_t span_name_take(struct span_names *names, const char *name, size_t length, uint32_t keep);
static inline void span_name_confirm(struct span_names *names, uint32_t slot, const char *name)
{
	names->slots[slot].key = name;
}

#define span_likely(condition) __builtin_expect(!!(condition), 1)
#define span_unlikely(condition) __builtin_expect(!!(condition), 0)

// A call of some nanoseconds that has no array on its stack.
#define SPAN_HOT __attribute__((hot, no_stack_protector))

enum {
	SPAN_RANGE_RESERVE = 2 * 64, // left to the ends of ranges, which may come in any thread
	SPAN_RETRY_NS = 10 * 1000 * 1000,
};

enum sink_kind { SINK_NONE, SINK_RING, SINK_BLOCK };

struct span_sink { // where the records go
	enum sink_kind kind;
	bool is_announced; // whose records follow
	void *map;
	size_t map_bytes;
	_Atomic uint64_t *tail;    // of a ring
	uint64_t backed;           // records of a ring that have memory behind them
	int64_t retry_ns;          // when there was none: not before
	uint64_t stream, sequence; // of the next block
	struct {
		uint64_t index; // of a block that was claimed and not reserved; 0: none
		uint64_t device, inode;
	} pending;
};

struct span_thread {
	// What each call touches.
	alignas(64) int session; // span_writer_state when it was set up
	bool with_cpu_time;
	uint8_t end_records;     // that an end takes
	_Atomic uintptr_t busy;  // frame of the call at work; 0: none
	_Atomic uint64_t cursor; // low half of head in its upper half, depth in its lower
	uint64_t head;           // records written to this ring or block
	uint64_t limit;          // up to here there is room
	uint64_t mask;
	struct span_record *records;
	_Atomic uint64_t *shared_head;
	int64_t latest_ns; // of all records: a handler may come between a call's look at the clock and its record
	_Atomic int32_t owed;
	uint32_t excess; // spans open above SPAN_DEPTH_MAX

	alignas(64) _Atomic uint64_t *lost;
	_Atomic uint64_t *unwound;
	_Atomic uint64_t nowhere[3]; // head, lost, unwound while there is no ring
	struct span_sink sink;
	_Atomic uint64_t n_ranges; // ever begun
	uint32_t number;           // of this state in this process, from 1
	int32_t tid;
	struct {
		uint64_t cursor;
		int64_t since_ns;
	} refused; // the call that is found at work again and again

	_Atomic int is_taken;
	_Atomic bool is_unwatched; // no destructor will tell of the thread's end
	uint8_t end_rounds;        // of the destructor
	struct span_thread *next;

	uint8_t dropped[SPAN_DEPTH_MAX]; // the begin at this depth was not written
	struct span_names names;
	char path[PATH_MAX];
};

extern __thread struct span_thread *span_thread_self __attribute__((tls_model("initial-exec")));

void span_threads_init(void);
// This thread's state in the present session, made if need be. NULL: nothing is recorded any more, or there is no memory.
struct span_thread *span_thread_set_up(void);
// Room for `need` more records, after another look at the recorder or in a new block.
bool span_thread_room(struct span_thread *thread, uint32_t need);
// The state is taken: by a call below us on the stack (false), or by one that was left for good.
bool span_thread_is_left(struct span_thread *thread, uintptr_t frame);
// After span_thread_is_left: what had happened has happened, the rest has not.
void span_thread_mend(struct span_thread *thread);
// Whether a state of this number was made in this process, not in one that it was forked from.
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

// Inlined, so that the frame is that of the call at work.
static inline __attribute__((always_inline)) bool span_thread_take(struct span_thread *thread)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	if (span_unlikely(atomic_load_explicit(&thread->busy, memory_order_relaxed) != 0)) {
		if (!span_thread_is_left(thread, frame))
			return false;
		span_thread_mend(thread);
	}
	span_thread_mark_busy(thread, frame);
	return true;
}

static inline uint32_t span_thread_depth(const struct span_thread *thread)
{
	return (uint32_t)atomic_load_explicit(&thread->cursor, memory_order_relaxed);
}

// n records have been written, and there are now `depth` spans open.
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

// The i-th record after those that are written.
static inline struct span_record *span_thread_record(const struct span_thread *thread, uint32_t i)
{
	return &thread->records[(thread->head + i) & thread->mask];
}

// Room that an event leaves to the ends of the open spans, which are never refused.
static inline uint32_t span_thread_reserve(const struct span_thread *thread, uint32_t depth)
{
	return depth * thread->end_records + 1;
}

static inline bool span_thread_has_room(struct span_thread *thread, uint32_t need)
{
	return span_likely(thread->head + need <= thread->limit) || span_thread_room(thread, need);
}

static inline void span_thread_count_lost(struct span_thread *thread, uint32_t n)
{
	atomic_fetch_add_explicit(thread->lost, n, memory_order_relaxed);
}
