#include "report/report.h"

#include "base/util.h"

static const struct human_unit all_units[] = {
	{"w", 1e6, "MW"},
	{"w", 1e3, "kW"},
	{"w", 1, "W"},
	{"w", 1e-3, "mW"},
	{"w", 1e-6, "µW"},
	{"j", 1e9, "GJ"},
	{"j", 1e6, "MJ"},
	{"j", 1e3, "kJ"},
	{"j", 1, "J"},
	{"j", 1e-3, "mJ"},
	{"j", 1e-6, "µJ"},
	{"bytes", 1e12, "TB"},
	{"bytes", 1e9, "GB"},
	{"bytes", 1e6, "MB"},
	{"bytes", 1e3, "kB"},
	{"bytes", 1, "B"},
	{"g", 1e6, "t"},
	{"g", 1e3, "kg"},
	{"g", 1, "g"},
	{"g", 1e-3, "mg"},
	{"g", 1e-6, "µg"},
	{"s", 1, "s"},
	{"s", 1e-3, "ms"},
	{"s", 1e-6, "µs"},
	{"s", 1e-9, "ns"},
	{"mhz", 1e3, "GHz"},
	{"mhz", 1, "MHz"},
	{"cores", 1, "cores"},
	{"percent", 1, "%"},
	{"c", 1, "°C"},
	{"processes", 1, "processes"},
};

// Smallest value that rounds to the power of ten with that number of significant digits.
static double rounds_up_to(double power_of_ten, int digits)
{
	return power_of_ten * (1 - 0.5 * pow(10, -digits));
}

void human_number(struct buf *out, double value, int digits)
{
	double size = fabs(value);
	int decimals = digits - 1;
	for (double limit = 10; decimals > 0 && size >= rounds_up_to(limit, digits); limit *= 10)
		decimals--;
	for (double limit = 1; size > 0 && size < rounds_up_to(limit, digits) && decimals < 9; limit /= 10)
		decimals++;
	buf_fixed(out, size > 0 ? value : 0, size > 0 ? decimals : 0);
}

void human_whole(struct buf *out, double value)
{
	buf_fixed(out, value, 0);
}

void human_celsius(struct buf *out, double value)
{
	human_whole(out, value);
	buf_str(out, " °C");
}

void human_megahertz(struct buf *out, double value)
{
	human_whole(out, value);
	buf_str(out, " MHz");
}

void human_exact(struct buf *out, double value, double below)
{
	if (fabs(value) < below && value == floor(value))
		human_whole(out, value);
	else
		human_number(out, value, 4);
}

void human_cap(struct buf *out, double value, const char *unit)
{
	if (isnan(value)) {
		buf_str(out, "n/a");
		return;
	}
	buf_fixed(out, value, fabs(value - round(value)) < 0.05 ? 0 : 1);
	buf_printf(out, " %s", unit);
}

const struct human_unit *human_unit(const char *quantity, double value, int digits)
{
	static const struct human_unit none = {"", 1, ""};
	const struct human_unit *found = &none;
	for (size_t i = 0; i < ARRAY_SIZE(all_units); i++) {
		if (strcmp(all_units[i].quantity, quantity) != 0)
			continue;
		found = &all_units[i];
		if (fabs(value) >= rounds_up_to(found->size, digits) || (value == 0 && found->size == 1))
			break;
	}
	return found;
}

static void with_unit(struct buf *out, double value, const char *quantity, int digits)
{
	if (isnan(value)) {
		buf_str(out, "n/a");
		return;
	}
	const struct human_unit *unit = human_unit(quantity, value, digits);
	if (!(fabs(value) >= unit->size / 1000)) { // zero, or negligible
		value = 0;
		unit = human_unit(quantity, 0, digits);
	}
	human_number(out, value / unit->size, digits);
	buf_char(out, ' ');
	buf_str(out, unit->name);
}

void human_energy(struct buf *out, double energy_j)
{
	with_unit(out, energy_j, "j", 3);
}

void human_error(struct buf *out, double error_j)
{
	buf_str(out, "± ");
	with_unit(out, error_j, "j", 2);
}

const char unresolved_note[] = "?: the error is as large as the value.";

const char *unresolved_mark(double value, double error)
{
	return error > 0 && !isnan(value) && !is_resolved(value, error) ? " ?" : "";
}

void human_error_of(struct buf *out, double value, double error_j)
{
	human_error(out, error_j);
	buf_str(out, unresolved_mark(value, error_j));
}

void human_power(struct buf *out, double power_w)
{
	with_unit(out, power_w, "w", 3);
}

void human_grams(struct buf *out, double grams)
{
	with_unit(out, grams, "g", 3);
}

void human_bytes(struct buf *out, double bytes)
{
	if (fabs(bytes) < rounds_up_to(1000, 3)) // fractions of a byte do not exist
		buf_printf(out, "%lld B", llround(bytes));
	else
		with_unit(out, bytes, "bytes", 3);
}

void human_percent(struct buf *out, double percent)
{
	if (isnan(percent)) {
		buf_str(out, "n/a");
		return;
	}
	buf_fixed(out, percent, fabs(percent) < 99.95 ? 1 : 0);
	buf_str(out, " %");
}

void human_time(struct buf *out, double seconds)
{
	if (isnan(seconds) || seconds < 59.95) {
		with_unit(out, seconds, "s", 3);
		return;
	}
	long long tenths = llround(seconds * 10), minutes = llround(seconds / 60), hours = llround(seconds / 3600);
	if (tenths < 36000)
		buf_printf(out, "%lld min %02lld.%lld s", tenths / 600, tenths % 600 / 10, tenths % 10);
	else if (minutes < 24 * 60)
		buf_printf(out, "%lld h %02lld min", minutes / 60, minutes % 60);
	else
		buf_printf(out, "%lld d %02lld h", hours / 24, hours % 24);
}

void human_short_time(struct buf *out, double seconds)
{
	static const struct {
		double from_s, unit_s;
		const char *unit;
	} units[] = {{9.995 * 3600, 3600, " h"}, {599.5, 60, " min"}, {59.95, 1, " s"}};
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!(seconds >= units[i].from_s))
			continue;
		human_number(out, seconds / units[i].unit_s, 3);
		buf_str(out, units[i].unit);
		return;
	}
	human_time(out, seconds);
}
