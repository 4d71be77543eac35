/* Events of a recording, as fields: events.def lists the kinds and the events. The recorder creates them, the stores keep
 * their fields in columns, and analysis and reports compute with the fields. Only event_sentence converts them to English. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "metric/metric.h"

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
#define EVENT_KIND(id, name, meaning) EVENT_KIND_##id,
#include "metric/events.def"
	EVENT_KIND_OTHER, // written by a later version or another program
};

enum event_type {
#define EVENT(id, kind, reason, sentence) EVENT_##id,
#include "metric/events.def"
	EVENT_OTHER,
};

/* Unknown numbers are VALUE_MISSING, unknown texts NULL. */
struct event {
	int64_t t_ns; // CLOCK_MONOTONIC
	enum event_kind kind;
	enum event_type type;
	const char *device; // names of the domains, separated by blanks
	const char *sensor; // sensor of these domains
	int64_t pid, rank;  // another recorder of the job
	int64_t count;
	int64_t duration_ns;
	int64_t old_value, new_value; // cap: mW; throttle: bits as in throttle_reasons_bits; cgroup-peak-memory: bytes
	const char *detail;           // text from a sensor, the system or the program
	// For a stored event:
	const char *kind_name; // as stored, also for kinds unknown to this version
	const char *text;      // sentence for display; nothing is computed from it
};

// Creates an event whose other fields are unknown.
struct event event_make(enum event_type type, int64_t t_ns);
struct event event_mark(int64_t t_ns, const char *name); // a mark of the program, as a stored event

const char *event_kind_name(enum event_kind kind);     // "gap" …; NULL for EVENT_KIND_OTHER
enum event_kind event_kind_of_name(const char *name);  // EVENT_KIND_OTHER: unknown, or NULL
enum event_kind event_type_kind(enum event_type type);
const char *event_type_reason(enum event_type type);   // NULL for EVENT_OTHER
enum event_type event_type_of(enum event_kind kind, const char *reason); // EVENT_OTHER: unknown, or NULL
const char *event_type_sentence(enum event_type type); // as in events.def

// Whether the event concerns this domain.
bool event_is_of(const struct event *event, const char *device);
// Whether the event concerns a counter: wraps, gaps (not their ends) and resets.
bool event_is_of_counter(const struct event *event);
// Appends the sentence for display. Appends nothing for EVENT_OTHER, or if a field that the sentence needs is unknown.
void event_sentence(struct buf *out, const struct event *event);
// Sets the text to the sentence, in `arena`; leaves it unchanged if there is none. Returns -ENOMEM on failure.
int event_set_text(struct event *event, struct arena *arena);
// Appends "package-0, dram-0".
void event_device_names(struct buf *out, const struct event *event);
// Appends "pid 12, rank 3 of this job", for SENSORS_ELSEWHERE.
void event_reader(struct buf *out, const struct event *event);
