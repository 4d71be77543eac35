// The packets of a trace: clocks, tracks, events.
#include "report/trace/internal.h"

#include "base/util.h"

enum { SEQUENCE = 1 }; // a single writer sequence

static size_t begin_packet(struct trace *trace, uint32_t flags)
{
	size_t packet = proto_begin(trace->out, TRACE_PACKET);
	proto_uint(trace->out, PACKET_SEQUENCE_ID, SEQUENCE);
	proto_uint(trace->out, PACKET_SEQUENCE_FLAGS, flags);
	return packet;
}

// The output may be flushed only between packets.
static void end_packet(struct trace *trace, size_t packet)
{
	proto_end(trace->out, packet);
	trace->more(trace->data);
}

/* ---- clocks ---- */

// Timestamps default to CLOCK_MONOTONIC, as in the run file.
static void set_defaults(struct trace *trace)
{
	size_t packet = begin_packet(trace, SEQUENCE_STATE_CLEARED);
	proto_uint(trace->out, PACKET_FIRST_ON_SEQUENCE, true);
	size_t defaults = proto_begin(trace->out, PACKET_DEFAULTS);
	proto_uint(trace->out, DEFAULTS_TIMESTAMP_CLOCK, BUILTIN_MONOTONIC);
	proto_end(trace->out, defaults);
	end_packet(trace, packet);
}

static void add_clock(struct trace *trace, enum clock_id id, int64_t t_ns)
{
	if (!value_ok(t_ns) || t_ns < 0)
		return;
	size_t clock = proto_begin(trace->out, SNAPSHOT_CLOCK);
	proto_uint(trace->out, CLOCK_ID, id);
	proto_uint(trace->out, CLOCK_TIMESTAMP, (uint64_t)t_ns);
	proto_end(trace->out, clock);
}

/* The trace clock is CLOCK_MONOTONIC too, so that viewers show the times of the run file; Perfetto's default is
 * CLOCK_BOOTTIME. */
static void write_clocks(struct trace *trace, const struct run_segment *segment, int64_t t_ns)
{
	int64_t slept_ns = run_slept_ns(trace->run, segment->start_ns, t_ns), boot_ns = VALUE_MISSING;
	if (value_ok(segment->boot_start_ns) && value_ok(slept_ns) &&
		__builtin_add_overflow(segment->boot_start_ns, t_ns - segment->start_ns + slept_ns, &boot_ns))
		boot_ns = VALUE_MISSING;
	size_t packet = begin_packet(trace, SEQUENCE_NEEDS_STATE);
	size_t snapshot = proto_begin(trace->out, PACKET_CLOCK_SNAPSHOT);
	add_clock(trace, BUILTIN_MONOTONIC, t_ns);
	add_clock(trace, BUILTIN_REALTIME, run_wall_ns(trace->run, t_ns));
	add_clock(trace, BUILTIN_BOOTTIME, boot_ns);
	proto_uint(trace->out, SNAPSHOT_PRIMARY_CLOCK, BUILTIN_MONOTONIC);
	proto_end(trace->out, snapshot);
	end_packet(trace, packet);
}

// CLOCK_MONOTONIC stops while the machine is suspended, so the offsets to other clocks increase after each suspend.
static void write_clocks_of(struct trace *trace, const struct run_segment *segment)
{
	write_clocks(trace, segment, segment->start_ns);
	for (size_t i = 0; i < trace->run->n_sleeps; i++) {
		int64_t t_ns = trace->run->sleeps[i].t_ns;
		if (t_ns > segment->start_ns && t_ns <= segment->end_ns)
			write_clocks(trace, segment, t_ns);
	}
}

void trace_begin(struct trace *trace)
{
	set_defaults(trace);
	for (size_t i = 0; i < trace->run->n_segments; i++)
		write_clocks_of(trace, &trace->run->segments[i]);
}

/* ---- tracks ---- */

static void describe_process(struct buf *out, const struct trace_process *process)
{
	size_t message = proto_begin(out, TRACK_PROCESS);
	proto_uint(out, PROCESS_ID, (uint64_t)process->pid);
	if (process->name != NULL)
		proto_text(out, PROCESS_NAME, process->name);
	if (value_ok(process->start_ns))
		proto_uint(out, PROCESS_START_NS, (uint64_t)process->start_ns);
	proto_end(out, message);
}

static void describe_thread(struct buf *out, const struct trace_process *process, int32_t tid)
{
	size_t message = proto_begin(out, TRACK_THREAD);
	proto_uint(out, THREAD_PID, (uint64_t)process->pid);
	proto_uint(out, THREAD_TID, (uint64_t)tid);
	if (tid == process->pid &&
		process->name != NULL) // the main thread has the name of its process; other names are not recorded
		proto_text(out, THREAD_NAME, process->name);
	proto_end(out, message);
}

static void describe_counter(struct buf *out, const struct trace_unit *unit)
{
	size_t message = proto_begin(out, TRACK_COUNTER);
	if (unit->name != NULL && strcmp(unit->name, "bytes") == 0)
		proto_uint(out, COUNTER_UNIT, UNIT_BYTES);
	else if (unit->name != NULL)
		proto_text(out, COUNTER_UNIT_NAME, unit->name);
	if (unit->axis_key != NULL)
		proto_text(out, COUNTER_AXIS_KEY, unit->axis_key);
	proto_end(out, message);
}

