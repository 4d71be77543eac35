#include "store/sub_tracking.h"

#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Clocks */

// Usual steps of the wall clock are smaller than this; a reboot of the machine changes the offset by more.
enum { SAME_BOOT_S = 1 };

static bool is_recorded(const struct run *run, int64_t t_ns)
{
	for (size_t i = 0; i < run->n_segments; i++)
		if (t_ns >= run->segments[i].start_ns && t_ns <= run->segments[i].end_ns)
			return true;
	return false;
}

// Converts by the anchor of the segment that contains the wall-clock time; VALUE_MISSING outside all segments.
static int64_t from_wall_ns(const struct run *run, int64_t wall_ns)
{
	for (size_t i = 0; i < run->n_segments; i++) {
		const struct run_segment *segment = &run->segments[i];
		if (!value_ok(segment->wall_start_ns))
			continue;
		int64_t t_ns = segment->start_ns + (wall_ns - segment->wall_start_ns);
		if (t_ns >= segment->start_ns && t_ns <= segment->end_ns)
			return t_ns;
	}
	return VALUE_MISSING;
}

// Unix time in seconds to nanoseconds. Whole seconds and fraction are converted separately, so that no bit is rounded away.
static int64_t wall_ns_of(double unix_s)
{
	if (!(fabs(unix_s) < 9e9)) // year 2255: limit of nanoseconds in 64 bits
		return VALUE_MISSING;
	double whole_s = floor(unix_s);
	return (int64_t)whole_s * NS_PER_S + llround((unix_s - whole_s) * 1e9);
}

struct clock { // clocks of a span file and of the run
	const struct run *from, *to;
	bool same;
};

static struct clock clock_between(const struct run *from, const struct run *to)
{
	int64_t apart_ns = (from->anchor_wall_ns - from->anchor_mono_ns) - (to->anchor_wall_ns - to->anchor_mono_ns);
	return (struct clock){from, to, llabs(apart_ns) < SAME_BOOT_S * NS_PER_S};
}

static int64_t moved(const struct clock *clock, int64_t t_ns)
{
	if (!value_ok(t_ns))
		return VALUE_MISSING;
	if (clock->same)
		return is_recorded(clock->to, t_ns) ? t_ns : VALUE_MISSING;
	int64_t wall_ns = run_wall_ns(clock->from, t_ns);
	return value_ok(wall_ns) ? from_wall_ns(clock->to, wall_ns) : VALUE_MISSING;
}

/* Space after the run's own rows */

static int64_t largest_id(const struct run *run)
{
	int64_t largest = 0;
	for (size_t i = 0; i < run->n_spans; i++)
		largest = run->spans[i].id > largest ? run->spans[i].id : largest;
	return largest;
}

static struct run_span *spans_with_room(const struct run *run, size_t n_more)
{
	struct run_span *spans = arena_alloc(run->arena, run->n_spans + n_more, sizeof(*spans));
	if (spans != NULL && run->n_spans > 0)
		memcpy(spans, run->spans, run->n_spans * sizeof(*spans));
	return spans;
}

static struct run_user_metric *metrics_with_room(const struct run *run, size_t n_more)
{
	struct run_user_metric *metrics = arena_alloc(run->arena, run->n_user_metrics + n_more, sizeof(*metrics));
	if (metrics != NULL && run->n_user_metrics > 0)
		memcpy(metrics, run->user_metrics, run->n_user_metrics * sizeof(*metrics));
	return metrics;
}

/* Span files */

// Copies the name into the run's memory, each name once; NULL: no name, or out of memory.
static const char *copy_name(struct intern *names, const char *name)
{
	int64_t number = name != NULL ? intern_number(names, name, strlen(name)) : -ENOENT;
	return number >= 0 ? names->keys[number].bytes : NULL;
}

