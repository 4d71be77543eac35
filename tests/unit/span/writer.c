#include "span/writer/writer.h"

#include "rows.h"
#include "wattle.h"

#include <fcntl.h>
#include <math.h>

#include "fake_recorder.h"

static char long_name[2001];
static const char *cut_name = long_name + 2000 - SPAN_NAME_BYTES_MAX;

enum step_kind { BEGIN, CATEGORY, END, LEAVE, BELOW, MARK, METRIC, RANGE, RANGE_END, DEPTH };

// A call, its argument and the expected result.
struct step {
	enum step_kind kind;
	const char *name;
	double number;
	int code;
};

static const struct row {
	const char *teaches;
	struct step steps[12];
	const char *expected;
	uint64_t lost, unwound;
} rows[] = {
	{"a span is a begin and an end", {{BEGIN, "forward"}, {END}}, "begin forward\nend\n", 0, 0},
	{"spans nest", {{BEGIN, "a"}, {BEGIN, "b"}, {DEPTH, NULL, 2}, {END}, {END}, {DEPTH}},
		"begin a\nbegin b\nend\nend\n", 0, 0},
	{"one end too many: an error, no record",
		{{END, NULL, 0, -ENOENT}, {BEGIN, "a"}, {END}, {END, NULL, 0, -ENOENT}}, "begin a\nend\n", 0, 0},
	{"NULL as a name: an error", {{BEGIN, NULL, 0, -EINVAL}, {MARK, NULL, 0, -EINVAL}, {METRIC, NULL, 1, -EINVAL}},
		"", 0, 0},
	{"empty name: accepted", {{BEGIN, ""}, {END}}, "begin \nend\n", 0, 0},
	{"a name of 16 bytes fills its record", {{BEGIN, "0123456789abcdef"}, {END}}, "begin 0123456789abcdef\nend\n",
		0, 0},
	{"a name may be UTF-8", {{BEGIN, "größe"}, {END}}, "begin größe\nend\n", 0, 0},
	{"mark: one instant", {{MARK, "epoch"}}, "mark epoch\n", 0, 0},
	{"metric: carries its number", {{METRIC, "tokens", 4096}, {METRIC, "loss", -0.25}},
		"metric tokens 4096\nmetric loss -0.25\n", 0, 0},
	{"metric that is NaN: an error", {{METRIC, "loss", NAN, -EINVAL}, {METRIC, "loss", INFINITY, -EINVAL}}, "", 0,
		0},
	{"range overlaps spans", {{RANGE, "load"}, {BEGIN, "a"}, {RANGE_END}, {END}},
		"range load\nbegin a\nrange end\nend\n", 0, 0},
	{"end of an unknown range: an error", {{RANGE_END, "1", 0, -ENOENT}}, "", 0, 0},
	{"leave: ends the spans that are open inside",
		{{BEGIN, "a"}, {BEGIN, "b"}, {BEGIN, "c"}, {LEAVE, NULL, 0}, {DEPTH}},
		"begin a\nbegin b\nbegin c\nend 3\n", 0, 2},
	{"leave of the innermost span: an end", {{BEGIN, "a"}, {BEGIN, "b"}, {LEAVE, NULL, 1}, {LEAVE, NULL, 0}},
		"begin a\nbegin b\nend\nend\n", 0, 0},
	{"leave of a depth that is not open: an error", {{BEGIN, "a"}, {LEAVE, NULL, 1, -ENOENT}, {END}},
		"begin a\nend\n", 0, 0},
	{"category: has a name of its own", {{CATEGORY, "push"}, {END}}, "begin push in library\nend\n", 0, 0},
	{"end below the top: skips inner spans", {{BEGIN, "a"}, {BEGIN, "b"}, {BELOW, NULL, 1}, {END}, {DEPTH}},
		"begin a\nbegin b\nend below 1\nend\n", 0, 0},
	{"end below all open spans: an error", {{BEGIN, "a"}, {BELOW, NULL, 1, -ENOENT}, {END}}, "begin a\nend\n", 0,
		0},
};

static int take_step(const struct step *step, uint64_t *range)
{
	switch (step->kind) {
	case BEGIN:
		return span_begin(step->name, NULL, NULL);
	case CATEGORY:
		return span_begin(step->name, "library", NULL);
	case END:
		return span_end();
	case LEAVE:
		return span_leave((uint32_t)step->number);
	case BELOW:
		return span_end_below((uint32_t)step->number);
	case MARK:
		return span_mark(step->name, NULL);
	case METRIC:
		return span_metric(step->name, step->number);
	case RANGE:
		return span_range_begin(step->name, NULL, range);
	case RANGE_END:
		return span_range_end(step->name != NULL ? strtoull(step->name, NULL, 10) : *range);
	case DEPTH:
		return (int)(span_depth() - (uint32_t)step->number);
	}
	return -1;
}

