#include "span/reader/reader.h"

#include "base/util.h"

#include <errno.h>

enum { STACK_FIRST = 16 };

int span_recording_init(struct span_recording *recording, const struct span_sink *sink)
{
	*recording = (struct span_recording){.sink = *sink};
	return name_table_init(&recording->names);
}

void span_recording_finish(struct span_recording *recording)
{
	name_table_finish(&recording->names);
}

void span_decoder_init(struct span_decoder *decoder, struct span_recording *recording, struct span_ranges *ranges,
	int32_t pid, int32_t tid, int64_t floor_ns)
{
	*decoder = (struct span_decoder){.recording = recording,
		.ranges = ranges,
		.pid = pid,
		.tid = tid,
		.last_ns = floor_ns};
	span_decoder_clear_names(decoder);
}

void span_decoder_finish(struct span_decoder *decoder)
{
	decoder->recording->n_open -= decoder->n_open;
	decoder->recording->n_reserved -= decoder->room;
	free(decoder->rows);
	free(decoder->open);
	decoder->rows = NULL;
	decoder->open = NULL;
	decoder->n_open = decoder->room = 0;
}

void span_decoder_clear_names(struct span_decoder *decoder)
{
	for (size_t i = 0; i < SPAN_NAME_SLOTS; i++)
		decoder->slots[i] = SPAN_NO_NAME;
}

/* ---- reading a record ---- */

struct context {
	struct span_decoder *decoder;
	struct span_counts *counts;
	int64_t now_ns;
	uint32_t round;
};

// A record with its extra records.
struct event {
	const struct span_record *record;
	const struct record_extra *extras;
	int64_t t_ns;
};

static int64_t checked_time(struct context *c, int64_t t_ns)
{
	struct span_decoder *decoder = c->decoder;
	int64_t good_ns = t_ns < decoder->last_ns ? decoder->last_ns : t_ns > c->now_ns ? c->now_ns : t_ns;
	// The reader's clock may not be earlier than a time accepted before.
	if (good_ns < decoder->last_ns)
		good_ns = decoder->last_ns;
	c->counts->clamped += good_ns != t_ns;
	decoder->last_ns = good_ns;
	return good_ns;
}

static uint32_t name_of(struct context *c, uint16_t slot)
{
	uint32_t name = slot < SPAN_NAME_SLOTS ? c->decoder->slots[slot] : SPAN_NO_NAME;
	if (name != SPAN_NO_NAME)
		return name;
	static const char unknown[] = "(unknown name)";
	c->counts->bad_records++;
	return name_table_add(&c->decoder->recording->names, unknown, sizeof(unknown) - 1);
}

// `at`: index of the first extra number not used by the record's kind; the flags give their meaning.
static uint32_t category_of(struct context *c, const struct event *event, size_t at)
{
	if ((event->record->flags & RECORD_HAS_CATEGORY) == 0)
		return SPAN_NO_NAME;
	uint64_t slot = event->extras[at].number;
	uint32_t name = slot < SPAN_NAME_SLOTS ? c->decoder->slots[slot] : SPAN_NO_NAME;
	c->counts->bad_records += name == SPAN_NO_NAME;
	return name;
}

static int64_t cpu_of(const struct event *event)
{
	if ((event->record->flags & RECORD_HAS_CPU) == 0 || event->extras[0].number > INT64_MAX)
		return VALUE_MISSING;
	return (int64_t)event->extras[0].number;
}

static int64_t innermost(const struct span_decoder *decoder)
{
	return decoder->n_open > 0 ? decoder->rows[decoder->open[decoder->n_open - 1]].id : VALUE_MISSING;
}

static void hand_out(struct span_recording *recording, struct span_row *row, enum span_close how, int64_t end_ns)
{
	row->close = (uint8_t)how;
	row->end_ns = end_ns > row->begin_ns ? end_ns : row->begin_ns;
	recording->counts.unwound += how == SPAN_UNWOUND;
	recording->n_open--;
	recording->sink.span(recording->sink.data, row);
}

/* ---- nested spans ---- */

// Doubles the room for open spans. Streams keep their room after a deep stack, so the total is limited.
static bool grow_stack(struct span_decoder *decoder)
{
	size_t room = decoder->room > 0 ? 2 * decoder->room : STACK_FIRST;
	if (decoder->recording->n_reserved + room - decoder->room > SPAN_RESERVED_MAX)
		return false;
	struct span_row *rows = realloc(decoder->rows, room * sizeof(*rows));
	if (rows == NULL)
		return false;
	decoder->rows = rows;
	uint16_t *open = realloc(decoder->open, room * sizeof(*open));
	if (open == NULL)
		return false;
	decoder->open = open;
	for (size_t i = decoder->room; i < room; i++)
		open[i] = (uint16_t)i;
	decoder->recording->n_reserved += room - decoder->room;
	decoder->room = room;
	return true;
}

