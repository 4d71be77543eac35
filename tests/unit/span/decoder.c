/* Records in, rows out. Both sides are written as text, one word an event:
 *
 *	n0=name  define slot 0        b0 / b0@cpu  begin of slot 0      e / e2 / e1+1 / e@cpu  end of one, of two, of one below one
 *	r7=0     range 7 of slot 0    q7           range 7 ends         m0=2.5  metric          k0  mark     c0 / c0,1  a mark with category
 *	t42 thread 42 continues    x            thread ends          ?  unknown kind         !N  the clock is set to N
 *
 * The clock advances by one with each word. Rows: name[begin-end] with "^parent", "#tid", "*how" for an abnormal end and
 * "$cpu" where known; "~" a range. */
#include "span/reader/reader.h"

#include "rows.h"

#include "base/util.h"

#include <stdio.h>
#include <string.h>

struct fixture {
	struct span_recording recording;
	struct span_ranges ranges;
	struct span_decoder streams[2];
	struct span_record records[256];
	size_t n;
	int64_t clock_ns;
	char rows[4096];
};

static const char *name_of(const struct fixture *f, uint32_t name)
{
	return name_table_text(&f->recording.names, name);
}

static void append(struct fixture *f, const char *text)
{
	size_t length = strlen(f->rows);
	snprintf(f->rows + length, sizeof(f->rows) - length, "%s%s", length > 0 ? " " : "", text);
}

static void on_span(void *data, const struct span_row *row)
{
	struct fixture *f = data;
	char text[512];
	int n = snprintf(text, sizeof(text), "%s%s[%lld-%lld]", row->kind == SPAN_RANGE ? "~" : "",
		name_of(f, row->name), (long long)row->begin_ns, (long long)row->end_ns);
	if (value_ok(row->parent))
		n += snprintf(text + n, sizeof(text) - (size_t)n, "^%lld", (long long)row->parent);
	if (row->tid != 1)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "#%d", row->tid);
	if (row->close != SPAN_ENDED)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "*%s", span_close_name((enum span_close)row->close));
	if (value_ok(row->cpu_ns))
		snprintf(text + n, sizeof(text) - (size_t)n, "$%lld", (long long)row->cpu_ns);
	append(f, text);
}

static void on_metric(void *data, const struct span_metric_row *row)
{
	struct fixture *f = data;
	char text[512];
	snprintf(text, sizeof(text), "%s=%g@%lld^%lld", name_of(f, row->name), row->value, (long long)row->t_ns,
		value_ok(row->span) ? (long long)row->span : 0);
	append(f, text);
}

static void on_mark(void *data, const struct span_mark_row *row)
{
	struct fixture *f = data;
	char text[512];
	const char *category = name_of(f, row->category);
	snprintf(text, sizeof(text), "!%s%s%s@%lld", category != NULL ? category : "", category != NULL ? "/" : "",
		name_of(f, row->name), (long long)row->t_ns);
	append(f, text);
}

static void setup(struct fixture *f)
{
	*f = (struct fixture){.clock_ns = 100};
	const struct span_sink sink = {on_span, on_metric, on_mark, f};
	assert_int_equal(span_recording_init(&f->recording, &sink), 0);
	for (int i = 0; i < 2; i++)
		span_decoder_init(&f->streams[i], &f->recording, &f->ranges, 10, i + 1, 100);
}

static void teardown(struct fixture *f)
{
	for (int i = 0; i < 2; i++)
		span_decoder_finish(&f->streams[i]);
	span_ranges_finish(&f->ranges);
	assert_int_equal(f->recording.n_open, 0);
	span_recording_finish(&f->recording);
}

/* ---- text form of records and rows ---- */

static void put(struct fixture *f, struct span_record record)
{
	record.t_ns = f->clock_ns;
	f->records[f->n++] = record;
}

static void put_extra(struct fixture *f, struct record_extra extra)
{
	memcpy(&f->records[f->n++], &extra, sizeof(extra));
}

static void put_name(struct fixture *f, uint16_t slot, const char *name)
{
	size_t length = strlen(name);
	put(f, (struct span_record){.kind = RECORD_NAME, .slot = slot, .n = (uint32_t)length});
	memcpy(&f->records[f->n], name, length);
	f->n += (length + 15) / 16;
}