static void check_in(const struct row *row, uint32_t flags)
{
	struct fake_recorder fake;
	uint64_t range = 0;
	fake_open(&fake, RING_RECORDS_MIN, flags);
	assert_int_equal(span_writer_connect(fake.address), 0);
	for (size_t i = 0; i < sizeof(row->steps) / sizeof(row->steps[0]); i++) {
		const struct step *step = &row->steps[i];
		if (step->kind == BEGIN && step->name == NULL && step->code == 0)
			break; // no more than these
		errno = 12345;
		assert_int_equal(take_step(step, &range), step->code);
		assert_int_equal(errno, 12345);
	}
	(void)span_metric("last", 1); // so that a ring exists in any case
	struct fake_ring *ring = fake_only(&fake);
	char expected[512];
	snprintf(expected, sizeof(expected), "%smetric last 1\n", row->expected);
	assert_string_equal(ring->reading.log, expected);
	assert_int_equal(ring->header->lost, row->lost);
	assert_int_equal(ring->header->unwound, row->unwound);
	span_writer_disconnect();
	fake_close(&fake);
}

static void check(void **state)
{
	check_in(*state, 0);
}

static void check_with_cpu_time(void **state)
{
	check_in(*state, RING_CPU_TIME);
}

static struct fake_recorder connected(uint32_t n_records)
{
	struct fake_recorder fake;
	fake_open(&fake, n_records, 0);
	assert_int_equal(span_writer_connect(fake.address), 0);
	return fake;
}

static void disconnect(struct fake_recorder *fake)
{
	span_writer_disconnect();
	fake_close(fake);
}

static void hello_and_header_agree(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	assert_int_equal(span_begin("a", NULL, NULL), 0);
	const struct fake_ring *ring = fake_only(&fake);
	assert_int_equal(ring->hello.magic, RING_MAGIC);
	assert_int_equal(ring->hello.version, RING_VERSION);
	assert_int_equal(ring->hello.token, 0x1234567890abcdef);
	assert_int_equal(ring->hello.pid, getpid());
	assert_int_equal(ring->hello.tid, gettid());
	assert_int_equal(ring->header->magic, RING_MAGIC);
	assert_int_equal(ring->header->version, RING_VERSION);
	assert_int_equal(ring->header->n_records, RING_RECORDS_MIN);
	assert_int_equal(ring->header->pid, getpid());
	assert_int_equal(ring->header->tid, gettid());
	assert_int_equal(ring->header->image, ring->hello.image);
	disconnect(&fake);
}

static void cpu_time_is_told(void **state)
{
	struct fake_recorder fake;
	fake_open(&fake, RING_RECORDS_MIN, RING_CPU_TIME);
	assert_int_equal(span_writer_connect(fake.address), 0);
	span_begin("a", NULL, NULL);
	span_end();
	const struct fake_ring *ring = fake_only(&fake);
	const struct span_record *records = (const void *)((const char *)ring->header + RING_HEADER_BYTES);
	const struct record_extra *begin = (const void *)&records[3], *end = (const void *)&records[5];
	assert_int_equal(records[2].flags, RECORD_HAS_CPU);
	assert_true(begin->number > 0 && end->number >= begin->number);
	assert_true(end->number - begin->number <= (uint64_t)(records[4].t_ns - records[2].t_ns));
	disconnect(&fake);
}

static void long_names_are_cut(void **state)
{
	memset(long_name, 'x', sizeof(long_name) - 1);
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	span_begin(long_name, NULL, NULL);
	span_end();
	span_begin(long_name, NULL, NULL);
	span_end();
	const struct fake_ring *ring = fake_only(&fake);
	char expected[3000];
	snprintf(expected, sizeof(expected), "begin %s\nend\nbegin %s\nend\n", cut_name, cut_name);
	assert_string_equal(ring->reading.log, expected);
	assert_int_equal(ring->reading.n_names, 1);
	disconnect(&fake);
}

static void a_name_may_change_in_its_place(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	char name[32], expected[512] = "";
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "layer %d", i);
		span_begin(name, NULL, NULL);
		span_end();
		snprintf(expected + strlen(expected), 64, "begin layer %d\nend\n", i);
	}
	assert_string_equal(fake_only(&fake)->reading.log, expected);
	disconnect(&fake);
}

static void names_have_no_bounds(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	static char names[20000][32];
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 20000; i++) {
			snprintf(names[i], sizeof(names[i]), "block number %d", i);
			assert_int_equal(span_begin(names[i], NULL, NULL), 0);
			assert_int_equal(span_mark(names[i], names[(i + 1) % 20000]), 0);
			assert_int_equal(span_end(), 0);
			struct reading *reading = &fake_only(&fake)->reading;
			char expected[128];
			snprintf(expected, sizeof(expected), "begin block number %d\nmark block number %d in %s\nend\n",
				i, i, names[(i + 1) % 20000]);
			if (names[(i + 1) % 20000][0] != '\0')
				assert_string_equal(reading->log, expected);
			reading->log_bytes = 0;
		}
	assert_int_equal(fake_only(&fake)->header->lost, 0);
	disconnect(&fake);
}

