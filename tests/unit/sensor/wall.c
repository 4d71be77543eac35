#include "sensor/internal.h"

#include "one_sensor.h"
#include "energy/counter.h"

#include <errno.h>

#define HEADER "#timestamp,#frame_is_ok,#U1,#current1,#activepow1,#current2,#activepow2\n"

/* ---- lines ---- */

static const struct header {
	const char *teaches, *line;
	uint64_t channels;
	bool found;
	size_t n_power;
} headers[] = {
	{"OmegaWatt's own", "#timestamp,#frame_is_ok,#U1,#U2,#U3,#current1,#activepow1,#current2,#activepow2", 0, true,
		2},
	{"one channel of two", "#timestamp,#frame_is_ok,#activepow1,#activepow2", 1 << 2, true, 1},
	{"channel that does not exist", "#timestamp,#frame_is_ok,#activepow1", 1 << 5, true, 0},
	{"header without '#', other case, quotes, semicolons", "\"Timestamp\"; \"Frame_is_ok\"; \"ActivePow1\"", 0,
		true, 1},
	{"no power column", "#timestamp,#frame_is_ok,#U1", 0, true, 0},
	{"header line of numbers", "1671527189.3,true,1,2", 0, false, 0},
	{"another table", "time,watts", 0, false, 0},
	{"empty header line", "", 0, false, 0},
};

static void read_header(void **state)
{
	const struct header *row = *state;
	struct wall_columns columns = {0};
	assert_int_equal(wall_csv_header(row->line, row->channels, &columns), row->found);
	assert_int_equal(columns.n_power, row->n_power);
}

static const struct frame {
	const char *teaches, *line;
	bool ok;
	int64_t stamp_ns, power_mw;
} frames[] = {
	{"two channels: added", "1671527189.314471465,true,232.3,0.1,20.9,0.2,30.1", true,
		INT64_C(1671527189314471465), 51000},
	{"whole seconds", "5,true,,,1,,2", true, 5 * NS_PER_S, 3000},
	{"channel slightly below zero", "5,true,,,100,,-0.1", true, 5 * NS_PER_S, 99900},
	{"row whose status is not ok", "1671527189.304214184,false,,,,,", false, 0, 0},
	{"row without a status", "1671527189.3,,1,1,1,1,1", false, 0, 0},
	{"row truncated in its last column", "1671527189.3,true,232.3,0.1,20.9,0.2", false, 0, 0},
	{"row truncated in the middle", "1671527189.3,tr", false, 0, 0},
	{"word in place of a number", "5,true,,,1,,off", false, 0, 0},
	{"no number", "5,true,,,1,,", false, 0, 0},
	{"negative power", "5,true,,,-20,,1", false, 0, 0},
	{"more power than a socket can supply", "5,true,,,1e9,,1", false, 0, 0},
	{"infinite", "5,true,,,1e999,,1", false, 0, 0},
	{"invalid timestamp", "yesterday,true,,,1,,1", false, 0, 0},
	{"timestamp beyond 64 bits", "99999999999999999999,true,,,1,,1", false, 0, 0},
	{"empty line", "", false, 0, 0},
};

static void read_frame(void **state)
{
	const struct frame *row = *state;
	struct wall_columns columns;
	struct wall_frame frame = {0};
	assert_true(wall_csv_header(HEADER, 0, &columns));
	assert_int_equal(wall_csv_frame(row->line, &columns, &frame), row->ok);
	assert_int_equal(frame.stamp_ns, row->stamp_ns);
	assert_int_equal(frame.power_mw, row->power_mw);
}

/* ---- the file ---- */

static const struct refusal {
	const char *teaches, *text; // NULL: no file; "DIR": a folder
	const char *suffix;
	int code;
	const char *says; // part of the message
} refusals[] = {
	{"missing file", NULL, "", -ENOENT, "No such file or directory; give the CSV file"},
	{"a folder", "DIR", "", -EINVAL, "is not a regular file"},
	{"empty file", "", "", -EINVAL, "no header with #timestamp and #frame_is_ok"},
	{"another CSV", "time,watts\n1,2\n", "", -EINVAL, "no header with #timestamp and #frame_is_ok"},
	{"file without power", "#timestamp,#frame_is_ok,#U1\n", "", -EINVAL, "no column #activepow of any channel"},
	{"file without the channel", HEADER, ":1,7", -EINVAL, "no column #activepow of each channel asked for"},
	{"suffix that names no channel: part of the file name", HEADER, ":x", -ENOENT, "No such file"},
};