static void put_nested(struct fixture *f, enum record_kind kind, uint16_t slot, uint32_t n, const char *rest)
{
	const char *cpu = strchr(rest, '@');
	put(f,
		(struct span_record){.kind = (uint8_t)kind,
			.flags = cpu != NULL ? RECORD_HAS_CPU : 0,
			.slot = slot,
			.n = n});
	if (cpu != NULL)
		put_extra(f, (struct record_extra){.number = strtoull(cpu + 1, NULL, 10)});
}

static void put_word(struct fixture *f, char *word)
{
	char *rest;
	unsigned long a = strtoul(word + 1, &rest, 10);
	uint16_t slot = (uint16_t)a;
	switch (word[0]) {
	case 'n':
		put_name(f, slot, rest + 1);
		break;
	case 'b':
		put_nested(f, RECORD_BEGIN, slot, 0, rest);
		break;
	case 'e':
		put_nested(f, RECORD_END, *rest == '+' ? (uint16_t)strtoul(rest + 1, NULL, 10) : 0,
			rest == word + 1 ? 1 : (uint32_t)a, word);
		break;
	case 'r':
		put(f, (struct span_record){.kind = RECORD_RANGE_BEGIN, .slot = (uint16_t)strtoul(rest + 1, NULL, 10)});
		put_extra(f, (struct record_extra){.number = a});
		break;
	case 'q':
		put(f, (struct span_record){.kind = RECORD_RANGE_END});
		put_extra(f, (struct record_extra){.number = a});
		break;
	case 'm':
		put(f, (struct span_record){.kind = RECORD_METRIC, .slot = slot});
		put_extra(f, (struct record_extra){.value = strtod(rest + 1, NULL)});
		break;
	case 'k':
		put(f, (struct span_record){.kind = RECORD_MARK, .slot = slot});
		break;
	case 'c':
		put(f, (struct span_record){.kind = RECORD_MARK, .flags = RECORD_HAS_CATEGORY, .slot = slot});
		put_extra(f, (struct record_extra){.number = strtoul(rest + 1, NULL, 10)});
		break;
	case 't':
		put(f, (struct span_record){.kind = RECORD_THREAD, .n = (uint32_t)a});
		break;
	case 'x':
		put(f, (struct span_record){.kind = RECORD_THREAD_END});
		break;
	case '?':
		put(f, (struct span_record){.kind = 200});
		break;
	case '!':
		f->clock_ns = (int64_t)a;
		return;
	default:
		fail_msg("%s", word);
	}
	f->clock_ns++;
}

static void feed(struct fixture *f, int stream, const char *text, uint32_t round)
{
	char copy[1024];
	f->n = 0;
	text_copy(copy, sizeof(copy), text);
	for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
		put_word(f, word);
	assert_int_equal(span_decoder_feed(&f->streams[stream], f->records, f->n, 1000, round), f->n);
}

/* ---- one stream ---- */

