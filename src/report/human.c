#include "report/report.h"

#include "base/util.h"

struct prefix {
	double size;
	const char *unit;
};

static const struct prefix energy_units[] = {{1e9, "GJ"}, {1e6, "MJ"}, {1e3, "kJ"}, {1, "J"}, {1e-3, "mJ"},
	{1e-6, "µJ"}};
static const struct prefix power_units[] = {{1e6, "MW"}, {1e3, "kW"}, {1, "W"}, {1e-3, "mW"}, {1e-6, "µW"}};
static const struct prefix byte_units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};
static const struct prefix gram_units[] = {{1e6, "t"}, {1e3, "kg"}, {1, "g"}, {1e-3, "mg"}, {1e-6, "µg"}};
static const struct prefix time_units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};

// Half a unit of the last of n significant digits below a power of ten: what rounds up to it.
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

static void with_prefix(struct buf *out, double value, const struct prefix *prefixes, size_t n, int digits)
{
	if (isnan(value)) {
		buf_str(out, "n/a");
		return;
	}
	size_t i = 0;
	while (i + 1 < n && fabs(value) < rounds_up_to(prefixes[i].size, digits))
		i++;
	if (!(fabs(value) >= prefixes[n - 1].size / 1000)) { // nothing, or so little that it is nothing
		value = 0;
		for (i = 0; i + 1 < n && prefixes[i].size > 1; i++)
			;
	}
	human_number(out, value / prefixes[i].size, digits);
	buf_char(out, ' ');
	buf_str(out, prefixes[i].unit);
}

void human_energy(struct buf *out, double energy_j)
{
	with_prefix(out, energy_j, energy_units, ARRAY_SIZE(energy_units), 3);
}

void human_error(struct buf *out, double error_j)
{
	buf_str(out, "± ");
	with_prefix(out, error_j, energy_units, ARRAY_SIZE(energy_units), 2);
}

void human_power(struct buf *out, double power_w)
{
	with_prefix(out, power_w, power_units, ARRAY_SIZE(power_units), 3);
}

void human_grams(struct buf *out, double grams)
{
	with_prefix(out, grams, gram_units, ARRAY_SIZE(gram_units), 3);
}

void human_bytes(struct buf *out, double bytes)
{
	if (fabs(bytes) < rounds_up_to(1000, 3)) // there are no parts of a byte
		buf_printf(out, "%lld B", llround(bytes));
	else
		with_prefix(out, bytes, byte_units, ARRAY_SIZE(byte_units), 3);
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
		with_prefix(out, seconds, time_units, ARRAY_SIZE(time_units), 3);
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
