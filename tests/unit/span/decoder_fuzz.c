/* Invalid streams: valid ones with bytes changed, removed or doubled, and noise. The resulting rows are always
 * complete, and memory is bounded. The seeds are fixed, so failures repeat. */
#include "span/reader/reader.h"

#include "rows.h"

#include "base/util.h"

enum { STREAMS = 3, RECORDS = 512, SEEDS = 300, PID = 77 };
static const int64_t FLOOR_NS = 1000, NOW_NS = 1000000;

struct fuzz {
	uint64_t state;
	struct span_recording recording;
	struct span_ranges ranges;
	struct span_decoder streams[STREAMS];
	int64_t n_rows;
};

static uint64_t next(struct fuzz *f) // xorshift64*
{
	f->state ^= f->state >> 12;
	f->state ^= f->state << 25;
	f->state ^= f->state >> 27;
	return f->state * 0x2545f4914f6cdd1d;
}

static uint64_t below(struct fuzz *f, uint64_t limit)
{
	return next(f) % limit;
}

/* ---- invariants ---- */

static void check_name(const struct fuzz *f, uint32_t name)
{
	const unsigned char *text = (const unsigned char *)name_table_text(&f->recording.names, name);
	assert_non_null(text);
	assert_true(text[0] != '\0');
	for (; *text != '\0'; text++)
		assert_true(*text >= 0x20 && *text != 0x7f && *text != 0xff && *text != 0xc0);
}

static void on_span(void *data, const struct span_row *row)
{
	struct fuzz *f = data;
	f->n_rows++;
	assert_true(row->id > 0 && row->id <= f->recording.last_id);
	assert_true(!value_ok(row->parent) || (row->parent > 0 && row->parent < row->id));
	assert_true(row->begin_ns >= FLOOR_NS && row->begin_ns <= row->end_ns && row->end_ns <= NOW_NS);
	assert_true(!value_ok(row->cpu_ns) || row->cpu_ns >= 0);
	assert_int_equal(row->pid, PID);
	assert_true(row->kind < SPAN_KINDS && row->close < SPAN_CLOSES && row->close != SPAN_OPEN);
	check_name(f, row->name);
	if (row->category != SPAN_NO_NAME)
		check_name(f, row->category);
}

static void on_metric(void *data, const struct span_metric_row *row)
{
	const struct fuzz *f = data;
	assert_true(isfinite(row->value) && row->t_ns >= FLOOR_NS && row->t_ns <= NOW_NS);
	assert_int_equal(row->pid, PID);
	check_name(f, row->name);
}

static void on_mark(void *data, const struct span_mark_row *row)
{
	const struct fuzz *f = data;
	assert_true(row->t_ns >= FLOOR_NS && row->t_ns <= NOW_NS);
	check_name(f, row->name);
}

static void check_bounds(const struct fuzz *f)
{
	size_t open = f->ranges.open.n + f->ranges.early.n;
	for (int i = 0; i < STREAMS; i++) {
		assert_true(f->streams[i].n_open <= SPAN_DEPTH_MAX);
		assert_true(f->streams[i].n_taken <= f->streams[i].n_open);
		open += f->streams[i].n_open;
	}
	assert_int_equal(f->recording.n_open, open);
	assert_true(f->recording.n_open <= SPAN_OPEN_MAX);
	assert_true(f->recording.names.n <= NAME_TABLE_MAX + 2);
}

/* ---- streams ---- */

static size_t make_valid(struct fuzz *f, struct span_record *records)
{
	size_t n = 0;
	for (int64_t t_ns = FLOOR_NS; n < RECORDS - 70; t_ns += (int64_t)below(f, 1000)) {
		struct span_record record = {.t_ns = t_ns,
			.kind = (uint8_t)below(f, RECORD_KINDS),
			.flags = (uint8_t)below(f, 4),
			.slot = (uint16_t)below(f, 8),
			.n = (uint32_t)below(f, 3)};
		if (record.kind == RECORD_NAME)
			record.n = (uint32_t)below(f, 60);
		uint32_t count = span_record_count(&record);
		records[n] = record;
		for (uint32_t i = 1; i < count; i++) // small numbers, so that ranges collide; as text, letters
			records[n + i] = (struct span_record){.t_ns = (int64_t)below(f, 32)};
		if (record.kind == RECORD_NAME)
			for (uint32_t i = 1; i < count; i++)
				memset(&records[n + i], 'a' + (int)below(f, 20), sizeof(record));
		n += count;
	}
	return n;
}

static void harm(struct fuzz *f, struct span_record *records, size_t n)
{
	unsigned char *bytes = (unsigned char *)records;
	for (uint64_t i = below(f, 40); i > 0; i--)
		bytes[below(f, n * sizeof(*records))] = (unsigned char)next(f);
	if (below(f, 4) == 0)
		memmove(records, records + below(f, n), sizeof(*records));
}

static size_t make_stream(struct fuzz *f, struct span_record *records)
{
	if (below(f, 5) > 0) {
		size_t n = make_valid(f, records);
		if (below(f, 3) > 0)
			harm(f, records, n);
		return n - (size_t)below(f, 3);
	}
	for (size_t i = 0; i < RECORDS; i++) {
		const uint64_t noise[2] = {next(f), next(f)};
		memcpy(&records[i], noise, sizeof(noise));
		records[i].kind &= 0x0f; // most of 256 kinds would only be skipped
	}
	return RECORDS;
}

static void run_seed(uint64_t seed)
{
	struct fuzz f = {.state = seed * 0x9e3779b97f4a7c15 + 1};
	const struct span_sink sink = {on_span, on_metric, on_mark, &f};
	struct span_record records[RECORDS];
	struct span_row open[64];
	assert_int_equal(span_recording_init(&f.recording, &sink), 0);
	for (int i = 0; i < STREAMS; i++)
		span_decoder_init(&f.streams[i], &f.recording, &f.ranges, PID, i, FLOOR_NS);
	for (uint32_t round = 0; round < 30; round++) {
		struct span_decoder *stream = &f.streams[below(&f, STREAMS)];
		size_t n = make_stream(&f, records);
		assert_true(span_decoder_feed(stream, records, n, NOW_NS, round) <= n);
		span_decoder_take_open(stream, open, ARRAY_SIZE(open));
		if (below(&f, 4) == 0)
			f.recording.n_open -= span_ranges_end_round(&f.ranges, round);
		check_bounds(&f);
	}
	for (int i = 0; i < STREAMS; i++) {
		span_decoder_close(&f.streams[i], 0, SPAN_AT_DEATH, NOW_NS);
		span_decoder_finish(&f.streams[i]);
	}
	span_decoder_close_ranges(&f.recording, &f.ranges, SPAN_AT_DEATH, NOW_NS);
	assert_int_equal(f.recording.n_open, 0);
	assert_true(f.n_rows > 0);
	span_recording_finish(&f.recording);
}

static void streams_of_all_sorts(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		run_seed(seed);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "valid, damaged and random streams: complete rows and bounded memory",
		streams_of_all_sorts);
	return rows_run(&tests, "decoder_fuzz");
}
