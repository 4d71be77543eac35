/* Reads spans, metrics and marks from the tables, and from the spool if one exists. There may be millions. */
#include "store/run_read.h"

#include "base/intern.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- reading ---- */

enum { RECENT_NAMES = 64 };

struct word { // the latest text of a column of few different ones, and its value
	char text[16];
	size_t size;
	int value;
};

struct reading {
	struct run_reader *reader;
	struct run *run;
	struct intern names;
	struct recent_name {
		const char *name; // one of `names`
		size_t size;      // of the column's bytes
	} recent_names[RECENT_NAMES]; // by size and last character
	struct word kind, close;
	size_t spans_capacity, metrics_capacity, events_capacity;
	const char **spool_names; // owned; indexed by name number in the spool
	bool is_out_of_memory;
};

// Equal names share one text. NULL: out of memory. bytes need not end in NUL.
static const char *shared_name(struct intern *names, const char *bytes, size_t length)
{
	int64_t number = intern_number(names, bytes, strnlen(bytes, length));
	return number >= 0 ? names->keys[number].bytes : NULL;
}

// Most names are among the latest ones, which need no hash.
static const char *column_name(struct reading *r, const struct cells *s, int column)
{
	size_t size;
	const char *bytes = s->ops->bytes(s->row, column, &size);
	if (bytes == NULL)
		return NULL;
	size_t last = size > 0 ? (unsigned char)bytes[size - 1] : 0;
	struct recent_name *recent = &r->recent_names[(size * 8 + last) % RECENT_NAMES];
	if (recent->name != NULL && recent->size == size && strncmp(recent->name, bytes, size) == 0)
		return recent->name;
	const char *name = shared_name(&r->names, bytes, size);
	r->is_out_of_memory |= name == NULL;
	*recent = (struct recent_name){name, size};
	return name;
}

static int enum_of(struct word *word, const struct cells *s, int column, int (*from_name)(const char *), int fallback)
{
	size_t size;
	const char *bytes = s->ops->bytes(s->row, column, &size);
	size = bytes == NULL ? 0 : size < sizeof(word->text) ? size : sizeof(word->text) - 1;
	if (size == word->size && size > 0 && memcmp(word->text, bytes, size) == 0)
		return word->value;
	cells_copy(s, column, word->text, sizeof(word->text)); // longer than each of the names: a truncated one never matches
	word->size = size;
	int value = from_name(word->text);
	return word->value = value >= 0 ? value : fallback;
}

static int32_t small_number(const struct cells *s, int column)
{
	int64_t value = cells_i64(s, column);
	return value_ok(value) ? (int32_t)value : 0;
}

enum { ID, PARENT, PID, TID, BEGIN, END, NAME, CPU, CATEGORY, KIND, CLOSE };

static int fill_span(void *data, const struct cells *s)
{
	struct reading *r = data;
	if (r->run->n_spans == r->spans_capacity)
		return 0;
	struct run_span *span = &r->run->spans[r->run->n_spans];
	const char *name = column_name(r, s, NAME);
	*span = (struct run_span){
		.id = cells_i64(s, ID),
		.parent = cells_i64(s, PARENT),
		.begin_ns = cells_i64(s, BEGIN),
		.end_ns = cells_i64(s, END),
		.cpu_ns = cells_i64(s, CPU),
		.pid = small_number(s, PID),
		.tid = small_number(s, TID),
		.name = name != NULL ? name : "",
		.category = column_name(r, s, CATEGORY),
		.kind = (enum span_kind)enum_of(&r->kind, s, KIND, span_kind_from_name, SPAN_NESTED),
	};
	bool has_ended = value_ok(span->end_ns);
	span->close = has_ended ? (enum span_close)enum_of(&r->close, s, CLOSE, span_close_from_name, SPAN_ENDED) : SPAN_OPEN;
	r->run->n_spans += value_ok(span->begin_ns);
	return r->is_out_of_memory ? SQLITE_NOMEM : 0;
}

