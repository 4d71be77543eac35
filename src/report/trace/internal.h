/* Protobuf wire format: a sequence of numbered fields; a message is a field that contains fields.
 *
 *	size_t track = proto_begin(out, 60);
 *	proto_uint(out, 1, uuid);
 *	proto_text(out, 2, "power");
 *	proto_end(out, track); */
#pragma once

#include "analysis/energy/timeline.h"
#include "analysis/findings.h"
#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

void proto_uint(struct buf *out, uint32_t field, uint64_t value); // also booleans, enums and int64
void proto_double(struct buf *out, uint32_t field, double value);
void proto_text(struct buf *out, uint32_t field, const char *text); // invalid UTF-8 becomes U+FFFD; NULL: ""
// Begins a message; pass the result to proto_end. In between, only fields may be written to `out`.
size_t proto_begin(struct buf *out, uint32_t field);
void proto_end(struct buf *out, size_t begun);

/* Field numbers of the Perfetto messages used here: perfetto.dev/docs/reference/trace-packet-proto. */

enum { TRACE_PACKET = 1 };

enum packet_field {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
	PACKET_FIRST_ON_SEQUENCE = 87
};
enum sequence_flags { SEQUENCE_STATE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };
enum defaults_field { DEFAULTS_TIMESTAMP_CLOCK = 58 };