static const struct row {
	const char *teaches, *records, *rows;
	struct span_counts counts;
} rows[] = {
	{"spans nest: the inner one ends first and has the outer one as its parent", "n0=a n1=b b0 b1 e e",
		"b[103-104]^1 a[102-105]", {0}},
	{"the same name in two slots: one name", "n0=a n1=a b0 e b1 e", "a[102-103] a[104-105]", {0}},
	{"slot defined again: the new name", "n0=a b0 e n0=b b0 e", "a[101-102] b[104-105]", {0}},
	{"end of two spans: closes an inner span left open (longjmp)", "n0=a n1=b b0 b1 e2",
		"b[103-104]^1*unwound a[102-104]", {.unwound = 1}},
	{"end below the top: an inner span stays open (crossing NVTX domains)", "n0=a n1=b b0 b1 e1+1 e",
		"a[102-104] b[103-105]^1", {0}},
	{"span that begins after such an end: gets a level of its own", "n0=a n1=b n2=c n3=d b0 b1 b2 e1+1 b3 e e e",
		"b[105-107]^1 d[108-109]^3 c[106-110]^2 a[104-111]", {0}},
	{"end of more spans than are open: closes all of them", "n0=a b0 e5", "a[101-102]", {.stray_ends = 1}},
	{"end without a begin: counted as stray", "e", "", {.stray_ends = 1}},
	{"end of zero spans: counted as stray", "n0=a b0 e0 e", "a[101-103]", {.stray_ends = 1}},
	{"CPU time of a span: end minus begin", "n0=a b0@50 e@80", "a[101-102]$30", {0}},
	{"CPU time that decreases: unknown", "n0=a b0@50 e@20", "a[101-102]", {0}},
	{"end of a thread: ends its spans", "n0=a b0 b0 x", "a[102-103]^1*thread end a[101-103]*thread end", {0}},
	{"ring taken over by another thread: gets that thread's id", "n0=a b0 e x t42 b0 e", "a[101-102] a[105-106]#42",
		{0}},
	{"thread leaves its ring without an end record: its spans end with its last record", "n0=a b0 e b0 t42 b0 e",
		"a[101-102] a[103-103]*thread end a[105-106]#42", {0}},
	{"ranges overlap freely; their parent is the span in which they began", "n0=a b0 r7=0 r8=0 e q7 q8",
		"a[101-104] ~a[102-105]^1 ~a[103-106]^1", {0}},
	{"range number used again: closes the first range", "n0=a r7=0 r7=0 q7", "~a[101-102]*unwound ~a[102-103]",
		{.bad_records = 1, .unwound = 1}},
	{"metric: belongs to the innermost span", "n0=a n1=tokens m1=1 b0 m1=2.5 e",
		"tokens=1@102^0 tokens=2.5@104^1 a[103-105]", {0}},
	{"metric that is NaN: dropped", "n0=a m0=nan m0=inf", "", {.bad_records = 2}},
	{"mark with a category", "n0=a n1=c k0 c0,1", "!a@102 !c/a@103", {0}},
	{"undefined name: nesting is kept", "n0=a b0 b9 e e", "(unknown name)[102-103]^1 a[101-104]",
		{.bad_records = 1}},
	{"slot out of range: treated as an undefined name", "n0=a b2000 e", "(unknown name)[101-102]",
		{.bad_records = 1}},
	{"unknown kind of record: skipped", "n0=a ? b0 ? e", "a[102-104]", {.bad_records = 2}},
	{"clock that steps back: time stands still", "n0=a !200 b0 !150 e", "a[200-200]", {.clamped = 1}},
	{"time before the stream or in the future: limited", "n0=a !5 b0 !5000 e", "a[100-1000]", {.clamped = 2}},
	{"empty name: reported as such", "n0= b0 e", "(unnamed)[101-102]", {0}},
	{"invalid UTF-8 is replaced, control characters become blanks", "n0=\xff\x01\xc3\xa4\xed\xa0\x80z b0 e",
		"\xef\xbf\xbd \xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz[101-102]", {0}},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct fixture f;
	setup(&f);
	feed(&f, 0, row->records, 1);
	assert_string_equal(f.rows, row->rows);
	assert_memory_equal(&f.recording.counts, &row->counts, sizeof(row->counts));
	teardown(&f);
}

/* ---- several feeds ---- */

static void a_range_ends_in_a_ring_read_earlier(void **state)
{
	struct fixture f;
	setup(&f);
	feed(&f, 0, "!300 q7", 1);
	feed(&f, 1, "!200 n0=a r7=0", 1);
	assert_string_equal(f.rows, "~a[201-300]#2");
	assert_int_equal(f.recording.counts.stray_ends, 0);
	teardown(&f);
}

static void an_end_whose_begin_never_comes_is_a_stray(void **state)
{
	struct fixture f;
	setup(&f);
	feed(&f, 0, "q7", 1);
	assert_int_equal(span_ranges_end_round(&f.ranges, 1), 0); // its begin may be in a ring that was read before
	assert_int_equal(span_ranges_end_round(&f.ranges, 2), 1);
	f.recording.n_open--;
	teardown(&f);
}

static void half_an_event_waits_for_the_other_half(void **state)
{
	struct fixture f;
	setup(&f);
	put_name(&f, 0, "a name that is longer than one record of sixteen bytes");
	size_t whole = f.n;
	assert_int_equal(span_decoder_feed(&f.streams[0], f.records, whole - 1, 1000, 1), 0);
	assert_int_equal(span_decoder_feed(&f.streams[0], f.records, whole, 1000, 1), whole);
	teardown(&f);
}