static int fill_metric(void *data, const struct cells *s)
{
	struct reading *r = data;
	if (r->run->n_user_metrics == r->metrics_capacity)
		return 0;
	const char *name = column_name(r, s, 1);
	r->run->user_metrics[r->run->n_user_metrics++] = (struct run_user_metric){
		.t_ns = cells_i64(s, 0),
		.name = name != NULL ? name : "",
		.value = cells_double(s, 2),
		.span = cells_i64(s, 3),
		.pid = small_number(s, 4),
		.tid = small_number(s, 5),
	};
	return r->is_out_of_memory ? SQLITE_NOMEM : 0;
}

/* ---- the spool ---- */

static const char *spool_name(const struct reading *r, uint32_t name)
{
	return name < SPOOL_NAMES ? r->spool_names[name] : NULL;
}

static int take_name(void *data, uint32_t name, const char *bytes, size_t length)
{
	struct reading *r = data;
	if (name >= SPOOL_NAMES)
		return 0;
	r->spool_names[name] = shared_name(&r->names, bytes, length);
	return r->spool_names[name] != NULL ? 0 : -ENOMEM;
}

static int take_span(void *data, const struct spool_span *row)
{
	struct reading *r = data;
	const char *name = spool_name(r, row->name);
	if (name == NULL || row->kind >= SPAN_KINDS || row->close >= SPAN_CLOSES ||
		r->run->n_spans == r->spans_capacity)
		return 0;
	r->run->spans[r->run->n_spans++] = (struct run_span){
		.id = row->id,
		.parent = row->parent,
		.begin_ns = row->begin_ns,
		.end_ns = row->end_ns,
		.cpu_ns = row->cpu_ns,
		.pid = row->pid,
		.tid = row->tid,
		.name = name,
		.category = spool_name(r, row->category),
		.kind = (enum span_kind)row->kind,
		.close = (enum span_close)row->close,
	};
	return 0;
}

static int take_metric(void *data, const struct spool_metric *row)
{
	struct reading *r = data;
	const char *name = spool_name(r, row->name);
	if (name == NULL || r->run->n_user_metrics == r->metrics_capacity)
		return 0;
	r->run->user_metrics[r->run->n_user_metrics++] = (struct run_user_metric){.t_ns = row->t_ns,
		.name = name,
		.value = row->value,
		.span = row->span,
		.pid = row->pid,
		.tid = row->tid};
	return 0;
}

static int take_mark(void *data, const struct spool_mark *row)
{
	struct reading *r = data;
	const char *name = spool_name(r, row->name);
	if (name == NULL || r->run->n_events == r->events_capacity)
		return 0;
	r->run->events[r->run->n_events++] = event_mark(row->t_ns, name);
	return 0;
}

static int64_t spool_bytes_stored(struct run_reader *reader)
{
	char select[128];
	if (!reader->source->has_column(reader, "segment", "spool_bytes"))
		return 0;
	snprintf(select, sizeof(select), "SELECT spool_bytes FROM segment WHERE id = %lld",
		(long long)reader->spool.segment);
	return sql_read_i64(reader->db, select, 0);
}

static int64_t spool_bytes_left(struct run_reader *reader, int64_t done)
{
	struct stat st;
	if (reader->spool_fd < 0 || fstat(reader->spool_fd, &st) != 0 || st.st_size <= done)
		return 0;
	return st.st_size - done;
}

static int read_spool(struct reading *r, int64_t from)
{
	r->spool_names = calloc_array(SPOOL_NAMES, sizeof(*r->spool_names));
	if (r->spool_names == NULL)
		return SQLITE_NOMEM;
	const struct spool_callbacks callbacks = {take_name, take_span, take_metric, take_mark, NULL, r};
	int code = spool_read(r->reader->spool_fd, from, &callbacks);
	return code == -ENOMEM ? SQLITE_NOMEM : code < 0 ? SQLITE_IOERR : SQLITE_OK;
}

/* ---- space and order ---- */

