// Messages during the search and at its end.
#include "cli/cap_tune.h"

#include "base/clock.h"
#include "base/util.h"
#include "report/report.h"

#include <stdio.h>
#include <string.h>

enum { LINE_CEILING = 4096 };

void tune_clear_progress(struct tune_search *search)
{
	if (search->is_line_shown)
		fputs("\r\033[K", stderr);
	search->is_line_shown = false;
}

static void add_limit(struct buf *line, const struct tune_search *search, double value)
{
	human_cap(line, value, cap_kind_unit(search->report->what));
}

// The tuner estimates measuring time only; the ratio of elapsed to measured time so far adds the settling time.
static double seconds_left(const struct tune_search *search)
{
	if (!(search->measured_s > 0))
		return (double)NAN;
	return tuner_seconds_left(search->tuner) *
		fmax((double)(clock_now_ns() - search->start_ns) * 1e-9 / search->measured_s, 1);
}

void tune_show_progress(struct tune_search *search, const char *doing)
{
	struct buf line;
	if (!search->shows_progress)
		return;
	buf_init(&line, LINE_CEILING);
	buf_printf(&line, "\r\033[Ktuning %s: %.0f %%", search->group->name, 100 * tuner_progress(search->tuner));
	if (!isnan(search->group->set)) {
		buf_str(&line, ", ");
		add_limit(&line, search, search->group->set);
	}
	if (doing != NULL)
		buf_printf(&line, ", %s", doing);
	double left_s = seconds_left(search);
	if (left_s > 0) {
		buf_str(&line, ", about ");
		human_time(&line, left_s < 10 ? left_s : round(left_s));
		buf_str(&line, " left");
	}
	if (line.failed == 0)
		fputs(line.data, stderr);
	fflush(stderr);
	buf_finish(&line);
	search->is_line_shown = true;
}

// Without a terminal: one line per window.
void tune_print_window(struct tune_search *search, const struct tune_window *window)
{
	struct buf line;
	if (search->options->quiet || search->shows_progress)
		return;
	buf_init(&line, LINE_CEILING);
	buf_printf(&line, "tuning %s: %.0f %%, ", search->group->name, 100 * tuner_progress(search->tuner));
	add_limit(&line, search, tuner_limit(search->tuner, window->limit));
	buf_str(&line, ": ");
	human_energy(&line, window->energy_j / window->steps);
	buf_str(&line, " and ");
	human_time(&line, window->time_s / window->steps);
	buf_printf(&line, " a %s\n", search->steps->whole_runs ? "run" : search->steps->is_metric ? "unit" : "step");
	if (line.failed == 0)
		fputs(line.data, stderr);
	buf_finish(&line);
}