static void open_spans_are_told_of_once(void **state)
{
	struct fixture f;
	struct span_row open[8];
	setup(&f);
	feed(&f, 0, "n0=a b0 b0", 1);
	assert_int_equal(span_decoder_take_open(&f.streams[0], open, 8), 2);
	assert_int_equal(open[1].parent, open[0].id);
	assert_false(value_ok(open[0].end_ns));
	assert_int_equal(open[0].close, SPAN_OPEN);
	assert_int_equal(span_decoder_take_open(&f.streams[0], open, 8), 0);
	feed(&f, 0, "b0 e e b0", 1); // the span that began since, one of the two, and a further one
	assert_int_equal(span_decoder_take_open(&f.streams[0], open, 8), 1);
	span_decoder_close(&f.streams[0], 0, SPAN_AT_DEATH, 500);
	assert_string_equal(f.rows, "a[103-104]^2 a[102-105]^1 a[106-500]^1*death a[101-500]*death");
	teardown(&f);
}

static void more_than_may_be_open_is_dropped_with_its_end(void **state)
{
	struct fixture f;
	setup(&f);
	feed(&f, 0, "n0=a", 1);
	for (int i = 0; i < SPAN_DEPTH_MAX + 3; i++)
		feed(&f, 0, "b0", 1);
	feed(&f, 0, "e e e e", 1);
	assert_int_equal(f.recording.counts.dropped, 3);
	assert_int_equal(f.streams[0].n_open, SPAN_DEPTH_MAX - 1);
	f.rows[0] = '\0';
	span_decoder_close(&f.streams[0], 0, SPAN_AT_DEATH, 1000);
	teardown(&f);
}

static void names_are_bounded(void **state)
{
	struct name_table names;
	char name[32];
	assert_int_equal(name_table_init(&names), 0);
	for (int i = 0; i < NAME_TABLE_MAX; i++)
		name_table_add(&names, name, (size_t)snprintf(name, sizeof(name), "name %d", i));
	assert_false(names.is_full);
	uint32_t further = name_table_add(&names, "one more", 8);
	assert_true(names.is_full);
	assert_string_equal(name_table_text(&names, further), "(more than 65536 names)");
	assert_int_equal(name_table_add(&names, "yet another", 11), further);
	assert_string_equal(name_table_text(&names, name_table_add(&names, "name 77", 7)), "name 77");
	name_table_finish(&names);
}

static void ranges_come_and_go(void **state)
{
	struct span_ranges ranges = {0};
	for (uint64_t i = 0; i < 3000; i++) {
		const struct range_slot slot = {.number = i * i, .state = RANGE_OPEN, .row.id = (int64_t)i};
		assert_int_equal(span_ranges_add(&ranges, &slot), 0);
		if (i >= 100) // never more than 100 at a time
			span_ranges_remove(&ranges, span_ranges_find(&ranges, (i - 100) * (i - 100)));
	}
	assert_int_equal(ranges.open.n, 100);
	assert_true(ranges.open.n_slots <= 512);
	for (uint64_t i = 2900; i < 3000; i++)
		assert_int_equal(span_ranges_find(&ranges, i * i)->row.id, i);
	assert_null(span_ranges_find(&ranges, 2899 * 2899));
	span_ranges_finish(&ranges);
}

/* Numbers that a table hashed by the golden ratio maps to one slot: their product with it is x * (2^32 + 1), whose
 * halves cancel when the upper one is folded down. */
static void ranges_with_chosen_numbers(void **state)
{
	enum { N = 8192 };
	struct span_ranges ranges = {0};
	uint64_t inverse = 1;
	for (int i = 0; i < 6; i++)
		inverse *= 2 - UINT64_C(0x9e3779b97f4a7c15) * inverse;
	for (uint64_t x = 1; x <= N; x++) {
		const struct range_slot slot = {.number = (x << 32 | x) * inverse, .state = RANGE_OPEN};
		assert_int_equal(span_ranges_add(&ranges, &slot), 0);
	}
	size_t far = 0, mask = ranges.open.n_slots - 1;
	for (size_t i = 0; i <= mask; i++)
		if (ranges.open.slots[i].state != RANGE_NONE)
			far += (i - keyed_hash_u64(&ranges.open.key, ranges.open.slots[i].number)) & mask;
	assert_true(far < 4 * N);
	span_ranges_finish(&ranges);
}