static size_t add_spans(const struct clock *clock, struct run_span *spans, size_t n, int64_t id_offset,
	struct intern *names)
{
	for (size_t i = 0; i < clock->from->n_spans; i++) {
		struct run_span span = clock->from->spans[i];
		int64_t begin_ns = moved(clock, span.begin_ns);
		if (!value_ok(begin_ns))
			continue;
		span.end_ns = value_ok(span.end_ns) ? begin_ns + (span.end_ns - span.begin_ns) : VALUE_MISSING;
		span.begin_ns = begin_ns;
		span.id += id_offset;
		span.parent = value_ok(span.parent) && span.parent > 0 ? span.parent + id_offset : span.parent;
		span.name = copy_name(names, span.name);
		span.category = copy_name(names, span.category);
		if (span.name != NULL)
			spans[n++] = span;
	}
	return n;
}

static size_t add_metrics(const struct clock *clock, struct run_user_metric *metrics, size_t n, int64_t id_offset,
	struct intern *names)
{
	for (size_t i = 0; i < clock->from->n_user_metrics; i++) {
		struct run_user_metric metric = clock->from->user_metrics[i];
		metric.t_ns = moved(clock, metric.t_ns);
		metric.span = value_ok(metric.span) && metric.span > 0 ? metric.span + id_offset : metric.span;
		metric.name = copy_name(names, metric.name);
		if (value_ok(metric.t_ns) && metric.name != NULL)
			metrics[n++] = metric;
	}
	return n;
}

static int join(struct run *run, const struct run *left, size_t *ret_n)
{
	const struct clock clock = clock_between(left, run);
	struct run_span *spans = spans_with_room(run, left->n_spans);
	struct run_user_metric *metrics = metrics_with_room(run, left->n_user_metrics);
	if (spans == NULL || metrics == NULL)
		return -ENOMEM;
	struct intern names;
	intern_init(&names, run->arena);
	int64_t id_offset = largest_id(run);
	size_t n = add_spans(&clock, spans, run->n_spans, id_offset, &names);
	run->n_user_metrics = add_metrics(&clock, metrics, run->n_user_metrics, id_offset, &names);
	intern_finish(&names);
	*ret_n = n - run->n_spans;
	run->user_metrics = metrics;
	run->n_spans = n;
	run->spans = spans;
	return 0;
}

int run_join_span_file(struct run *run, const char *path, size_t *ret_n, struct wattle_error *reterr)
{
	struct run left;
	int r = span_file_load(path, &left, reterr);
	if (r < 0)
		return r;
	r = join(run, &left, ret_n);
	run_finish(&left);
	return r < 0 ? error_set(reterr, r, "%s: out of memory", path) : 0;
}

/* Sub-tracking files */

static bool make_span(const struct run *run, const struct sub_tracking_call *call, int64_t id, struct run_span *span)
{
	int64_t wall_ns = wall_ns_of(call->begin_s);
	int64_t begin_ns = value_ok(wall_ns) ? from_wall_ns(run, wall_ns) : VALUE_MISSING;
	double length_ns = (call->end_s - call->begin_s) * 1e9;
	if (!value_ok(begin_ns))
		return false;
	bool ended = length_ns < 9e18; // NaN: never stopped
	*span = (struct run_span){
		.id = id,
		.parent = VALUE_MISSING,
		.begin_ns = begin_ns,
		.end_ns = ended ? begin_ns + llround(length_ns) : VALUE_MISSING,
		.cpu_ns = VALUE_MISSING,
		.pid = (int32_t)call->pid,
		.name = call->name,
		.kind = SPAN_NESTED,
		.close = ended ? SPAN_ENDED : SPAN_OPEN,
	};
	return true;
}

int run_join_sub_tracking(struct run *run, const char *path, size_t *ret_n, struct wattle_error *reterr)
{
	struct sub_tracking_call *calls;
	size_t n_calls;
	int r = sub_tracking_read(path, run->arena, &calls, &n_calls, NULL, reterr);
	if (r < 0)
		return r;
	struct run_span *spans = spans_with_room(run, n_calls);
	if (spans == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	size_t n = run->n_spans;
	int64_t id = largest_id(run);
	for (size_t i = 0; i < n_calls; i++)
		if (make_span(run, &calls[i], id + 1, &spans[n])) {
			id++;
			n++;
		}
	*ret_n = n - run->n_spans;
	run->spans = spans;
	run->n_spans = n;
	return 0;
}
