// Instant events: limits, throttling, gaps, marks of the program, and the ends of segments.
#include "report/trace/internal.h"

#include "energy/slice.h"
#include "base/util.h"
#include "report/report.h"

enum { NAME_CEILING = 1 << 24 };

enum kind_track { TRACK_SEGMENTS, TRACK_LIMITS, TRACK_THROTTLING, TRACK_GAPS, TRACK_MARKS, TRACK_NOTES, KIND_TRACKS };

static const char *const track_names[KIND_TRACKS] = {
	[TRACK_SEGMENTS] = "recording",
	[TRACK_LIMITS] = "power limits",
	[TRACK_THROTTLING] = "throttling",
	[TRACK_GAPS] = "gaps",
	[TRACK_MARKS] = "marks",
	[TRACK_NOTES] = "notes",
};

static const struct {
	enum event_kind kind;
	enum kind_track track;
} kinds[] = {
	{EVENT_KIND_SEGMENT, TRACK_SEGMENTS},
	{EVENT_KIND_CAP, TRACK_LIMITS},
	{EVENT_KIND_THROTTLE, TRACK_THROTTLING},
	{EVENT_KIND_THROTTLE_END, TRACK_THROTTLING},
	{EVENT_KIND_GAP, TRACK_GAPS},
	{EVENT_KIND_GAP_END, TRACK_GAPS},
	{EVENT_KIND_RESET, TRACK_GAPS},
	{EVENT_KIND_SUSPEND, TRACK_GAPS},
	{EVENT_KIND_LOST, TRACK_GAPS},
	{EVENT_KIND_MARK, TRACK_MARKS},
};

struct instants {
	struct trace *trace;
	uint64_t group, tracks[KIND_TRACKS]; // 0: no event yet
};

static enum kind_track track_of(enum event_kind kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].kind == kind)
			return kinds[i].track;
	return TRACK_NOTES;
}

static uint64_t track(struct instants *instants, enum kind_track kind)
{
	if (instants->group == 0)
		instants->group = trace_group(instants->trace, RANK_RUN, "run");
	if (instants->tracks[kind] == 0)
		instants->tracks[kind] = trace_track(instants->trace,
			&(struct trace_track){.name = track_names[kind],
				.parent = instants->group,
				.rank = (int)kind + 1});
	return instants->tracks[kind];
}

/* ---- missing readings without an event ---- */

struct silence {
	struct instants *instants;
	const struct run_device *device;
	size_t event; // first event that may lie in the next gap
};

static bool is_about(const struct event *event, const struct run_device *device)
{
	return event->kind == EVENT_KIND_SUSPEND || event->kind == EVENT_KIND_LOST ||
		(event->kind == EVENT_KIND_GAP && event_is_of(event, device->name));
}

static bool is_told(struct silence *silence, int64_t from_ns, int64_t to_ns)
{
	const struct run *run = silence->instants->trace->run;
	while (silence->event < run->n_events && run->events[silence->event].t_ns < from_ns)
		silence->event++;
	for (size_t i = silence->event; i < run->n_events && run->events[i].t_ns <= to_ns; i++)
		if (is_about(&run->events[i], silence->device))
			return true;
	return false;
}

static void put_silence(struct silence *silence, int64_t from_ns, int64_t to_ns)
{
	struct trace *trace = silence->instants->trace;
	if (to_ns - from_ns <= trace->hole_ns || is_told(silence, from_ns, to_ns))
		return;
	struct trace_event instant = trace_instant(trace, track(silence->instants, TRACK_GAPS), from_ns);
	struct buf name;
	buf_init(&name, 256);
	buf_printf(&name, "gap: %s: no reading for ", silence->device->name);
	human_time(&name, (double)(to_ns - from_ns) / 1e9);
	trace_event_name(trace, name.failed == 0 ? name.data : "gap", "gap");
	trace_event_close(trace, instant);
	buf_finish(&name);
}

