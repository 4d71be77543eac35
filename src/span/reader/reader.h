/* Converts rings and span files to rows. */
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

/* Names in a recording, each with a unique number. Bounded for any program: at most 65,536 different names of 16 MiB in
 * total; all further names become "(more than 65536 names)". */

enum { NAME_TABLE_MAX = 65536, NAME_TABLE_BYTES = 16 << 20 };

struct name_table {
	const char **texts; // owned array; number -> text, owned by the chunks; valid until name_table_finish
	uint32_t n, capacity;
	uint32_t *slots; // owned: hash table with open addressing, hash -> number + 1; 0: empty
	uint32_t n_slots;
	struct name_chunk *chunks; // owned list of memory for the texts
	size_t n_bytes;
	struct hash_key key;
	bool is_full; // some name became "(more than …)"
};

int name_table_init(struct name_table *table); // -ENOMEM
void name_table_finish(struct name_table *table);
/* Returns the number of a name of `length` bytes, which need not end in NUL. Invalid UTF-8 becomes U+FFFD, control
 * characters become blanks, an empty name becomes "(unnamed)": the results can be printed and stored anywhere. */
uint32_t name_table_add(struct name_table *table, const char *bytes, size_t length);
static inline const char *name_table_text(const struct name_table *table, uint32_t name)
{
	return name < table->n ? table->texts[name] : NULL;
}

/* Open ranges of one process. Begin and end may be in the rings of different threads, which are read one after the
 * other: an end read before its begin is kept until every ring has been read once more.
 *
 * Programs choose the numbers, so the hash tables use a secret key. The tables shrink as ranges end, so that past open
 * ranges of one process cost others nothing. */

enum range_state { RANGE_NONE, RANGE_OPEN, RANGE_EARLY_END };

struct range_slot {
	uint64_t number;
	enum range_state state;
	uint32_t round;      // RANGE_EARLY_END: round in which it was read
	struct span_row row; // for an early end only end_ns is set
};

struct range_table {
	struct range_slot *slots; // owned; hash table by number with open addressing
	size_t n_slots, n;        // n: slots in use
	struct hash_key key;      // created with the first slots
};

struct span_ranges {
	struct range_table open, early; // a number is in at most one of them
	size_t n_unstored;              // open ranges not yet reported
	size_t take_at;                 // slot of `open` where the next search for unreported ranges starts
};

void span_ranges_finish(struct span_ranges *ranges);
// The open range or early end with this number; NULL: none. Valid until the next call.
struct range_slot *span_ranges_find(struct span_ranges *ranges, uint64_t number);
// `number` must not be in the table. -ENOMEM.
int span_ranges_add(struct span_ranges *ranges, const struct range_slot *added);
void span_ranges_remove(struct span_ranges *ranges, struct range_slot *slot);
// Call when every ring was read in `round`: drops early ends of earlier rounds, which have no begin. Returns their
// number.
size_t span_ranges_end_round(struct span_ranges *ranges, uint32_t round);
// Copies open ranges that were not reported before.
size_t span_ranges_take_open(struct span_ranges *ranges, struct span_row *rows, size_t room);
// Iterates over all entries while nothing is added or removed; *at is 0 at first. NULL: end.
struct range_slot *span_ranges_next(struct span_ranges *ranges, size_t *at);

/* Decodes a program's records to rows of spans, metrics and marks. One decoder per stream: a ring, or the blocks of one
 * stream of a span file. Without clock and descriptor. Streams are untrusted: whatever they contain, rows are
 * consistent (begin before end, printable names, existing parents), belong to their own process, and memory use is
 * bounded. Errors are counted. */

// Limits over all streams of a recording: open spans and ranges; spans for which streams keep room.
enum { SPAN_OPEN_MAX = 1 << 18, SPAN_RESERVED_MAX = 2 * SPAN_OPEN_MAX };

struct span_sink {                                            // receives rows; pointers are valid during the call
	void (*span)(void *data, const struct span_row *row); // the span has ended
	void (*metric)(void *data, const struct span_metric_row *row);
	void (*mark)(void *data, const struct span_mark_row *row);
	void *data;
};

struct span_counts {
	uint64_t bad_records; // unknown kind, invalid length, or undefined name
	uint64_t stray_ends;  // ends without a begin
	uint64_t clamped;     // times earlier than the previous one or the stream's begin, or in the future
	uint64_t unwound;     // spans closed by the end of an outer one
	uint64_t dropped;     // spans dropped because the decoder was full
};

struct span_recording { // shared by all streams
	struct name_table names;
	struct span_sink sink;
	int64_t last_id;
	size_t n_open;     // at most SPAN_OPEN_MAX
	size_t n_reserved; // at most SPAN_RESERVED_MAX
	struct span_counts counts;
};

