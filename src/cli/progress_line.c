#include "cli/measure.h"

#include "base/utf8.h"
#include "base/util.h"
#include "report/report.h"
#include "report/table.h"

#include <string.h>

enum detail { EVERYTHING, PLUS_MINUS, NO_STEPS, NO_ERRORS, NO_FORECAST, LEAST, DETAILS };
enum { NO_STEP_AFTER_S = 10, NAME_COLUMNS = 32 };

// Rounds a remaining time: when it is minutes, tenths of a second are not known.
static void rounded_time(struct buf *out, double seconds)
{
	long long whole = llround(seconds);
	if (isnan(seconds) || seconds < 9.95 || seconds >= 3570)
		human_time(out, seconds);
	else if (whole < 60)
		buf_printf(out, "%lld s", whole);
	else
		buf_printf(out, "%lld min %02lld s", whole / 60, whole % 60);
}

typedef void write_figure(struct buf *out, double value);

// A range with one unit shows the unit once.
static void add_range(struct buf *out, double low, double high, write_figure *write)
{
	struct buf texts[2];
	double ends[2] = {low, high};
	for (int i = 0; i < 2; i++) {
		buf_init(&texts[i], 100);
		write(&texts[i], ends[i]);
	}
	if (texts[0].failed == 0 && texts[1].failed == 0 && strcmp(texts[0].data, texts[1].data) != 0) {
		const char *units[2] = {strchr(texts[0].data, ' '), strchr(texts[1].data, ' ')};
		bool is_shared = units[0] != NULL && units[1] != NULL && strcmp(units[0], units[1]) == 0;
		size_t length = is_shared ? (size_t)(units[0] - texts[0].data) : texts[0].size;
		buf_str(out, " (");
		buf_add(out, texts[0].data, length);
		buf_printf(out, " … %s)", texts[1].data);
	}
	buf_finish(&texts[0]);
	buf_finish(&texts[1]);
}

static void time_error(struct buf *out, double error_s)
{
	buf_str(out, "± ");
	if (error_s >= 9.5) {
		rounded_time(out, error_s);
		return;
	}
	human_number(out, error_s, 2);
	buf_str(out, " s");
}

static void add_error(struct buf *out, const struct forecast_figure *figure, write_figure *write)
{
	double error = fmax(figure->high - figure->left, figure->left - figure->low);
	if (!(error > figure->left * 1e-3))
		return;
	buf_char(out, ' ');
	write(out, error);
}

static void add_figure(struct buf *out, const struct forecast_figure *figure, write_figure *write,
	write_figure *write_error, enum detail detail)
{
	write(out, figure->left);
	if (detail == EVERYTHING)
		add_range(out, figure->low, figure->high, write);
	else if (detail < NO_ERRORS)
		add_error(out, figure, write_error);
}

static void add_forecast(struct buf *out, const struct progress_figures *figures, enum detail detail)
{
	const struct forecast *forecast = &figures->forecast;
	if (isnan(forecast->time_s.left))
		return;
	buf_str(out, ", to go ");
	add_figure(out, &forecast->time_s, rounded_time, time_error, detail);
	if (isnan(forecast->energy_j.left))
		return;
	buf_str(out, detail == EVERYTHING ? " and " : ", ");
	buf_str(out, figures->is_estimated ? "~" : "");
	add_figure(out, &forecast->energy_j, human_energy, human_error, detail);
}

static void add_steps(struct buf *out, const struct progress_figures *figures)
{
	if (figures->step == NULL)
		return;
	if (figures->steps == 0 && figures->elapsed_s >= NO_STEP_AFTER_S) {
		buf_str(out, ", no step named ");
		text_fit(out, figures->step, NAME_COLUMNS, false);
		buf_str(out, " yet");
		return;
	}
	buf_printf(out, ", step %lld", (long long)figures->steps);
	if (value_ok(figures->all_steps))
		buf_printf(out, "/%lld", (long long)figures->all_steps);
}

static void nan_sum(struct buf *out, const struct progress_figures *figures, double value, write_figure *write)
{
	buf_str(out, figures->is_estimated && !isnan(value) ? "~" : "");
	write(out, value);
}

static void add_line(struct buf *out, const struct progress_figures *figures, enum detail detail)
{
	buf_str(out, detail < LEAST ? "wattle: " : "");
	if (detail == EVERYTHING)
		human_time(out, figures->elapsed_s);
	else
		rounded_time(out, figures->elapsed_s);
	buf_str(out, ", ");
	nan_sum(out, figures, figures->energy_j, human_energy);
	if (detail == LEAST)
		return;
	buf_str(out, ", ");
	nan_sum(out, figures, figures->power_w, human_power);
	if (detail != NO_STEPS)
		add_steps(out, figures);
	if (detail < NO_FORECAST)
		add_forecast(out, figures, detail);
}

void progress_line(const struct progress_figures *figures, size_t width, struct buf *out)
{
	size_t start = out->size;
	for (enum detail detail = EVERYTHING; detail < DETAILS; detail++) {
		add_line(out, figures, detail);
		if (out->failed != 0 || width == 0 || utf8_text_columns(out->data + start, out->size - start) <= width)
			return;
		if (detail + 1 == DETAILS)
			return; // the shortest form is still too wide
		out->size = start;
	}
}
