/* What the parts of a trace share. */
#pragma once

#include "analysis/energy/timeline.h"
#include "analysis/findings.h"
#include "base/buf.h"

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