int span_recording_init(struct span_recording *recording, const struct span_sink *sink); // -ENOMEM
void span_recording_finish(struct span_recording *recording);

struct span_decoder {
	struct span_recording *recording; // borrowed
	struct span_ranges *ranges;       // borrowed: ranges of the process
	int32_t pid, tid;
	int64_t last_ns;                 // earlier times are raised to this one
	uint32_t slots[SPAN_NAME_SLOTS]; // recording's name numbers by the stream's own slots
	struct span_row *rows;           // owned, `room` rows; cpu_ns of an open row is the thread's CPU time at its begin
	uint16_t *open;                  // owned: stack of indices into `rows`; entries from n_open on are the free ones
	size_t n_open, room;
	size_t n_taken;  // outermost spans already reported by span_decoder_take_open
	size_t n_unseen; // open spans above them without room: only their ends are awaited
};

// Earlier times than floor_ns are invalid. ranges: shared by the streams of a process.
void span_decoder_init(struct span_decoder *decoder, struct span_recording *recording, struct span_ranges *ranges,
	int32_t pid, int32_t tid, int64_t floor_ns);
void span_decoder_finish(struct span_decoder *decoder); // does not close open spans
/* Decodes complete events and returns the number of records used: the rest belongs to an incomplete event. Times
 * after now_ns are invalid. `round`: see span_ranges_end_round. The records must not change during the call. */
size_t span_decoder_feed(struct span_decoder *decoder, const struct span_record *records, size_t n, int64_t now_ns,
	uint32_t round);
// Starts a new block of a file, in which all names are defined again.
void span_decoder_clear_names(struct span_decoder *decoder);
// Ends all but `depth` open nested spans.
void span_decoder_close(struct span_decoder *decoder, size_t depth, enum span_close how, int64_t t_ns);
/* Returns open spans not reported before, with end_ns missing; their later rows have `stored` set. Fewer than `room`:
 * there are no more. */
size_t span_decoder_take_open(struct span_decoder *decoder, struct span_row *rows, size_t room);

// Closes all open ranges of a process, counts ends without a begin, and frees the tables.
void span_decoder_close_ranges(struct span_recording *recording, struct span_ranges *ranges, enum span_close how,
	int64_t t_ns);

/* Listener for rings of programs: an abstract socket with a random name. Each connection sends one message, a struct
 * ring_hello with the memfd of the ring. There is no reply and no waiting. Everything invalid is dropped: an unknown
 * process, a memfd that could shrink under the reader, an incomplete message, a silent connection. */

enum { LISTENER_SILENT_MAX = 64, LISTENER_BACKLOG = 4096 /* connections waiting to be accepted */ };

struct received_ring { // a received ring
	struct ring_hello hello;
	struct ring_header *header; // mapped, ring_bytes(hello.n_records) long
	pid_t pid;                  // as reported by the kernel
	pid_t shown_pid;            // result of `admit`
	uid_t uid;
	int pidfd;        // of the process; -1: the process has ended
	bool has_token;   // the sender has the token, although the process could not be looked up
};

struct listener_callbacks {
	// Returns the process's pid for the rows; 0: its rings are refused. Called before mapping, with header NULL.
	pid_t (*admit)(void *data, const struct received_ring *received);
	// Called with a ring to read; the callee owns the mapping and the pidfd.
	void (*take)(void *data, const struct received_ring *received);
	void *data;
};

struct listener {
	int fd;       // owned listening socket; -1 closed
	int epoll_fd; // borrowed: waits for all descriptors of the listener
	struct ring_address address;
	struct listener_silent { // connections without a message so far
		int fd;      // owned
		int64_t since_ns;
	} silent[LISTENER_SILENT_MAX];
	size_t n_silent;
	uint64_t n_accepted;
};

// -errno. n_records and flags are requested from the programs.
int listener_open(struct listener *listener, int epoll_fd, uint32_t flags, uint32_t n_records);
void listener_close(struct listener *listener);
// Accepts a bounded number of connections without waiting; true: there may be more.
bool listener_serve(struct listener *listener, const struct listener_callbacks *hooks, int64_t now_ns);

/* Collector of spans in the recorder: reads the rings of all processes in turn and passes rows to a sink. It has no
 * thread: the owner calls span_collector_serve when its descriptor is readable, and span_collector_drain periodically.
 *
 * The contents of rings can't exceed bounds of time and memory. A call reads for at most COLLECTOR_SLICE_NS and the next
 * one continues; a ring has at most the requested size; at most COLLECTOR_RING_BYTES_MAX of all rings stays mapped. */

enum { COLLECTOR_RINGS_MAX = 4096, COLLECTOR_SCRATCH_RECORDS = 4096 };
static const int64_t COLLECTOR_RING_BYTES_MAX = INT64_C(128) << 20; // resident memory of all rings
static const int64_t COLLECTOR_SLICE_NS = 20 * 1000 * 1000;         // upper limit of the delay of a sample