static void refuses(void **state)
{
	const struct refusal *row = *state;
	struct one_sensor one;
	struct wattle_error error = {0};
	char path[600];
	one_make(&one, NULL);
	if (row->text != NULL)
		one_write(&one, &(struct one_file){"meter.csv", row->text});
	snprintf(path, sizeof(path), "%s/meter.csv%s", one.tree.root, row->suffix);
	assert_int_equal(one_open(&one, &sensor_wall, &(struct sensor_options){.wall_meter = path}, &error), row->code);
	assert_non_null(strstr(error.text, "--wall-meter "));
	assert_non_null(strstr(error.text, row->says));
	assert_int_equal(one.n, 0);
	one_finish(&one);
}

struct meter {
	struct one_sensor one;
	struct counter counter;
	enum counter_event event; // of the last reading
	char path[512];
};

__attribute__((format(printf, 2, 3))) static void append(const struct meter *m, const char *format, ...)
{
	FILE *file = fopen(m->path, "ae");
	va_list args;
	assert_non_null(file);
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	assert_int_equal(fclose(file), 0);
}

// A row with the meter's time, here the wall clock: `at_ms` after the start of the test.
static void frame(const struct meter *m, int at_ms, double watts)
{
	append(m, "%d.%03d,true,230.0,0.1,%.1f,0.0,0.0\n", 1700001000 + at_ms / 1000, at_ms % 1000, watts);
}

static void meter_open(struct meter *m, const char *text)
{
	one_make(&m->one, NULL);
	tree_path(&m->one.tree, m->path, "meter.csv");
	one_write(&m->one, &(struct one_file){"meter.csv", text});
	assert_int_equal(one_open(&m->one, &sensor_wall, &(struct sensor_options){.wall_meter = m->path}, NULL), 0);
	assert_int_equal(m->one.n, 1);
	counter_init(&m->counter, 0, m->one.domains[0].max_power_w);
}

static int64_t read_at(struct meter *m, int at_ms, size_t column)
{
	m->one.now_ns = (1000000 + at_ms) * NS_PER_MS;
	one_read(&m->one);
	m->event = counter_feed(&m->counter, m->one.now_ns, m->one.rows[0][DEVICE_ENERGY_RAW], false);
	return m->one.rows[0][column];
}

static void integrates_every_frame(void **state)
{
	struct meter m;
	meter_open(&m, "open /dev/ttyUSB0: retry\n" HEADER "1600000000.0,true,230,0,5,0,0\n");
	assert_string_equal(m.one.domains[0].name, "wall");
	assert_string_equal(m.one.domains[0].device, "meter.csv, 2 channels");
	// Rows from before the run do not count.
	assert_int_equal(read_at(&m, 0, DEVICE_POWER), VALUE_MISSING);
	assert_int_equal(m.one.rows[0][DEVICE_ENERGY_RAW], VALUE_MISSING);
	frame(&m, 10, 100);
	assert_int_equal(read_at(&m, 15, DEVICE_POWER), 100000);
	// Between two readings: 100 W, then 300 W for half of the time; the last row alone would be wrong.
	for (int ms = 20; ms <= 510; ms += 10)
		frame(&m, ms, 100);
	for (int ms = 520; ms <= 1010; ms += 10)
		frame(&m, ms, 300);
	append(&m, "1700001001.012,false,,,,,\n");
	assert_int_equal(read_at(&m, 1015, DEVICE_POWER), 300000);
	assert_int_equal(m.one.rows[0][DEVICE_ENERGY_TIME], INT64_C(1001010) * NS_PER_MS);
	assert_int_equal(m.counter.total, 50000000 + 2000000 + 147000000);
	assert_string_equal(m.one.domains[0].note, "");
	one_finish(&m.one);
}

static void waits_for_whole_lines(void **state)
{
	struct meter m;
	meter_open(&m, HEADER);
	frame(&m, 0, 100);
	read_at(&m, 0, DEVICE_POWER);
	append(&m, "1700001000.100,true,230.0,0.1,20");
	assert_int_equal(read_at(&m, 100, DEVICE_POWER), 100000);
	append(&m, "0.0,0.0,0.0\n");
	assert_int_equal(read_at(&m, 110, DEVICE_POWER), 200000);
	assert_int_equal(m.counter.total, 15000000);
	one_finish(&m.one);
}

// The reader is stopped for ten seconds: the energy meanwhile is unknown, in both figures.
static void does_not_bridge_gaps(void **state)
{
	struct meter m;
	meter_open(&m, HEADER);
	frame(&m, 0, 100);
	read_at(&m, 0, DEVICE_POWER);
	frame(&m, 500, 100);
	read_at(&m, 500, DEVICE_POWER);
	assert_int_equal(read_at(&m, 1400, DEVICE_POWER), 100000);
	assert_int_equal(read_at(&m, 1600, DEVICE_POWER), VALUE_MISSING);
	assert_int_equal(m.event, COUNTER_GAP);
	frame(&m, 10000, 100);
	read_at(&m, 10000, DEVICE_POWER);
	assert_int_equal(m.event, COUNTER_RESET);
	frame(&m, 10500, 100);
	read_at(&m, 10500, DEVICE_POWER);
	assert_int_equal(m.counter.total, 100000000);
	one_finish(&m.one);
}