static void ring_addresses(void **state)
{
	struct ring_address address = {.flags = 1, .n_records = 2048, .token = 0xfeedface, .name = "wattle-1"}, back;
	char text[RING_ADDRESS_TEXT];
	assert_int_equal(ring_address_format(&address, text, sizeof(text)), 0);
	assert_string_equal(text, "1:1:2048:00000000feedface:@wattle-1");
	assert_int_equal(ring_address_parse(text, &back), 0);
	assert_memory_equal(&address, &back, sizeof(back));
	assert_int_equal(ring_address_format(&address, text, 20), -ERANGE);
}

static const struct bad_row {
	const char *teaches, *text;
} bad_rows[] = {
	{"address: nothing", ""},
	{"address: another version", "2:0:2048:00000000feedface:@a"},
	{"address: not a power of two", "1:0:2047:00000000feedface:@a"},
	{"address: too few records", "1:0:512:00000000feedface:@a"},
	{"address: too many records", "1:0:8388608:00000000feedface:@a"},
	{"address: flags too large", "1:4294967296:2048:00000000feedface:@a"},
	{"address: no token", "1:0:2048::@a"},
	{"address: token too large", "1:0:2048:10000000000000000:@a"},
	{"address: not abstract", "1:0:2048:00000000feedface:/tmp/a"},
	{"address: no name", "1:0:2048:00000000feedface:@"},
	{"address: cut", "1:0:2048"},
	{"address: name too long",
		"1:0:2048:00000000feedface:@0123456789012345678901234567890123456789012345678901234567890123"},
	{"address: no number", "1:x:2048:00000000feedface:@a"},
};

static void check_bad(void **state)
{
	const struct bad_row *row = *state;
	struct ring_address address;
	assert_int_equal(ring_address_parse(row->text, &address), -EINVAL);
	assert_int_equal(span_writer_connect(row->text), -EINVAL);
	assert_false(span_writer_is_on());
}

static void nobody_there(void **state)
{
	assert_int_equal(span_writer_connect("1:0:2048:00000000feedface:@wattle-nobody"), 0);
	assert_true(span_writer_is_on());
	assert_int_equal(span_begin("a", NULL, NULL), 0);
	assert_false(span_writer_is_on());
	assert_int_equal(span_end(), 0);
	assert_int_equal(wattle_is_recording(), 0);
}

static void sessions_are_apart(void **state)
{
	struct fake_recorder first = connected(RING_RECORDS_MIN);
	span_begin("in the first", NULL, NULL);
	assert_int_equal(wattle_is_recording(), 1);
	struct fake_recorder second = connected(RING_RECORDS_MIN);
	assert_int_equal(span_end(), -ENOENT);
	span_begin("in the second", NULL, NULL);
	span_end();
	assert_string_equal(fake_only(&first)->reading.log, "begin in the first\n");
	assert_string_equal(fake_only(&second)->reading.log, "begin in the second\nend\n");
	span_writer_disconnect();
	assert_int_equal(wattle_span_begin("nowhere"), 0);
	assert_int_equal(wattle_span_end(), 0);
	assert_string_equal(fake_only(&second)->reading.log, "begin in the second\nend\n");
	fake_close(&first);
	fake_close(&second);
}

static void without_a_recorder(void **state)
{
	uint32_t depth = 5;
	uint64_t range = 5;
	assert_int_equal(wattle_is_recording(), 0);
	assert_int_equal(wattle_span_begin(NULL), 0);
	assert_int_equal(wattle_span_end(), 0);
	assert_int_equal(wattle_span_enter("a", &depth), 0);
	assert_int_equal(wattle_span_leave(depth), 0);
	assert_int_equal(wattle_range_begin("a", &range), 0);
	assert_int_equal(wattle_range_end(range), 0);
	assert_int_equal(wattle_mark("a"), 0);
	assert_int_equal(wattle_metric("a", NAN), 0);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "no recorder: every call succeeds", without_a_recorder);
	ROWS_ADD(&tests, rows, check);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static char names[sizeof(rows) / sizeof(rows[0])][128];
		snprintf(names[i], sizeof(names[i]), "with CPU time: %s", rows[i].teaches);
		rows_add(&tests, names[i], check_with_cpu_time, &rows[i]);
	}
	ROWS_ADD_ONE(&tests, "hello and header: the same values", hello_and_header_agree);
	ROWS_ADD_ONE(&tests, "CPU time of a span: at most its duration", cpu_time_is_told);
	ROWS_ADD_ONE(&tests, "names over 1023 bytes: truncated", long_names_are_cut);
	ROWS_ADD_ONE(&tests, "name changed in its buffer: recorded as a new name", a_name_may_change_in_its_place);
	ROWS_ADD_ONE(&tests, "20,000 names: each recorded unchanged", names_have_no_bounds);
	ROWS_ADD_ONE(&tests, "address: read back as written", ring_addresses);
	ROWS_ADD(&tests, bad_rows, check_bad);
	ROWS_ADD_ONE(&tests, "recorder gone: spans are switched off", nobody_there);
	ROWS_ADD_ONE(&tests, "another recorder: starts from the beginning", sessions_are_apart);
	return rows_run(&tests, "writer");
}