// Place for the row of a new open span; NULL: no room.
static struct span_row *push(struct span_decoder *decoder)
{
	if (decoder->n_unseen > 0 || decoder->n_open == SPAN_DEPTH_MAX || decoder->recording->n_open >= SPAN_OPEN_MAX ||
		(decoder->n_open == decoder->room && !grow_stack(decoder)))
		return NULL;
	decoder->recording->n_open++;
	return &decoder->rows[decoder->open[decoder->n_open++]];
}

// Sets each member in place: copying a whole row right after writing its parts stalls the processor until all stores
// are done.
static void fill_row(struct context *c, const struct event *event, enum span_kind kind, int64_t parent,
	struct span_row *row)
{
	const struct span_decoder *decoder = c->decoder;
	row->id = ++decoder->recording->last_id;
	row->parent = parent;
	row->begin_ns = event->t_ns;
	row->end_ns = row->cpu_ns = VALUE_MISSING;
	row->pid = decoder->pid;
	row->tid = decoder->tid;
	row->name = name_of(c, event->record->slot);
	row->kind = (uint8_t)kind;
	row->close = SPAN_OPEN;
	row->stored = false;
	memset(row->reserved, 0, sizeof(row->reserved));
}

static void on_begin(struct context *c, const struct event *event)
{
	int64_t parent = innermost(c->decoder);
	struct span_row *row = push(c->decoder);
	if (row == NULL) {
		c->decoder->n_unseen++;
		c->counts->dropped++;
		return;
	}
	fill_row(c, event, SPAN_NESTED, parent, row);
	row->cpu_ns = cpu_of(event);
	row->category = category_of(c, event, (event->record->flags & RECORD_HAS_CPU) != 0);
}

/* Ends the open span number `at`, where 0 is the outermost. Only the numbers of the spans inside it move, at most 2
 * KiB: a program may end the outermost of 1,024 spans repeatedly. */
static void close_one(struct span_decoder *decoder, size_t at, enum span_close how, int64_t t_ns, int64_t cpu_ns)
{
	uint16_t place = decoder->open[at];
	struct span_row row = decoder->rows[place];
	decoder->n_open--;
	memmove(&decoder->open[at], &decoder->open[at + 1], (decoder->n_open - at) * sizeof(decoder->open[0]));
	decoder->open[decoder->n_open] = place;
	bool known = value_ok(row.cpu_ns) && value_ok(cpu_ns) && cpu_ns >= row.cpu_ns;
	row.cpu_ns = known ? cpu_ns - row.cpu_ns : VALUE_MISSING;
	row.stored = at < decoder->n_taken;
	decoder->n_taken -= row.stored;
	hand_out(decoder->recording, &row, how, t_ns);
}

/* Ends n spans, innermost first, after skipping the given number of innermost ones. Spans without room here are the
 * innermost of all. */
static void on_end(struct context *c, const struct event *event)
{
	struct span_decoder *decoder = c->decoder;
	size_t n = event->record->n, passed = event->record->slot;
	size_t passed_unseen = passed < decoder->n_unseen ? passed : decoder->n_unseen;
	passed -= passed_unseen;
	size_t unseen = decoder->n_unseen - passed_unseen;
	unseen = n < unseen ? n : unseen;
	decoder->n_unseen -= unseen;
	n -= unseen;
	size_t n_there = passed < decoder->n_open ? decoder->n_open - passed : 0;
	if (n > n_there || event->record->n == 0)
		c->counts->stray_ends++;
	if (n > n_there)
		n = n_there;
	int64_t cpu_ns = cpu_of(event);
	for (; n > 0; n--)
		close_one(decoder, --n_there, n == 1 ? SPAN_ENDED : SPAN_UNWOUND, event->t_ns, cpu_ns);
}

void span_decoder_close(struct span_decoder *decoder, size_t depth, enum span_close how, int64_t t_ns)
{
	decoder->n_unseen = 0;
	while (decoder->n_open > depth)
		close_one(decoder, decoder->n_open - 1, how, t_ns, VALUE_MISSING);
}

/* ---- ranges ---- */

static void keep_range(struct context *c, const struct range_slot *slot)
{
	struct span_recording *recording = c->decoder->recording;
	if (recording->n_open >= SPAN_OPEN_MAX || span_ranges_add(c->decoder->ranges, slot) < 0)
		c->counts->dropped++;
	else
		recording->n_open++; // early ends take room as well
}

static void on_range_begin(struct context *c, const struct event *event)
{
	struct span_decoder *decoder = c->decoder;
	struct span_row row;
	fill_row(c, event, SPAN_RANGE, innermost(decoder), &row);
	row.category = category_of(c, event, 1);
	uint64_t number = event->extras[0].number;
	struct range_slot *known = span_ranges_find(decoder->ranges, number);
	if (known != NULL) {
		struct range_slot before = *known;
		span_ranges_remove(decoder->ranges, known);
		if (before.state == RANGE_EARLY_END) {
			hand_out(decoder->recording, &row, SPAN_ENDED, before.row.end_ns);
			return;
		}
		c->counts->bad_records++; // two ranges with one number: the first one can no longer be ended
		hand_out(decoder->recording, &before.row, SPAN_UNWOUND, event->t_ns);
	}
	keep_range(c, &(struct range_slot){.number = number, .state = RANGE_OPEN, .row = row});
}