static void describe(struct buf *out, const struct trace_track *track, uint64_t uuid)
{
	proto_uint(out, TRACK_UUID, uuid);
	if (track->parent != 0)
		proto_uint(out, TRACK_PARENT_UUID, track->parent);
	if (track->name != NULL)
		proto_text(out, TRACK_NAME, track->name);
	if (track->description != NULL)
		proto_text(out, TRACK_DESCRIPTION, track->description);
	if (track->orders_children)
		proto_uint(out, TRACK_CHILD_ORDERING, ORDERING_EXPLICIT);
	if (track->rank != 0)
		proto_uint(out, TRACK_SIBLING_RANK, (uint64_t)track->rank);
	if (track->unit != NULL)
		describe_counter(out, track->unit);
	if (track->process != NULL && track->tid == 0)
		describe_process(out, track->process);
	if (track->process != NULL && track->tid != 0)
		describe_thread(out, track->process, track->tid);
}

uint64_t trace_track(struct trace *trace, const struct trace_track *track)
{
	uint64_t uuid = trace->uuid_base + ++trace->n_tracks;
	size_t packet = begin_packet(trace, SEQUENCE_NEEDS_STATE);
	size_t descriptor = proto_begin(trace->out, PACKET_TRACK_DESCRIPTOR);
	describe(trace->out, track, uuid);
	proto_end(trace->out, descriptor);
	end_packet(trace, packet);
	return uuid;
}

uint64_t trace_group(struct trace *trace, int rank, const char *label)
{
	return trace_track(trace, &(struct trace_track){.name = label, .orders_children = true, .rank = rank});
}

/* ---- events ---- */

static struct trace_event open_event(struct trace *trace, uint64_t track, int64_t t_ns, enum track_event_type type)
{
	struct trace_event event = {.packet = begin_packet(trace, SEQUENCE_NEEDS_STATE)};
	proto_uint(trace->out, PACKET_TIMESTAMP, (uint64_t)t_ns);
	event.message = proto_begin(trace->out, PACKET_TRACK_EVENT);
	proto_uint(trace->out, EVENT_TYPE, type);
	proto_uint(trace->out, EVENT_TRACK_UUID, track);
	return event;
}

void trace_event_close(struct trace *trace, struct trace_event event)
{
	proto_end(trace->out, event.message);
	end_packet(trace, event.packet);
}

struct trace_event trace_slice_begin(struct trace *trace, uint64_t track, int64_t t_ns)
{
	return open_event(trace, track, t_ns, EVENT_SLICE_BEGIN);
}

void trace_slice_end(struct trace *trace, uint64_t track, int64_t t_ns)
{
	trace_event_close(trace, open_event(trace, track, t_ns, EVENT_SLICE_END));
}

struct trace_event trace_instant(struct trace *trace, uint64_t track, int64_t t_ns)
{
	return open_event(trace, track, t_ns, EVENT_INSTANT);
}

void trace_value(struct trace *trace, uint64_t track, int64_t t_ns, double value)
{
	struct trace_event event = open_event(trace, track, t_ns, EVENT_COUNTER);
	proto_double(trace->out, EVENT_DOUBLE_VALUE, value);
	trace_event_close(trace, event);
}

static void put_category(struct trace *trace, const char *category)
{
	if (category != NULL && category[0] != '\0')
		proto_text(trace->out, EVENT_CATEGORY, category);
}

// Perfetto shows no name for an empty one, so quotes are written.
void trace_event_name(struct trace *trace, const char *name, const char *category)
{
	put_category(trace, category);
	proto_text(trace->out, EVENT_NAME, name[0] != '\0' ? name : "\"\"");
}

// Perfetto's interned ids begin at 1.
void trace_name_number(struct trace *trace, uint32_t number, const char *name)
{
	size_t packet = begin_packet(trace, SEQUENCE_NEEDS_STATE);
	size_t data = proto_begin(trace->out, PACKET_INTERNED_DATA);
	size_t entry = proto_begin(trace->out, INTERNED_EVENT_NAME);
	proto_uint(trace->out, EVENT_NAME_NUMBER, (uint64_t)number + 1);
	proto_text(trace->out, EVENT_NAME_TEXT, name);
	proto_end(trace->out, entry);
	proto_end(trace->out, data);
	end_packet(trace, packet);
}

void trace_event_name_number(struct trace *trace, uint32_t number, const char *category)
{
	put_category(trace, category);
	proto_uint(trace->out, EVENT_NAME_IID, (uint64_t)number + 1);
}

void trace_argument_double(struct trace *trace, const char *name, double value)
{
	if (isnan(value))
		return;
	size_t annotation = proto_begin(trace->out, EVENT_ANNOTATION);
	proto_text(trace->out, ANNOTATION_NAME, name);
	proto_double(trace->out, ANNOTATION_DOUBLE, value);
	proto_end(trace->out, annotation);
}

void trace_argument_int(struct trace *trace, const char *name, int64_t value)
{
	if (!value_ok(value))
		return;
	size_t annotation = proto_begin(trace->out, EVENT_ANNOTATION);
	proto_text(trace->out, ANNOTATION_NAME, name);
	proto_uint(trace->out, ANNOTATION_INT, (uint64_t)value);
	proto_end(trace->out, annotation);
}

void trace_argument_text(struct trace *trace, const char *name, const char *text)
{
	if (text == NULL)
		return;
	size_t annotation = proto_begin(trace->out, EVENT_ANNOTATION);
	proto_text(trace->out, ANNOTATION_NAME, name);
	proto_text(trace->out, ANNOTATION_TEXT, text);
	proto_end(trace->out, annotation);
}