enum clock_snapshot_field { SNAPSHOT_CLOCK = 1, SNAPSHOT_PRIMARY_CLOCK = 2 };
enum clock_field { CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum clock_id { BUILTIN_REALTIME = 1, BUILTIN_MONOTONIC = 3, BUILTIN_BOOTTIME = 6 };

enum track_field {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT_UUID = 5,
	TRACK_COUNTER = 8,
	TRACK_CHILD_ORDERING = 11,
	TRACK_SIBLING_RANK = 12,
	TRACK_DESCRIPTION = 14
};
enum child_ordering { ORDERING_EXPLICIT = 3 };
enum process_field { PROCESS_ID = 1, PROCESS_NAME = 6, PROCESS_START_NS = 7 };
enum thread_field { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum counter_field { COUNTER_UNIT = 3, COUNTER_UNIT_NAME = 6, COUNTER_AXIS_KEY = 7 };
enum counter_unit { UNIT_BYTES = 3 };

enum event_field {
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK_UUID = 11,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_DOUBLE_VALUE = 44
};
enum interned_field { INTERNED_EVENT_NAME = 2 };
enum event_name_field { EVENT_NAME_NUMBER = 1, EVENT_NAME_TEXT = 2 };

enum track_event_type { EVENT_SLICE_BEGIN = 1, EVENT_SLICE_END = 2, EVENT_INSTANT = 3, EVENT_COUNTER = 4 };
enum annotation_field { ANNOTATION_INT = 4, ANNOTATION_DOUBLE = 5, ANNOTATION_TEXT = 6, ANNOTATION_NAME = 10 };

/* Assigns slices to tracks.
 *
 * Slices of one track must be nested: Perfetto ends the innermost slice at each end event. A thread's spans are on the
 * thread's track as long as they nest; a span that crosses another goes to an additional track beside it. Ranges are
 * independent of thread nesting; overlapping ranges are on separate tracks. No span is truncated or omitted.
 *
 * A row goes to the first lane with room. Tens of thousands may be open at once, so a tree finds that lane and a heap the
 * ended rows, without linear searches. */

struct lane_row { // a span to be assigned
	size_t process;
	int64_t begin_ns, end_ns; // INT64_MAX: no end recorded
	size_t span;
	int32_t tid; // 0: ranges, and spans of unknown threads
	bool is_range;
};

struct lane {
	uint64_t track;               // 0: not created yet
	const struct lane_row **open; // nested open rows, outermost first; owned
	size_t n, capacity;
};

struct lane_end { // end of an open row
	int64_t end_ns;
	size_t lane;
};

struct lanes { // lanes of one thread, or of the ranges of one process
	struct trace *trace;
	struct lane *items;
	size_t n, capacity;
	int64_t *
		place; // tree: latest end that fits into the lanes below a node; the root is 1, leaves start at `capacity`
	struct lane_end *ends; // heap: the earliest end first
	size_t n_ends, ends_capacity;
};

// Ends rows that are over when `row` begins, and puts `row` on a lane. NULL: no memory.
struct lane *lanes_put(struct lanes *lanes, const struct lane_row *row);
void lanes_end_all(struct lanes *lanes); // ends all rows before the next thread
void lanes_free(struct lanes *lanes);

/* State shared by the parts of a trace. */

struct trace_process {         // one process (a pid can occur several times)
	int64_t pid, start_ns; // start_ns VALUE_MISSING: unknown
	const char *name;      // NULL: unknown
	uint64_t track;        // 0: not written yet
};

struct trace {
	const struct findings *findings;
	const struct run *run;
	struct timeline timeline; // energies over time; the findings contain their sums
	struct arena *arena;      // freed with the trace
	struct buf *out;
	void (*more)(void *data);
	void *data;
	int64_t hole_ns; // readings missing for longer are unknown, as in curve.h
	uint64_t uuid_base, n_tracks;
	struct trace_process *processes; // sorted by pid, then start
	size_t n_processes;
};

static inline int64_t trace_later_ns(int64_t a_ns, int64_t b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

static inline int64_t trace_sooner_ns(int64_t a_ns, int64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* ---- packet.c: clocks, tracks, events ---- */

void trace_begin(struct trace *trace); // writes defaults and clock snapshots

struct trace_unit {
	const char *name;     // "W", "°C"; "bytes" is built into Perfetto; NULL: unknown
	const char *axis_key; // counters of one group with the same key share a scale; NULL: own scale
};
struct trace_track {
	const char *name, *description;      // NULL: none
	uint64_t parent;                     // 0: none
	int rank;                            // order among the tracks of its parent; 0: none
	bool orders_children;                // children are ordered by rank
	const struct trace_unit *unit;       // for counters
	const struct trace_process *process; // for a process; with tid for one of its threads
	int32_t tid;
};
uint64_t trace_track(struct trace *trace, const struct trace_track *track); // returns its uuid
uint64_t trace_group(struct trace *trace, int rank, const char *label);     // a group of tracks ordered by rank

// An open event: begin it, add name and arguments, then close it.
struct trace_event {
	size_t packet, message;
};
struct trace_event trace_slice_begin(struct trace *trace, uint64_t track, int64_t t_ns);
struct trace_event trace_instant(struct trace *trace, uint64_t track, int64_t t_ns);
void trace_event_name(struct trace *trace, const char *name, const char *category); // category NULL: none
// Interns a long name that many events share; events refer to its number.
void trace_name_number(struct trace *trace, uint32_t number, const char *name);
void trace_event_name_number(struct trace *trace, uint32_t number, const char *category);
void trace_argument_double(struct trace *trace, const char *name, double value);   // NaN: omitted
void trace_argument_int(struct trace *trace, const char *name, int64_t value);     // VALUE_MISSING: omitted
void trace_argument_text(struct trace *trace, const char *name, const char *text); // NULL: omitted
void trace_event_close(struct trace *trace, struct trace_event event);
// These two write complete events.
void trace_slice_end(struct trace *trace, uint64_t track, int64_t t_ns);
void trace_value(struct trace *trace, uint64_t track, int64_t t_ns, double value); // of a counter

/* ---- counter.c, gauges.c ---- */

/* A value holds until the next one. Only changes are written. NaN is written when a known value becomes unknown, so that
 * nothing is drawn across a gap, a pause or the end. The track is created with the first known value. */
struct trace_counter {
	struct trace *trace;
	struct trace_track about;
	struct trace_unit unit;
	uint64_t track; // 0: not created yet
	double last;
};
void trace_counter_put(struct trace_counter *counter, int64_t t_ns, double value);
// Writes the value for the duration of a window; at the end of a segment's last window it becomes unknown.
void trace_window_put(struct trace_counter *counter, const struct windows *windows, size_t window, double value);
// Writes readings of a device, times `scale`; values are unknown in pauses between segments and in gaps.
void trace_device_gauge(struct trace_counter *counter, const struct run_device *device, enum device_metric metric,
	double scale);
// Formats a text that lives as long as the arena; "" without memory.
const char *trace_text(struct trace *trace, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- processes.c ---- */

int trace_processes_find(struct trace *trace); // finds all processes of spans, metrics and samples. -ENOMEM
// Index in trace.processes of the process that had this pid at that time.
size_t trace_process_at(const struct trace *trace, int64_t pid, int64_t t_ns);
uint64_t trace_process_track(struct trace *trace, size_t process);

/* ---- contents of a trace; -ENOMEM ---- */

enum { RANK_RUN = 1, RANK_POWER, RANK_CPU, RANK_MEMORY, RANK_DEVICES }; // order from the top; devices are consecutive

void trace_power(struct trace *trace);
void trace_cpu(struct trace *trace);
void trace_memory(struct trace *trace);
void trace_devices(struct trace *trace);
int trace_user_metrics(struct trace *trace);
int trace_process_samples(struct trace *trace);
int trace_spans(struct trace *trace);
void trace_instants(struct trace *trace);
