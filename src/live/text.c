#include "live/internal.h"

#include "base/num.h"
#include "base/util.h"
#include "report/report.h"

#include <stdio.h>

static struct figure unknown(void)
{
	return (struct figure){"n/a"};
}

struct figure figure_number(double value)
{
	if (!isfinite(value))
		return unknown();
	double size = fabs(value);
	int decimals = size < 0.9995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
	struct figure figure = {"0"};
	if (size >= 0.0005)
		num_format_fixed(figure.text, sizeof(figure.text), value, decimals);
	return figure;
}

struct figure figure_in_column(double value)
{
	if (!isfinite(value))
		return unknown();
	double size = fabs(value);
	struct figure figure = {"0"};
	if (size > 0)
		num_format_fixed(figure.text, sizeof(figure.text), value, size < 99.995 ? 2 : size < 999.95 ? 1 : 0);
	return figure;
}

struct figure figure_bytes(double bytes)
{
	static const char units[] = "BKMGTPE";
	if (!isfinite(bytes))
		return unknown();
	size_t unit = 0;
	while (fabs(bytes) >= 999.5 && unit + 2 < sizeof(units)) {
		bytes /= 1000;
		unit++;
	}
	double size = fabs(bytes);
	struct figure figure;
	size_t n = num_format_fixed(figure.text, sizeof(figure.text) - 2, bytes,
		unit == 0 || size >= 99.95 ? 0
			: size < 9.995     ? 2
					   : 1);
	figure.text[n] = units[unit];
	figure.text[n + 1] = '\0';
	return figure;
}

struct figure figure_count(int64_t value)
{
	struct figure figure = unknown();
	if (value_ok(value))
		snprintf(figure.text, sizeof(figure.text), "%lld", (long long)value);
	return figure;
}

struct figure figure_span(double seconds)
{
	struct figure figure = unknown();
	if (!isfinite(seconds) || seconds < 0)
		return figure;
	if (seconds < 9.995) {
		size_t n = num_format_fixed(figure.text, sizeof(figure.text) - 2, seconds, 2);
		figure.text[n] = 's';
		figure.text[n + 1] = '\0';
		return figure;
	}
	long long whole = (long long)seconds, minutes = whole / 60, hours = minutes / 60;
	if (whole < 60)
		snprintf(figure.text, sizeof(figure.text), "%llds", whole);
	else if (hours == 0)
		snprintf(figure.text, sizeof(figure.text), "%lld:%02lld", minutes, whole % 60);
	else if (hours < 48)
		snprintf(figure.text, sizeof(figure.text), "%lld:%02lld:%02lld", hours, minutes % 60, whole % 60);
	else
		snprintf(figure.text, sizeof(figure.text), "%lldd%02lldh", hours / 24, hours % 24);
	return figure;
}

static struct figure written(void (*write)(struct buf *out, double value), double value)
{
	struct figure figure = unknown();
	struct buf out;
	buf_init(&out, sizeof(figure.text) - 1);
	write(&out, isfinite(value) ? value : (double)NAN);
	if (out.data != NULL && !out.failed)
		text_copy(figure.text, sizeof(figure.text), out.data);
	buf_finish(&out);
	return figure;
}

struct figure figure_power(double power_w)
{
	return written(human_power, power_w);
}

struct figure figure_memory(double bytes)
{
	return isfinite(bytes) ? written(human_bytes, bytes) : unknown();
}

struct figure figure_energy(double energy_j)
{
	return written(human_energy, energy_j);
}
