#include "store/sub_tracking.h"

#include "base/arena.h"
#include "base/util.h"
#include "store/run_read.h"
#include "store/schema.h"

#include <errno.h>
#include <inttypes.h>

struct collected {
	struct span_row *spans;           // owned
	struct span_metric_row *metrics;  // owned
	struct span_mark_row *marks;      // owned
	size_t n_spans, n_metrics, n_marks;
	size_t spans_capacity, metrics_capacity, marks_capacity;
	bool is_out_of_memory;
};

/* ---- collecting rows ---- */

static void on_span(void *data, const struct span_row *row)
{
	struct collected *c = data;
	struct span_row *larger = array_reserve(c->spans, c->n_spans, &c->spans_capacity, sizeof(*larger), 1024);
	if (larger == NULL) {
		c->is_out_of_memory = true;
		return;
	}
	c->spans = larger;
	c->spans[c->n_spans++] = *row;
}

static void on_metric(void *data, const struct span_metric_row *row)
{
	struct collected *c = data;
	struct span_metric_row *larger = array_reserve(c->metrics, c->n_metrics, &c->metrics_capacity, sizeof(*larger),
		256);
	if (larger == NULL) {
		c->is_out_of_memory = true;
		return;
	}
	c->metrics = larger;
	c->metrics[c->n_metrics++] = *row;
}

static void on_mark(void *data, const struct span_mark_row *row)
{
	struct collected *c = data;
	struct span_mark_row *larger = array_reserve(c->marks, c->n_marks, &c->marks_capacity, sizeof(*larger), 256);
	if (larger == NULL) {
		c->is_out_of_memory = true;
		return;
	}
	c->marks = larger;
	c->marks[c->n_marks++] = *row;
}

static void release(struct collected *c)
{
	free(c->spans);
	free(c->metrics);
	free(c->marks);
}

/* ---- conversion to a run ---- */

struct temporary_path {
	const struct collected *collected;
	const struct span_recording *recording;
	const struct span_file_info *facts;
	const char **names; // in the run's arena, by number
	struct run *run;
};

static const char *name_of(const struct temporary_path *m, uint32_t name)
{
	return name < m->recording->names.n ? m->names[name] : NULL;
}

static int copy_names(struct temporary_path *m)
{
	uint32_t n = m->recording->names.n;
	m->names = arena_alloc(m->run->arena, n, sizeof(*m->names));
	for (uint32_t i = 0; m->names != NULL && i < n; i++)
		if ((m->names[i] = arena_text(m->run->arena, name_table_text(&m->recording->names, i))) == NULL)
			return -ENOMEM;
	return m->names != NULL ? 0 : -ENOMEM;
}

static int make_spans(struct temporary_path *m)
{
	const struct collected *c = m->collected;
	struct run_span *spans = arena_alloc(m->run->arena, c->n_spans, sizeof(*spans));
	if (spans == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_spans; i++) {
		const struct span_row *row = &c->spans[i];
		spans[i] = (struct run_span){
			.id = row->id,
			.parent = row->parent,
			.begin_ns = row->begin_ns,
			.end_ns = row->end_ns,
			.cpu_ns = row->cpu_ns,
			.pid = row->pid,
			.tid = row->tid,
			.name = name_of(m, row->name),
			.category = name_of(m, row->category),
			.kind = (enum span_kind)row->kind,
			.close = (enum span_close)row->close,
		};
	}
	m->run->spans = spans;
	m->run->n_spans = c->n_spans;
	return sort_rows(spans, sizeof(*spans), c->n_spans, offsetof(struct run_span, begin_ns),
		offsetof(struct run_span, id));
}

static int make_metrics(struct temporary_path *m)
{
	const struct collected *c = m->collected;
	struct run_user_metric *metrics = arena_alloc(m->run->arena, c->n_metrics, sizeof(*metrics));
	if (metrics == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_metrics; i++) {
		const struct span_metric_row *row = &c->metrics[i];
		metrics[i] = (struct run_user_metric){
			.t_ns = row->t_ns,
			.name = name_of(m, row->name),
			.value = row->value,
			.span = row->span,
			.pid = row->pid,
			.tid = row->tid,
		};
	}
	m->run->user_metrics = metrics;
	m->run->n_user_metrics = c->n_metrics;
	return sort_rows(metrics, sizeof(*metrics), c->n_metrics, offsetof(struct run_user_metric, t_ns), SORT_NO_ID);
}

