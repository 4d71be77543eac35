/* Rings and span files into rows. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "base/keyed_hash.h"
#include "span/ring.h"
#include "span/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The names that a recording has met, each once, with a number. Bounded, whatever programs do: at most 65,536 different ones
 * of 16 MiB in all; every further name is one and the same, "(more than 65536 names)". */

enum { NAME_TABLE_MOST = 65536, NAME_TABLE_BYTES = 16 << 20 };

struct name_table {
	const char **texts; // owned array; number -> text, owned by the chunks; valid until name_table_finish
	uint32_t n, capacity;
	uint32_t *slots; // owned: open-addressed hash -> number + 1; 0 empty
	uint32_t n_slots;
	struct name_chunk *chunks; // owned list of the texts' memory
	size_t n_bytes;
	struct hash_key key;
	bool is_full; // some name had to become "(more than …)"
};

int name_table_init(struct name_table *table); // -ENOMEM
void name_table_finish(struct name_table *table);
/* The number of a name of `length` bytes, which need not end in NUL. What is no UTF-8 becomes U+FFFD, control characters
 * become blanks, no name at all "(unnamed)": what comes out can be printed and stored anywhere. */
uint32_t name_table_add(struct name_table *table, const char *bytes, size_t length);
static inline const char *name_table_text(const struct name_table *table, uint32_t name)
{
	return name < table->n ? table->texts[name] : NULL;
}

/* The ranges of one process that have begun and not ended. Begin and end may stand in the rings of different threads, which
 * are read one after the other: an end that is met before its begin waits until every ring has been read once more.
 *
 * Programs choose the numbers, so the tables are hashed by a key that they don't know, and shrink as ranges end: what a process
 * once had open, others need not pay for. */

enum range_state { RANGE_NONE, RANGE_OPEN, RANGE_EARLY_END };

struct range_slot {
	uint64_t number;
	enum range_state state;
	uint32_t round;      // RANGE_EARLY_END: when it was met
	struct span_row row; // of an early end only end_ns is known
};

struct range_table {
	struct range_slot *slots; // owned; open-addressed by number
	size_t n_slots, n;        // n of them in use
	struct hash_key key;      // made with the first slots
};

struct span_ranges {
	struct range_table open, early; // a number is in one of them at most
	size_t n_unstored;              // open ones that were not taken
	size_t take_at;                 // slot of `open` where the next search for those begins
};

void span_ranges_finish(struct span_ranges *ranges);
// What is known of a number: an open range or an early end; NULL: nothing. Valid until the next call.
struct range_slot *span_ranges_find(struct span_ranges *ranges, uint64_t number);
// `number` must not be known. -ENOMEM.
int span_ranges_add(struct span_ranges *ranges, const struct range_slot *added);
void span_ranges_remove(struct span_ranges *ranges, struct range_slot *slot);
// Every ring was read in `round`: an early end of an earlier round belongs to no range. How many were dropped.
size_t span_ranges_settle(struct span_ranges *ranges, uint32_t round);
// Copies open ranges that were not taken before.
size_t span_ranges_take_open(struct span_ranges *ranges, struct span_row *rows, size_t room);
// All that is known, one after the other, while nothing is added or removed; *at is 0 at first. NULL: there is no more.
struct range_slot *span_ranges_next(struct span_ranges *ranges, size_t *at);

/* From the records that a program wrote to rows of spans, metrics and marks. One decoder a stream: a ring, or the blocks of
 * one stream of a span file. Pure: no clock, no descriptor. A stream is not to be trusted: whatever it holds, the rows made of
 * it are whole (begin before end, names fit to be shown, parents that exist), they are rows of its own process, and the
 * memory used is bounded. What was wrong is counted. */

// Over all streams of a recording: spans and ranges that may be open at a time; spans for which streams may keep room.
enum { SPAN_OPEN_MOST = 1 << 18, SPAN_ROOM_MOST = 2 * SPAN_OPEN_MOST };

struct span_sink {                                            // takes rows; what they point to is valid during the call
	void (*span)(void *data, const struct span_row *row); // it has ended
	void (*metric)(void *data, const struct span_metric_row *row);
	void (*mark)(void *data, const struct span_mark_row *row);
	void *data;
};

struct span_counts {
	uint64_t bad_records; // no such kind, a length that can't be, a name that was never defined
	uint64_t strays;      // ends without a begin
	uint64_t clamped;     // times before the one before, before the stream's begin or in the future
	uint64_t unwound;     // spans that were closed by the end of an outer one
	uint64_t dropped;     // spans that found no room here
};

struct span_recording { // what all streams share
	struct name_table names;
	struct span_sink sink;
	int64_t last_id;
	size_t n_open; // at most SPAN_OPEN_MOST
	size_t n_room; // at most SPAN_ROOM_MOST
	struct span_counts counts;
};

int span_recording_init(struct span_recording *recording, const struct span_sink *sink); // -ENOMEM
void span_recording_finish(struct span_recording *recording);