// An attacker who knows the slots in one table cannot choose keys that collide in the next one.
static void each_table_has_its_own_places(void **state)
{
	enum { N = 100 };
	struct name_table names[2];
	struct span_ranges ranges[2] = {{{0}}};
	uint64_t numbers[2][1024];
	for (size_t t = 0; t < 2; t++) {
		assert_int_equal(name_table_init(&names[t]), 0);
		for (uint64_t i = 0; i < N; i++) {
			const struct range_slot slot = {.number = i + 1, .state = RANGE_OPEN};
			char text[16];
			int length = snprintf(text, sizeof(text), "name %d", (int)i);
			name_table_add(&names[t], text, (size_t)length);
			assert_int_equal(span_ranges_add(&ranges[t], &slot), 0);
		}
		assert_true(ranges[t].open.n_slots <= ARRAY_SIZE(numbers[t]));
		for (size_t i = 0; i < ranges[t].open.n_slots; i++)
			numbers[t][i] = ranges[t].open.slots[i].number;
	}
	assert_memory_not_equal(names[0].slots, names[1].slots, names[0].n_slots * sizeof(names[0].slots[0]));
	assert_memory_not_equal(numbers[0], numbers[1], ranges[0].open.n_slots * sizeof(numbers[0][0]));
	for (size_t t = 0; t < 2; t++) {
		name_table_finish(&names[t]);
		span_ranges_finish(&ranges[t]);
	}
}

static void tables_of_ranges_shrink(void **state)
{
	enum { N = 20000 };
	struct span_ranges ranges = {0};
	struct span_row row;
	for (uint64_t i = 0; i < N; i++) {
		const enum range_state state_of = i % 2 == 0 ? RANGE_OPEN : RANGE_EARLY_END;
		assert_int_equal(span_ranges_add(&ranges, &(struct range_slot){.number = i, .state = state_of}), 0);
	}
	for (uint64_t i = 2; i < N; i += 2)
		span_ranges_remove(&ranges, span_ranges_find(&ranges, i));
	assert_int_equal(span_ranges_end_round(&ranges, 1), N / 2);
	assert_true(ranges.open.n == 1 && ranges.open.n_slots <= 16 && ranges.early.n_slots <= 16);
	assert_int_equal(span_ranges_take_open(&ranges, &row, 1), 1);
	assert_int_equal(span_ranges_take_open(&ranges, &row, 1), 0);
	span_ranges_finish(&ranges);
}

static void room_of_all_streams_is_limited(void **state)
{
	struct fixture f;
	setup(&f);
	f.recording.n_reserved = SPAN_RESERVED_MAX - 16; // used by other streams
	feed(&f, 0, "n0=a", 1);
	for (int i = 0; i < 20; i++)
		feed(&f, 0, "b0", 1);
	assert_int_equal(f.streams[0].n_open, 16);
	assert_int_equal(f.recording.counts.dropped, 4);
	f.recording.n_reserved -= SPAN_RESERVED_MAX - 16;
	teardown(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "end read before its begin: waits for it", a_range_ends_in_a_ring_read_earlier);
	ROWS_ADD_ONE(&tests, "end whose begin never arrives: counted as stray",
		an_end_whose_begin_never_comes_is_a_stray);
	ROWS_ADD_ONE(&tests, "half an event: waits for the other half", half_an_event_waits_for_the_other_half);
	ROWS_ADD_ONE(&tests, "open spans: reported once, and marked when they end", open_spans_are_told_of_once);
	ROWS_ADD_ONE(&tests, "spans nested deeper than 1,024: dropped", more_than_may_be_open_is_dropped_with_its_end);
	ROWS_ADD_ONE(&tests, "more than 65,536 names: the others share one", names_are_bounded);
	ROWS_ADD_ONE(&tests, "many short ranges: the table stays small", ranges_come_and_go);
	ROWS_ADD_ONE(&tests, "range numbers chosen to collide: spread over the table", ranges_with_chosen_numbers);
	ROWS_ADD_ONE(&tests, "two tables store the same names and ranges in different slots",
		each_table_has_its_own_places);
	ROWS_ADD_ONE(&tests, "tables of ranges shrink when ranges end", tables_of_ranges_shrink);
	ROWS_ADD_ONE(&tests, "memory for open spans is limited over all streams", room_of_all_streams_is_limited);
	return rows_run(&tests, "decoder");
}