static int make_events(struct temporary_path *m)
{
	const struct collected *c = m->collected;
	struct event *events = arena_alloc(m->run->arena, c->n_marks, sizeof(*events));
	if (events == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_marks; i++)
		events[i] = event_mark(c->marks[i].t_ns, name_of(m, c->marks[i].name));
	m->run->events = events;
	m->run->n_events = c->n_marks;
	return sort_rows(events, sizeof(*events), c->n_marks, offsetof(struct event, t_ns), SORT_NO_ID);
}

static int64_t limited(uint64_t n)
{
	return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

static void forget_figures(struct run_segment *segment)
{
	size_t n;
	const int64_t missing = VALUE_MISSING;
	const struct schema_figure *figures = schema_figures(&n);
	for (size_t i = 0; i < n; i++)
		memcpy((unsigned char *)segment + figures[i].in_segment, &missing, sizeof(missing));
}

// The segment covers the time from the first to the last recorded instant.
static int make_segment(struct temporary_path *m)
{
	const struct run *run = m->run;
	struct run_segment *segment = arena_alloc(run->arena, 1, sizeof(*segment));
	if (segment == NULL)
		return -ENOMEM;
	int64_t start_ns = m->facts->anchor_mono_ns, end_ns = start_ns;
	if (run->n_spans > 0 && run->spans[0].begin_ns < start_ns)
		start_ns = run->spans[0].begin_ns;
	for (size_t i = 0; i < run->n_spans; i++)
		end_ns = run->spans[i].end_ns > end_ns ? run->spans[i].end_ns : end_ns;
	if (run->n_user_metrics > 0 && run->user_metrics[run->n_user_metrics - 1].t_ns > end_ns)
		end_ns = run->user_metrics[run->n_user_metrics - 1].t_ns;
	if (run->n_events > 0 && run->events[run->n_events - 1].t_ns > end_ns)
		end_ns = run->events[run->n_events - 1].t_ns;
	forget_figures(segment);
	segment->id = 1;
	segment->start_ns = start_ns;
	segment->end_ns = end_ns;
	segment->boot_start_ns = VALUE_MISSING;
	segment->wall_start_ns = m->facts->anchor_wall_ns + (start_ns - m->facts->anchor_mono_ns);
	segment->command_json = "[]";
	segment->complete = true;
	segment->lost_spans = limited(m->facts->lost);
	segment->unwound_spans = limited(m->facts->unwound);
	m->run->segments = segment;
	m->run->n_segments = 1;
	return 0;
}

static const char *number(struct arena *arena, int64_t value)
{
	return arena_printf(arena, "%" PRId64, value);
}

static int make_facts(struct temporary_path *m)
{
	struct arena *arena = m->run->arena;
	const struct run_metadata facts[] = {
		{"schema", "wattle-spans"},
		{"complete", "true"},
		{"anchor_mono_ns", number(arena, m->facts->anchor_mono_ns)},
		{"anchor_wall_ns", number(arena, m->facts->anchor_wall_ns)},
	};
	m->run->facts = arena_alloc(arena, ARRAY_SIZE(facts), sizeof(facts[0]));
	if (m->run->facts == NULL || facts[2].value == NULL || facts[3].value == NULL)
		return -ENOMEM;
	memcpy(m->run->facts, facts, sizeof(facts));
	m->run->n_metadata = ARRAY_SIZE(facts);
	m->run->anchor_mono_ns = m->facts->anchor_mono_ns;
	m->run->anchor_wall_ns = m->facts->anchor_wall_ns;
	return 0;
}

static int make_run(struct temporary_path *m)
{
	int r = m->run->arena != NULL && !m->collected->is_out_of_memory ? copy_names(m) : -ENOMEM;
	if (r == 0)
		r = make_spans(m);
	if (r == 0)
		r = make_metrics(m);
	if (r == 0)
		r = make_events(m);
	if (r == 0)
		r = make_segment(m);
	if (r == 0)
		r = make_facts(m);
	return r;
}

int span_file_load(const char *path, struct run *ret_run, struct wattle_error *reterr)
{
	struct collected collected = {0};
	struct span_file_info facts;
	struct span_recording recording;
	const struct span_sink sink = {on_span, on_metric, on_mark, &collected};
	if (span_recording_init(&recording, &sink) < 0)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	int r = span_file_read(path, &recording, &facts, reterr);
	if (r == 0) {
		struct run run = {.arena = arena_new()};
		struct temporary_path temporary_path = {&collected, &recording, &facts, NULL, &run};
		r = make_run(&temporary_path);
		if (r == 0)
			*ret_run = run;
		else
			run_finish(&run);
		if (r < 0)
			error_set(reterr, r, "%s: out of memory", path);
	}
	span_recording_finish(&recording);
	release(&collected);
	return r;
}
