/* Protobuf's wire format: fields one after the other, each with its number; a message is a field that holds fields.
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

void proto_uint(struct buf *out, uint32_t field, uint64_t value); // also booleans, enums, int64
void proto_double(struct buf *out, uint32_t field, double value);
void proto_text(struct buf *out, uint32_t field, const char *text); // what is no UTF-8 becomes U+FFFD; NULL: ""
// A message, until proto_end gets what this returned. Between the two nothing but fields may be done to `out`.
size_t proto_begin(struct buf *out, uint32_t field);
void proto_end(struct buf *out, size_t begun);

/* The numbers of Perfetto's messages, as far as a trace of ours has them: perfetto.dev/docs/reference/trace-packet-proto. */

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

/* Which track a slice is on.
 *
 * Slices of one track must lie inside each other: Perfetto ends the innermost one, whatever an end was meant for. So a thread's
 * spans are on the thread's track as long as they nest, and one that crosses another goes to a further track beside it. Ranges
 * are no part of a thread's nesting; those that overlap are on tracks of their own. Nothing is cut and nothing left out.
 *
 * A row goes to the first lane that has place for it. Tens of thousands may be open at once, so neither that lane nor those
 * that are over are looked for one by one. */

struct lane_row { // a span on its way to a track
	size_t process;
	int64_t begin_ns, end_ns; // INT64_MAX: it never ended
	size_t span;
	int32_t tid; // 0: ranges, and spans of unknown threads
	bool is_range;
};

struct lane {
	uint64_t track;               // 0: new
	const struct lane_row **open; // one inside the other; owned
	size_t n, capacity;
};

struct lane_end { // of an open row
	int64_t end_ns;
	size_t lane;
};

struct lanes { // of one thread, or of the ranges of one process
	struct trace *trace;
	struct lane *items;
	size_t n, capacity;
	int64_t *
		place; // a tree: the latest end that has place in the lanes below a node; the root is 1, leaves are at `capacity`
	struct lane_end *ends; // a heap: the earliest one first
	size_t n_ends, ends_capacity;
};

// Ends what is over when `row` begins, and puts it on a lane. NULL without memory.
struct lane *lanes_put(struct lanes *lanes, const struct lane_row *row);
void lanes_end_all(struct lanes *lanes); // for the next thread
void lanes_free(struct lanes *lanes);

/* What the parts of a trace share. */

struct trace_process {         // one life of a process that the trace speaks of
	int64_t pid, start_ns; // start_ns VALUE_MISSING: unknown
	const char *name;      // NULL unknown
	uint64_t track;        // 0: not described yet
};

struct trace {
	const struct findings *findings;
	const struct run *run;
	struct timeline timeline; // the energies along time, of which findings keep the sums
	struct arena *arena;      // dropped with the trace
	struct buf *out;
	void (*more)(void *data);
	void *data;
	int64_t hole_ns; // what is not read for longer is unknown meanwhile: as curve.h has it
	uint64_t uuid_base, n_tracks;
	struct trace_process *processes; // by pid, then start
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

void trace_begin(struct trace *trace); // what holds for all packets, and the clocks

struct trace_unit {
	const char *name;     // "W", "°C"; "bytes" is Perfetto's own; NULL: unknown
	const char *axis_key; // counters of one group and one key have one scale; NULL: a scale of its own
};
struct trace_track {
	const char *name, *description;      // NULL: none
	uint64_t parent;                     // 0: none
	int rank;                            // among the tracks of its parent; 0: none
	bool orders_children;                // they stand as their ranks say
	const struct trace_unit *unit;       // a counter's
	const struct trace_process *process; // of a process; with tid of a thread of it
	int32_t tid;
};
uint64_t trace_track(struct trace *trace, const struct trace_track *track); // its uuid
uint64_t trace_group(struct trace *trace, int rank, const char *label);     // of tracks that stand by rank

// An event is begun, gets its name and arguments, and is closed.
struct trace_event {
	size_t packet, message;
};
struct trace_event trace_slice_begin(struct trace *trace, uint64_t track, int64_t t_ns);
struct trace_event trace_instant(struct trace *trace, uint64_t track, int64_t t_ns);
void trace_event_name(struct trace *trace, const char *name, const char *category); // category NULL: none
// A long name that many events have stands in the trace once, with a number, and they refer to it.
void trace_name_number(struct trace *trace, uint32_t number, const char *name);
void trace_event_name_number(struct trace *trace, uint32_t number, const char *category);
void trace_argument_double(struct trace *trace, const char *name, double value);   // NaN: left out
void trace_argument_int(struct trace *trace, const char *name, int64_t value);     // VALUE_MISSING: left out
void trace_argument_text(struct trace *trace, const char *name, const char *text); // NULL: left out
void trace_event_close(struct trace *trace, struct trace_event event);
// These two are whole events.
void trace_slice_end(struct trace *trace, uint64_t track, int64_t t_ns);
void trace_value(struct trace *trace, uint64_t track, int64_t t_ns, double value); // of a counter

/* ---- counter.c, gauges.c ---- */

/* A value holds until the next one. It is written where it changes; NaN is written where something was known and is not any
 * more, so that nothing is drawn on over a hole, a pause or the end. The track appears with the first known value. */
struct trace_counter {
	struct trace *trace;
	struct trace_track about;
	struct trace_unit unit;
	uint64_t track; // 0: it has not appeared
	double last;
};
void trace_counter_put(struct trace_counter *counter, int64_t t_ns, double value);
// The value while a window lasts; at the end of the last one of a segment it is unknown.
void trace_window_put(struct trace_counter *counter, const struct windows *windows, size_t window, double value);
// What was read of a device, times `scale`; pauses between segments and readings that are missing are unknown.
void trace_device_gauge(struct trace_counter *counter, const struct run_device *device, enum device_metric metric,
	double scale);
// A text that lives as long as the trace is being made; "" without memory.
const char *trace_words(struct trace *trace, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- processes.c ---- */

int trace_processes_find(struct trace *trace); // all that spans, metrics and samples speak of. -ENOMEM
// The one that had this pid at that time: an index of trace.processes.
size_t trace_process_at(const struct trace *trace, int64_t pid, int64_t t_ns);
uint64_t trace_process_track(struct trace *trace, size_t process);

/* ---- what a trace shows; -ENOMEM ---- */

enum { RANK_RUN = 1, RANK_POWER, RANK_CPU, RANK_MEMORY, RANK_DEVICES }; // from the top; devices one after the other

void trace_power(struct trace *trace);
void trace_cpu(struct trace *trace);
void trace_memory(struct trace *trace);
void trace_devices(struct trace *trace);
int trace_user_metrics(struct trace *trace);
int trace_process_samples(struct trace *trace);
int trace_spans(struct trace *trace);
void trace_instants(struct trace *trace);