static void put_silences(struct instants *instants, const struct run_device *device)
{
	const struct run *run = instants->trace->run;
	struct silence silence = {.instants = instants, .device = device};
	for (size_t s = 0; s < run->n_segments; s++) {
		struct slice rows = slice_of(run, s, device->t_ns, device->n);
		int64_t before_ns = VALUE_MISSING;
		for (size_t i = rows.begin; i < rows.end; i++) {
			if (!device_is_metered(device, i))
				continue;
			if (value_ok(before_ns))
				put_silence(&silence, before_ns, device->t_ns[i]);
			before_ns = device->t_ns[i];
		}
	}
}

/* ---- events ---- */

static void put_event(struct instants *instants, const struct event *event)
{
	struct trace *trace = instants->trace;
	const char *kind = event->kind_name != NULL ? event->kind_name : "",
		   *text = event->text != NULL ? event->text : "";
	bool is_mark = event->kind == EVENT_KIND_MARK; // the text of a mark is its name, set by the program
	uint64_t at = track(instants, track_of(event->kind));
	struct trace_event instant = trace_instant(trace, at, event->t_ns);
	struct buf name;
	buf_init(&name, NAME_CEILING);
	if (!is_mark) {
		buf_str(&name, kind);
		buf_str(&name, ": ");
	}
	buf_str(&name, text);
	trace_event_name(trace, name.data != NULL && !name.failed ? name.data : kind, kind);
	trace_argument_text(trace, "text", text);
	trace_event_close(trace, instant);
	buf_finish(&name);
}

/* ---- segments ---- */

static void put_start(struct instants *instants, size_t index)
{
	struct trace *trace = instants->trace;
	const struct findings *findings = trace->findings;
	const struct run_segment *segment = &trace->run->segments[index];
	struct trace_event instant = trace_instant(trace, track(instants, TRACK_SEGMENTS), segment->start_ns);
	trace_event_name(trace, "start", "segment");
	trace_argument_text(trace, "command", segment->command_json);
	trace_argument_int(trace, "pid", segment->pid);
	trace_argument_int(trace, "segment", segment->id);
	if (index == 0) { // metadata of the whole run, written once
		trace_argument_text(trace, "run", run_metadata(trace->run, "id"));
		trace_argument_text(trace, "host", run_metadata(trace->run, "host"));
		trace_argument_text(trace, "label", run_metadata(trace->run, "label"));
		trace_argument_text(trace, "wattle", run_metadata(trace->run, "wattle_version"));
		trace_argument_double(trace, "energy_j", findings->total_j);
		trace_argument_double(trace, "error_j", findings->error_j);
		trace_argument_double(trace, "calibration_error_j", findings->calibration_error_j);
		trace_argument_double(trace, "target_j", findings->ledger.target_j);
		trace_argument_text(trace, "provenance",
			isnan(findings->total_j) ? NULL : provenance_name(findings->provenance));
	}
	trace_event_close(trace, instant);
}

static void put_end(struct instants *instants, const struct run_segment *segment)
{
	struct trace *trace = instants->trace;
	struct trace_event instant = trace_instant(trace, track(instants, TRACK_SEGMENTS), segment->end_ns);
	trace_event_name(trace, segment->complete ? "end" : "end of the recording", "segment");
	trace_argument_int(trace, "exit_code", segment->exit_code);
	trace_argument_int(trace, "samples", segment->samples);
	trace_argument_int(trace, "lost_samples", segment->lost_samples);
	trace_event_close(trace, instant);
}

void trace_instants(struct trace *trace)
{
	struct instants instants = {.trace = trace};
	for (size_t i = 0; i < trace->run->n_segments; i++) {
		put_start(&instants, i);
		if (value_ok(trace->run->segments[i].end_ns))
			put_end(&instants, &trace->run->segments[i]);
	}
	for (size_t i = 0; i < trace->run->n_events; i++)
		put_event(&instants, &trace->run->events[i]);
	for (size_t i = 0; i < trace->run->n_devices; i++)
		put_silences(&instants, &trace->run->devices[i]);
}
