/* The recorder's side of spans: the rings of all processes, read in turn, and the rows made of them handed to a sink. No
 * thread: its owner calls span_intake_serve when its descriptor is readable, and span_intake_drain when it is time.
 *
 * What programs put into their rings bounds neither time nor memory here. A call reads for INTAKE_SLICE_NS at most, and what it
 * has not come to is read by the next one; a ring has the size that was asked for or less; and of the rings' memory no more than
 * INTAKE_RING_BYTES_MOST is kept mapped in. */
#pragma once

#include "base/env.h"
#include "span/reader/decoder.h"
#include "span/reader/door.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INTAKE_RINGS_MOST = 4096, INTAKE_SCRATCH_RECORDS = 4096 };
static const int64_t INTAKE_RING_BYTES_MOST = INT64_C(128) << 20; // of all rings, in memory
static const int64_t INTAKE_SLICE_NS = 20 * 1000 * 1000;          // a sample waits for no longer

struct span_process { // one program image of a process
	pid_t pid;    // as the rows name it
	int pidfd;    // owned; readable when the process has ended; -1: it had, before its ring was seen
	uint32_t image;
	bool is_over;        // it had ended at the last check for new connections, or …
	bool is_replaced;    // … another program or process has its number: it gets no further ring
	enum span_close how; // with is_over: what ended what is still open …
	int64_t over_ns;     // … and when
	uint64_t n_accepted; // with is_over: connections accepted by then
	struct span_ranges ranges;
};

struct span_ring {
	struct ring_header *header; // owned mapping
	uint32_t n_records;
	uint64_t tail;                // records read; what the header says is the program's to spoil
	bool is_begun;                // its reading was begun and not finished …
	uint64_t goal;                // … and goes on up to here: as far as the ring was filled then
	uint32_t round;               // the last one that is done with it
	int64_t mapped_bytes;         // at most this much of it is mapped in
	bool is_broken;               // it said what can't be: not read any more
	struct span_process *process; // borrowed
	struct span_decoder decoder;
};

struct span_totals {   // of all rings that are gone, and those that are there
	uint64_t lost; // as the programs count them
	uint64_t n_rings, n_refused, n_broken;
	uint64_t n_unread; // records that were left in the rings at the end
};

struct span_intake_options {
	uint32_t flags, n_records; // what programs are asked for
	// Whether a process belongs to the target: its number for the rows, or 0.
	pid_t (*admit)(void *data, const struct door_guest *guest);
	void *data;
};

struct span_intake {
	const struct wattle_env *env; // borrowed
	struct span_intake_options options;
	int epoll_fd; // owned: readable when somebody knocks or a process has ended
	struct door door;
	struct span_recording recording;
	struct span_process **processes; // owned, each of them too
	size_t n_processes, processes_capacity;
	struct span_ring **rings; // owned, each of them too
	size_t n_rings, rings_capacity;
	struct span_record *scratch; // owned: a private copy of what is decoded
	int64_t opened_ns;           // no ring can hold an earlier time
	int64_t drained_ns;          // when the last round but this one began
	int64_t round_ns, due_ns;    // this round: when it began, and what it has found so far
	bool is_in_round;            // it is not over
	int64_t slice_ns;            // INTAKE_SLICE_NS; tests have another
	int64_t mapped_bytes;        // of all rings
	uint32_t round;              // each reads all rings once, by as many calls as it takes
	struct span_totals totals;
};

int span_intake_open(struct span_intake *intake, const struct wattle_env *env,
	const struct span_intake_options *options,
	const struct span_sink *sink); // -errno
void span_intake_close(struct span_intake *intake);
// What WATTLE_RING is to be.
void span_intake_address(const struct span_intake *intake, char out[RING_ADDRESS_TEXT]);
/* epoll_fd is readable: takes in new rings and sees off processes that have ended. Never waits, reads for a slice at most; true:
 * there may be more. */
bool span_intake_serve(struct span_intake *intake);
/* Reads what every ring holds at this instant, or as much of that as a slice allows. Returns in how many ns the fullest of them
 * would be a quarter full if it went on like this; INT64_MAX: nothing came; 0: there is more to read. */
int64_t span_intake_drain(struct span_intake *intake);
// Open spans that were not told of before; less than `room`: that is all.
size_t span_intake_take_open(struct span_intake *intake, struct span_row *rows, size_t room);
/* The recording ends: takes in all that there is, slice by slice, until `is_enough` (NULL: never). What is open stays open, and
 * was or is told of by take_open. What is not read then is counted as lost. */
void span_intake_finish(struct span_intake *intake, bool (*is_enough)(void *data), void *data);