static void follows_a_new_file(void **state)
{
	struct meter m;
	meter_open(&m, HEADER);
	frame(&m, 0, 100);
	read_at(&m, 0, DEVICE_POWER);
	one_write(&m.one,
		&(struct one_file){"meter.csv",
			"#timestamp,#frame_is_ok,#activepow1\n"}); // truncated and started again
	append(&m, "1700001000.100,true,300.0\n");
	read_at(&m, 100, DEVICE_POWER); // detects that it is shorter
	assert_int_equal(read_at(&m, 200, DEVICE_POWER), 300000);
	one_write(&m.one, &(struct one_file){"meter.csv", NULL}); // renamed away
	assert_int_equal(read_at(&m, 1300, DEVICE_POWER), VALUE_MISSING);
	one_write(&m.one, &(struct one_file){"meter.csv", HEADER});
	frame(&m, 2400, 500);
	read_at(&m, 2400, DEVICE_POWER); // detects the new file
	assert_int_equal(read_at(&m, 2500, DEVICE_POWER), 500000);
	one_finish(&m.one);
}

static void one_channel(void **state)
{
	struct one_sensor one;
	char path[600];
	one_make(&one, NULL);
	one_write(&one, &(struct one_file){"meter.csv", HEADER "1700000999.9,true,230,0,70,0,5\n"});
	snprintf(path, sizeof(path), "%s/meter.csv:2", one.tree.root);
	assert_int_equal(one_open(&one, &sensor_wall, &(struct sensor_options){.wall_meter = path}, NULL), 0);
	one_read(&one);
	FILE *file = fopen(strtok(path, ":"), "ae");
	assert_non_null(file);
	fputs("1700001000.0,true,230,0,80,0,6\n", file);
	fclose(file);
	one_read(&one);
	assert_int_equal(one.rows[0][DEVICE_POWER], 6000);
	one_finish(&one);
}

/* ---- clocks ---- */

static const struct stamping {
	const char *teaches;
	struct {
		int64_t stamp_ms, seen_ms, expected_ms;
	} seen[3];
	bool foreign;
} stampings[] = {
	{"the wall clock", {{1700000999900, 0, -100}, {1700001000100, 150, 100}, {1700001000100, 400, 100}}, false},
	{"wall clock, rows written late from a buffer",
		{{1700000970000, 0, -30000}, {1700000971000, 100, -29000}, {1700001000100, 150, 100}}, false},
	{"clock slightly ahead: corrected by the first row from the future",
		{{1700001000300, 0, 0}, {1700001000400, 100, 100}, {1700001000450, 200, 150}}, false},
	{"the time since boot", {{999900, 0, -100}, {1000100, 200, 100}, {1000200, 200, 200}}, false},
	{"unknown epoch: differences come from the device", {{5000, 0, 0}, {5100, 150, 100}, {5400, 350, 350}}, true},
	{"wall clock set in between",
		{{1700001000000, 0, 0}, {1700009000000, 100, 100}, {1700009000100, 200, 200}}, true},
};

static void stamp(void **state)
{
	const struct stamping *row = *state;
	struct one_sensor one;
	struct stamp_clock clock;
	one_make(&one, NULL);
	stamp_clock_init(&clock, &one.env);
	for (size_t i = 0; i < ARRAY_SIZE(row->seen); i++) {
		one.now_ns = (1000000 + row->seen[i].seen_ms) * NS_PER_MS;
		int64_t t_ns = stamp_to_monotonic(&clock, row->seen[i].stamp_ms * NS_PER_MS, one.now_ns);
		assert_int_equal(t_ns / NS_PER_MS - 1000000, row->seen[i].expected_ms);
	}
	assert_int_equal(clock.foreign, row->foreign);
	env_close(&one.env);
	tree_finish(&one.tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, headers, read_header);
	ROWS_ADD(&tests, frames, read_frame);
	ROWS_ADD(&tests, refusals, refuses);
	ROWS_ADD_ONE(&tests, "every row counts, by its own time", integrates_every_frame);
	ROWS_ADD_ONE(&tests, "incomplete line: waits for its end", waits_for_whole_lines);
	ROWS_ADD_ONE(&tests, "silent meter: a gap", does_not_bridge_gaps);
	ROWS_ADD_ONE(&tests, "truncated or replaced file: followed", follows_a_new_file);
	ROWS_ADD_ONE(&tests, "FILE:2 selects socket 2", one_channel);
	ROWS_ADD(&tests, stampings, stamp);
	return rows_run(&tests, "wall");
}