static int make_room(struct reading *r, int64_t spool_bytes)
{
	static const struct run_question metrics = {"user_metric", "count(1)"}; // count(*) is one step: sql_guard.c
	struct run *run = r->run;
	size_t bytes = (size_t)spool_bytes;
	int result = r->reader->source->max_spans(r->reader, &r->spans_capacity);
	if (result == 0)
		result = r->reader->source->read(r->reader, &metrics, run_take_sum, &r->metrics_capacity);
	if (result != 0)
		return result;
	r->spans_capacity += bytes / sizeof(struct spool_span);
	r->metrics_capacity += bytes / sizeof(struct spool_metric);
	r->events_capacity = run->n_events + bytes / sizeof(struct spool_mark);
	struct event *events = run->events;
	run->spans = arena_alloc(r->reader->arena, r->spans_capacity, sizeof(*run->spans));
	run->user_metrics = arena_alloc(r->reader->arena, r->metrics_capacity, sizeof(*run->user_metrics));
	if (bytes > 0) {
		run->events = arena_alloc(r->reader->arena, r->events_capacity, sizeof(*run->events));
		if (run->events != NULL && run->n_events > 0)
			memcpy(run->events, events, run->n_events * sizeof(*events));
	}
	if (run->spans != NULL && run->user_metrics != NULL && run->events != NULL)
		return SQLITE_OK;
	run->n_events = 0;
	return SQLITE_NOMEM;
}

// An open span that has ended since appears twice, in adjacent rows: the open row is dropped.
static void drop_doubles(struct run *run)
{
	size_t n = 0;
	for (size_t i = 0; i < run->n_spans; i++) {
		bool is_double = n > 0 && run->spans[n - 1].id == run->spans[i].id;
		if (is_double && run->spans[i].close == SPAN_OPEN)
			continue;
		n -= is_double;
		if (n != i)
			run->spans[n] = run->spans[i];
		n++;
	}
	run->n_spans = n;
}

static int order(struct run *run)
{
	int r = sort_rows(run->spans, sizeof(*run->spans), run->n_spans, offsetof(struct run_span, begin_ns),
		offsetof(struct run_span, id));
	if (r == 0)
		r = sort_rows(run->user_metrics, sizeof(*run->user_metrics), run->n_user_metrics,
			offsetof(struct run_user_metric, t_ns), SORT_NO_ID);
	if (r == 0)
		r = sort_rows(run->events, sizeof(*run->events), run->n_events, offsetof(struct event, t_ns),
			SORT_NO_ID);
	return r == 0 ? SQLITE_OK : SQLITE_NOMEM;
}

static int read_tables(struct reading *r)
{
	// Fallback for the first files of this schema, which lack how a span ended and the owner of a metric.
	static const struct run_question spans[] = {
		{"span", "id, NULL, pid, tid, begin_ns, end_ns, name, NULL, NULL, NULL, NULL"},
		{"span", "id, parent, pid, tid, begin_ns, end_ns, name, cpu_ns, category, kind, close"},
	};
	static const struct run_question metrics[] = {
		{"user_metric", "t_ns, name, value, NULL, NULL, NULL"},
		{"user_metric", "t_ns, name, value, span, pid, tid"},
	};
	const struct run_source *source = r->reader->source;
	int result = source->read(r->reader, &spans[source->has_column(r->reader, "span", "close")], fill_span, r);
	if (result != 0)
		return result;
	return source->read(r->reader, &metrics[source->has_column(r->reader, "user_metric", "span")], fill_metric, r);
}

int run_read_spans(struct run_reader *reader, struct run *run)
{
	struct reading r = {.reader = reader, .run = run};
	intern_init(&r.names, reader->arena);
	int64_t done = reader->spool_fd >= 0 ? spool_bytes_done(reader->spool_fd, spool_bytes_stored(reader)) : 0;
	int64_t left = spool_bytes_left(reader, done);
	int result = make_room(&r, left);
	if (result == SQLITE_OK)
		result = read_tables(&r);
	if (result == SQLITE_OK && left > 0)
		result = read_spool(&r, done);
	if (result == SQLITE_OK)
		result = order(run);
	if (result == SQLITE_OK && left > 0)
		drop_doubles(run);
	intern_finish(&r.names);
	free(r.spool_names);
	return result;
}
