#include "report/trace/internal.h"

#include "base/util.h"

#include <stdarg.h>
#include <stdio.h>

static bool same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

void trace_counter_put(struct trace_counter *counter, int64_t t_ns, double value)
{
	bool appeared = counter->track != 0;
	if (appeared ? same(value, counter->last) : isnan(value))
		return;
	if (!appeared) {
		counter->about.unit = &counter->unit;
		counter->track = trace_track(counter->trace, &counter->about);
	}
	counter->last = value;
	trace_value(counter->trace, counter->track, t_ns, value);
}

// Writes a value over its window. The first and last window of a segment extend without limit.
void trace_window_put(struct trace_counter *counter, const struct windows *windows, size_t window, double value)
{
	struct window at = windows_at(windows, window);
	const struct run_segment *segment = &counter->trace->run->segments[at.segment];
	bool is_last = window + 1 == windows->n || windows->rows[window + 1].segment != at.segment;
	trace_counter_put(counter, trace_later_ns(at.from_ns, segment->start_ns), value);
	if (is_last)
		trace_counter_put(counter, trace_sooner_ns(at.to_ns, segment->end_ns), (double)NAN);
}

const char *trace_text(struct trace *trace, const char *format, ...)
{
	char text[256]; // names of domains and devices are shorter
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	const char *copy = arena_text(trace->arena, text);
	return copy != NULL ? copy : "";
}