struct span_process { // one program image of a process
	pid_t pid;    // as used in the rows
	int pidfd;    // owned; readable when the process has ended; -1: ended before its ring arrived
	uint32_t image;
	bool is_over;        // had ended at the last check for new connections, or is replaced
	bool is_replaced;    // another program or process has its pid: it gets no further ring
	enum span_close how; // with is_over: how open spans are closed
	int64_t over_ns;     // with is_over: time of the end
	uint64_t n_accepted; // with is_over: number of connections accepted by then
	struct span_ranges ranges;
};

struct span_ring {
	struct ring_header *header; // owned mapping
	uint32_t n_records;
	uint64_t tail;                // records read; kept here because the header is writable by the program
	bool is_started;              // reading of the ring was started and not finished
	uint64_t goal;                // end of the present reading: head of the ring when it started
	uint32_t round;               // last round in which it was read completely
	int64_t mapped_bytes;         // upper bound of its mapped memory
	bool is_broken;               // contained invalid values: no longer read
	struct span_process *process; // borrowed
	struct span_decoder decoder;
};

struct span_totals {   // sums over present and past rings
	uint64_t lost; // as counted by the programs
	uint64_t n_rings, n_refused, n_broken;
	uint64_t n_unread; // records left in the rings at the end
};

struct span_collector_options {
	uint32_t flags, n_records; // requested from the programs
	// Returns the pid for the rows if the process belongs to the target, or 0.
	pid_t (*admit)(void *data, const struct received_ring *received);
	void *data;
};

struct span_collector {
	const struct wattle_env *env; // borrowed
	struct span_collector_options options;
	int epoll_fd; // owned: readable when a program connects or a process has ended
	struct listener listener;
	struct span_recording recording;
	struct span_process **processes; // owned, with its elements
	size_t n_processes, processes_capacity;
	struct span_ring **rings; // owned, with its elements
	size_t n_rings, rings_capacity;
	struct span_record *scratch; // owned: private copy of the records being decoded
	int64_t opened_ns;           // earliest valid time in a ring
	int64_t drained_ns;          // begin of the last round but one
	int64_t round_ns, due_ns;    // begin of this round, and its result so far
	bool is_in_round;            // the round is not complete
	int64_t slice_ns;            // COLLECTOR_SLICE_NS; differs in tests
	int64_t mapped_bytes;        // of all rings
	uint32_t round;              // each round reads all rings once, in one or more calls
	struct span_totals totals;
};

int span_collector_open(struct span_collector *collector, const struct wattle_env *env,
	const struct span_collector_options *options,
	const struct span_sink *sink); // -errno
void span_collector_close(struct span_collector *collector);
// Writes the value for WATTLE_RING.
void span_collector_address(const struct span_collector *collector, char out[RING_ADDRESS_TEXT]);
/* Call when epoll_fd is readable: accepts new rings and processes ended processes. Never waits and reads for at most
 * one slice; true: there may be more. */
bool span_collector_serve(struct span_collector *collector);
/* Reads the records that every ring holds now, as far as one slice allows. Returns the time in ns until the fullest
 * ring would be a quarter full at its present rate; INT64_MAX: no new records; 0: there is more to read. */
int64_t span_collector_drain(struct span_collector *collector);
// Returns open spans not reported before; fewer than `room`: there are no more.
size_t span_collector_take_open(struct span_collector *collector, struct span_row *rows, size_t room);
/* Ends the recording: reads everything, slice by slice, until `is_enough` (NULL: never). Open spans stay open and are
 * reported by take_open. Unread records count as lost. */
void span_collector_finish(struct span_collector *collector, bool (*is_enough)(void *data), void *data);

/* Reads a span file (WATTLE_SPANS, span_file_format.h): decodes its streams one after the other. The file may be
 * incomplete, still growing, or malicious. */

struct span_file_info {
	int64_t anchor_mono_ns, anchor_wall_ns; // clock of all times: that of the first boot
	uint64_t n_blocks, n_damaged;           // blocks read, and invalid blocks
	uint64_t n_processes;                   // number of program images
	uint64_t lost, unwound;                 // as counted by the programs
};

// Whether the file has the header of a span file.
bool span_file_probe(const char *path);
/* Passes all rows to the recording's sink. Spans open at the end of a process end at its last known time. Times of
 * other boots are shifted by the wall clock. -ENOENT, -EINVAL (not a span file), -ENOTSUP (another version), -ENOMEM,
 * with a message. */
int span_file_read(const char *path, struct span_recording *recording, struct span_file_info *ret_metadata,
	struct wattle_error *reterr);