struct span_decoder {
	struct span_recording *recording; // borrowed
	struct span_ranges *ranges;       // borrowed: of the process
	int32_t pid, tid;
	int64_t last_ns;                 // no time before this one
	uint32_t slots[SPAN_NAME_SLOTS]; // names by the stream's own numbers
	struct span_row *rows;           // owned, `room` of them; cpu_ns is the thread's at the begin
	uint16_t *open;                  // owned: the stack, as places in `rows`; behind n_open those that are free
	size_t n_open, room;
	size_t n_taken;  // of these, from the outermost on, span_decoder_take_open has told
	size_t n_unseen; // open spans on top of them that found no room: their ends are expected
};

// Times before floor_ns can't be. ranges: shared by the streams of a process.
void span_decoder_init(struct span_decoder *decoder, struct span_recording *recording, struct span_ranges *ranges,
	int32_t pid, int32_t tid, int64_t floor_ns);
void span_decoder_finish(struct span_decoder *decoder); // without closing what is open
/* Takes in whole events; returns how many records they were: the rest is the begin of an event whose end is not there yet. No
 * time after now_ns can be. `round`: see span_ranges_settle. The records must not change meanwhile. */
size_t span_decoder_feed(struct span_decoder *decoder, const struct span_record *records, size_t n, int64_t now_ns,
	uint32_t round);
// A new block of a file: names are defined anew.
void span_decoder_forget_names(struct span_decoder *decoder);
// Ends all but `depth` open nested spans.
void span_decoder_close(struct span_decoder *decoder, size_t depth, enum span_close how, int64_t t_ns);
/* Spans that are open and were not told of before, with end_ns missing; their later rows have `stored` set. Returns how
 * many; less than `room`: that is all. */
size_t span_decoder_take_open(struct span_decoder *decoder, struct span_row *rows, size_t room);

// Ends all open ranges of a process, counts ends that never met their begin, and releases.
void span_decoder_close_ranges(struct span_recording *recording, struct span_ranges *ranges, enum span_close how,
	int64_t t_ns);

/* Where programs bring their rings: an abstract socket with a random name. Each connection is one message, a struct ring_hello
 * with the memfd of the ring. Nobody is answered, nobody is waited for, and who brings anything else is dropped: a stranger, a
 * memfd that could shrink under the reader, half a message, a connection that says nothing. */

enum { DOOR_SILENT_MOST = 64, DOOR_BACKLOG = 4096 /* connections that wait to be accepted */ };

struct door_guest { // a ring that was brought
	struct ring_hello hello;
	struct ring_header *header; // mapped, ring_bytes(hello.n_records) long
	pid_t pid;                  // as the kernel tells it
	pid_t shown_pid;            // what `admit` said
	uid_t uid;
	int pidfd;        // of that process; -1: it is gone already
	bool knows_token; // it was given the address, and did not find it
};

struct door_hooks {
	// The number by which the process is known; 0: its rings are not wanted. Asked before anything is mapped, header is NULL.
	pid_t (*admit)(void *data, const struct door_guest *guest);
	// A ring to be read; the mapping and the pidfd are the hook's.
	void (*take)(void *data, const struct door_guest *guest);
	void *data;
};

struct door {
	int fd;       // owned: listens; -1 closed
	int epoll_fd; // borrowed: where all descriptors of the door are waited for
	struct ring_address address;
	struct door_silent { // connections that have not said anything yet
		int fd;      // owned
		int64_t since_ns;
	} silent[DOOR_SILENT_MOST];
	size_t n_silent;
	uint64_t n_accepted;
};

// -errno. n_records and flags are what programs are asked for.
int door_open(struct door *door, int epoll_fd, uint32_t flags, uint32_t n_records);
void door_close(struct door *door);
// Hears whoever has come, a bounded number of them, without waiting; true: there may be more.
bool door_serve(struct door *door, const struct door_hooks *hooks, int64_t now_ns);

/* The recorder's side of spans: the rings of all processes, read in turn, and the rows made of them handed to a sink. No
 * thread: its owner calls span_intake_serve when its descriptor is readable, and span_intake_drain when it is time.
 *
 * What programs put into their rings bounds neither time nor memory here. A call reads for INTAKE_SLICE_NS at most, and what it
 * has not come to is read by the next one; a ring has the size that was asked for or less; and of the rings' memory no more than
 * INTAKE_RING_BYTES_MOST is kept mapped in. */

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

/* A span file (WATTLE_SPANS, span_file_format.h) read back: its streams through the decoder, one after the other. The file
 * may be torn, still grow, or have been written by somebody who means harm. */

struct span_file_facts {
	int64_t anchor_mono_ns, anchor_wall_ns; // the clock that all times are on: of the first start of the machine
	uint64_t n_blocks, n_damaged;           // blocks read, and those that are none
	uint64_t n_processes;                   // program images
	uint64_t lost, unwound;                 // as the programs count them
};

// Whether it begins as a span file does.
bool span_file_probe(const char *path);
/* Hands all rows to the recording's sink. What was open at the end of a process ends with the last thing known of it. Times
 * of other starts of the machine are moved by the wall clock. -ENOENT, -EINVAL (no span file), -ENOTSUP (another version),
 * -ENOMEM, with a sentence. */
int span_file_read(const char *path, struct span_recording *recording, struct span_file_facts *ret_facts,
	struct wattle_error *reterr);