static void on_range_end(struct context *c, const struct event *event)
{
	struct span_decoder *decoder = c->decoder;
	uint64_t number = event->extras[0].number;
	struct range_slot *known = span_ranges_find(decoder->ranges, number);
	if (known == NULL) {
		keep_range(c,
			&(struct range_slot){.number = number,
				.state = RANGE_EARLY_END,
				.round = c->round,
				.row = {.end_ns = event->t_ns}});
	} else if (known->state == RANGE_OPEN) {
		struct span_row row = known->row;
		span_ranges_remove(decoder->ranges, known);
		hand_out(decoder->recording, &row, SPAN_ENDED, event->t_ns);
	} else {
		c->counts->stray_ends++;
	}
}

void span_decoder_close_ranges(struct span_recording *recording, struct span_ranges *ranges, enum span_close how,
	int64_t t_ns)
{
	size_t at = 0;
	for (struct range_slot *slot; (slot = span_ranges_next(ranges, &at)) != NULL;) {
		if (slot->state == RANGE_OPEN) {
			hand_out(recording, &slot->row, how, t_ns);
		} else {
			recording->n_open--;
			recording->counts.stray_ends++;
		}
	}
	span_ranges_finish(ranges);
}

/* ---- other records ---- */

static void on_name(struct context *c, const struct event *event)
{
	const struct span_record *record = event->record;
	if (record->slot >= SPAN_NAME_SLOTS) {
		c->counts->bad_records++;
		return;
	}
	c->decoder->slots[record->slot] = name_table_add(&c->decoder->recording->names, (const char *)event->extras,
		record->n);
}

static void on_metric(struct context *c, const struct event *event)
{
	const struct span_decoder *decoder = c->decoder;
	const struct span_metric_row row = {
		.t_ns = event->t_ns,
		.span = innermost(decoder),
		.value = event->extras[0].value,
		.pid = decoder->pid,
		.tid = decoder->tid,
		.name = name_of(c, event->record->slot),
	};
	if (isfinite(row.value))
		decoder->recording->sink.metric(decoder->recording->sink.data, &row);
	else
		c->counts->bad_records++;
}

static void on_mark(struct context *c, const struct event *event)
{
	const struct span_decoder *decoder = c->decoder;
	const struct span_mark_row row = {
		.t_ns = event->t_ns,
		.pid = decoder->pid,
		.tid = decoder->tid,
		.name = name_of(c, event->record->slot),
		.category = category_of(c, event, (event->record->flags & RECORD_HAS_CPU) != 0),
	};
	decoder->recording->sink.mark(decoder->recording->sink.data, &row);
}

static void on_thread(struct context *c, const struct event *event)
{
	if (event->record->n == 0 || event->record->n > INT32_MAX) {
		c->counts->bad_records++;
		return;
	}
	span_decoder_close(c->decoder, 0, SPAN_AT_THREAD_END, c->decoder->last_ns);
	c->decoder->tid = (int32_t)event->record->n;
}

static void on_thread_end(struct context *c, const struct event *event)
{
	span_decoder_close(c->decoder, 0, SPAN_AT_THREAD_END, event->t_ns);
}

static const struct {
	void (*take)(struct context *c, const struct event *event);
	bool has_time;
} kinds[RECORD_KINDS] = {
	[RECORD_NAME] = {on_name, false},
	[RECORD_BEGIN] = {on_begin, true},
	[RECORD_END] = {on_end, true},
	[RECORD_RANGE_BEGIN] = {on_range_begin, true},
	[RECORD_RANGE_END] = {on_range_end, true},
	[RECORD_METRIC] = {on_metric, true},
	[RECORD_MARK] = {on_mark, true},
	[RECORD_THREAD] = {on_thread, false},
	[RECORD_THREAD_END] = {on_thread_end, true},
};

size_t span_decoder_feed(struct span_decoder *decoder, const struct span_record *records, size_t n, int64_t now_ns,
	uint32_t round)
{
	struct context c = {decoder, &decoder->recording->counts, now_ns, round};
	size_t at = 0;
	while (at < n) {
		const struct span_record *record = &records[at];
		uint32_t count = span_record_count(record);
		if (count == 0) { // the length of the event is unknown: skip one record
			c.counts->bad_records++;
			at++;
			continue;
		}
		if (count > n - at)
			break;
		at += count;
		if (kinds[record->kind].take == NULL)
			continue;
		const struct event event = {
			.record = record,
			.extras = (const struct record_extra *)(record + 1),
			.t_ns = kinds[record->kind].has_time ? checked_time(&c, record->t_ns) : decoder->last_ns,
		};
		kinds[record->kind].take(&c, &event);
	}
	return at;
}

size_t span_decoder_take_open(struct span_decoder *decoder, struct span_row *rows, size_t room)
{
	size_t n = 0;
	while (n < room && decoder->n_taken < decoder->n_open) {
		rows[n] = decoder->rows[decoder->open[decoder->n_taken++]];
		rows[n++].cpu_ns = VALUE_MISSING; // while the span is open: the thread's CPU time at its begin
	}
	return n;
}
