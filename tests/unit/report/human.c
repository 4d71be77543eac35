#include "report/report.h"

#include "rows.h"

#include <math.h>
#include <string.h>

static const struct row {
	const char *teaches;
	void (*print)(struct buf *out, double value);
	double value;
	const char *text;
} rows[] = {
	{"energy: kilojoules", human_energy, 1234, "1.23 kJ"},
	{"energy: three digits", human_energy, 345.6, "346 J"},
	{"energy: small", human_energy, 0.01234, "12.3 mJ"},
	{"energy: what rounds up to 1000 J is 1.00 kJ", human_energy, 999.6, "1.00 kJ"},
	{"energy: a tenth of a microjoule", human_energy, 1e-7, "0.100 µJ"},
	{"energy: nothing", human_energy, 0, "0 J"},
	{"energy: unknown is not 0", human_energy, NAN, "n/a"},
	{"energy: gigajoules", human_energy, 3.6e9, "3.60 GJ"},
	{"power", human_power, 12.34, "12.3 W"},
	{"power: half a milliwatt", human_power, 0.0005, "500 µW"},
	{"power: 99.96 W is 100 W", human_power, 99.96, "100 W"},
	{"mass: thousandths of a gram", human_grams, 0.00768, "7.68 mg"},
	{"mass: a kilogram", human_grams, 1234, "1.23 kg"},
	{"bytes: no parts of one", human_bytes, 512, "512 B"},
	{"bytes: decimal", human_bytes, 512e6, "512 MB"},
	{"bytes: just below a kilobyte", human_bytes, 999, "999 B"},
	{"bytes: 999,999 are 1.00 MB", human_bytes, 999999, "1.00 MB"},
	{"bytes: unknown", human_bytes, NAN, "n/a"},
	{"time: microseconds", human_time, 45e-6, "45.0 µs"},
	{"time: milliseconds", human_time, 0.5123, "512 ms"},
	{"time: seconds", human_time, 12.345, "12.3 s"},
	{"time: 59.96 s is a minute", human_time, 59.96, "1 min 00.0 s"},
	{"time: minutes", human_time, 62.3, "1 min 02.3 s"},
	{"time: what rounds up to an hour", human_time, 3599.97, "1 h 00 min"},
	{"time: hours", human_time, 3720, "1 h 02 min"},
	{"time: days", human_time, 2.5 * 86400, "2 d 12 h"},
	{"time: nothing", human_time, 0, "0 s"},
	{"time: unknown", human_time, NAN, "n/a"},
	{"percent", human_percent, 12.34, "12.3 %"},
	{"percent: a hundred needs no decimals", human_percent, 100, "100 %"},
	{"percent: unknown", human_percent, NAN, "n/a"},
	{"error: two digits", human_error, 12.34, "± 12 J"},
	{"error: 99.6 J is 100 J", human_error, 99.6, "± 100 J"},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct buf out;
	buf_init(&out, 100);
	row->print(&out, row->value);
	assert_string_equal(out.data, row->text);
	buf_finish(&out);
}

static const struct number_row {
	const char *teaches;
	double value;
	int digits;
	const char *text;
} number_rows[] = {
	{"three digits of a small number", 0.012345, 3, "0.0123"},
	{"three digits of a large number: none is made up, none is cut off", 12345, 3, "12345"},
	{"9.996 is 10.0", 9.996, 3, "10.0"},
	{"negative", -1.2345, 3, "-1.23"},
	{"nothing", 0, 3, "0"},
};

static void check_number(void **state)
{
	const struct number_row *row = *state;
	struct buf out;
	buf_init(&out, 100);
	human_number(&out, row->value, row->digits);
	assert_string_equal(out.data, row->text);
	buf_finish(&out);
}

static const struct error_row {
	const char *teaches;
	double value, error;
	const char *text;
} error_rows[] = {
	{"error below the value: no mark", 2, 1.5, "± 1.5 J"},
	{"error equal to the value: marked", 1.5, 1.5, "± 1.5 J ?"},
	{"error above the value: marked, and not replaced by an upper limit", 1.2, 1.5, "± 1.5 J ?"},
	{"negative value: its amount counts", -2, 1.5, "± 1.5 J"},
	{"nothing without an error is exact", 0, 0, "± 0 J"},
	{"unknown error: no mark", 1, NAN, "± n/a"},
	{"unknown value: no mark", NAN, 1, "± 1.0 J"},
};

static void check_error(void **state)
{
	const struct error_row *row = *state;
	struct buf out;
	buf_init(&out, 100);
	human_error_of(&out, row->value, row->error);
	assert_string_equal(out.data, row->text);
	buf_finish(&out);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, number_rows, check_number);
	ROWS_ADD(&tests, error_rows, check_error);
	return rows_run(&tests, "human");
}
