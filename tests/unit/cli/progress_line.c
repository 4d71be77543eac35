/* The text of --progress at each width. */
#include "cli/measure.h"

#include "base/utf8.h"
#include "base/util.h"
#include "report/table.h"

#include "rows.h"

#include <math.h>

#define UNKNOWN                                                                                                        \
	{                                                                                                              \
		(double)NAN, (double)NAN, (double)NAN                                                                  \
	}

static const struct progress_figures middle = {
	.elapsed_s = 123.4,
	.energy_j = 12345,
	.power_w = 98.34,
	.step = "step",
	.steps = 240,
	.all_steps = 1000,
	.forecast = {{390.2, 371, 412.4}, {38123, 36010, 40440}, 0},
};
static const struct progress_figures plain = {.elapsed_s = 3.2,
	.energy_j = (double)NAN,
	.power_w = (double)NAN,
	.all_steps = VALUE_MISSING,
	.forecast = {UNKNOWN, UNKNOWN, 0}};
static const struct progress_figures early = {.elapsed_s = 3.2,
	.energy_j = 30,
	.power_w = 10,
	.step = "step",
	.steps = 2,
	.all_steps = VALUE_MISSING,
	.forecast = {UNKNOWN, UNKNOWN, 0}};
static const struct progress_figures misspelt = {.elapsed_s = 12,
	.energy_j = 120,
	.power_w = 10,
	.step = "stpe",
	.steps = 0,
	.all_steps = 10,
	.forecast = {UNKNOWN, UNKNOWN, 0}};
static const struct progress_figures without_energy = {.elapsed_s = 20,
	.energy_j = (double)NAN,
	.power_w = (double)NAN,
	.step = "step",
	.steps = 5,
	.all_steps = 10,
	.forecast = {{20, 19, 21}, UNKNOWN, 0}};
static const struct progress_figures estimated = {.elapsed_s = 20,
	.energy_j = 200,
	.power_w = 10,
	.is_estimated = true,
	.step = "step",
	.steps = 5,
	.all_steps = 10,
	.forecast = {{20, 20, 20}, {190, 180, 200}, 0}};
static const struct progress_figures estimated_later = {.elapsed_s = 1,
	.energy_j = (double)NAN,
	.power_w = (double)NAN,
	.is_estimated = true,
	.all_steps = VALUE_MISSING,
	.forecast = {UNKNOWN, UNKNOWN, 0}};
static const struct progress_figures certain = {.elapsed_s = 20,
	.energy_j = 20,
	.power_w = 1,
	.step = "step",
	.steps = 5,
	.all_steps = 10,
	.forecast = {{20, 20, 20}, {20, 20, 20}, 0}};

static const struct progress_figures soon = {.elapsed_s = 3.2,
	.energy_j = 30,
	.power_w = 10,
	.step = "step",
	.steps = 90,
	.all_steps = 200,
	.forecast = {{3.43, 3.36, 3.518}, {37, 36.1, 37.95}, 0}};

static const struct row {
	const char *teaches;
	const struct progress_figures *figures;
	size_t width;
	const char *expected;
} rows[] = {
	{"wide terminal: all figures with intervals", &middle, 0,
		"wattle: 2 min 03.4 s, 12.3 kJ, 98.3 W, step 240/1000, to go 6 min 30 s (6 min 11 s … 6 min 52 s) and 38.1 kJ "
		"(36.0 … 40.4 kJ)"},
	{"100 columns: one error for each figure", &middle, 100,
		"wattle: 2 min 03 s, 12.3 kJ, 98.3 W, step 240/1000, to go 6 min 30 s ± 22 s, 38.1 kJ ± 2.3 kJ"},
	{"80 columns: without the steps", &middle, 80,
		"wattle: 2 min 03 s, 12.3 kJ, 98.3 W, to go 6 min 30 s ± 22 s, 38.1 kJ ± 2.3 kJ"},
	{"77 columns: without the errors", &middle, 77,
		"wattle: 2 min 03 s, 12.3 kJ, 98.3 W, step 240/1000, to go 6 min 30 s, 38.1 kJ"},
	{"50 columns: only figures so far", &middle, 55, "wattle: 2 min 03 s, 12.3 kJ, 98.3 W, step 240/1000"},
	{"narrowest: time and energy", &middle, 3, "2 min 03 s, 12.3 kJ"},
	{"unknown figures are n/a, not 0", &plain, 0, "wattle: 3.20 s, n/a, n/a"},
	{"too early for a forecast", &early, 0, "wattle: 3.20 s, 30.0 J, 10.0 W, step 2"},
	{"step name that no span has", &misspelt, 0, "wattle: 12.0 s, 120 J, 10.0 W, no step named stpe yet"},
	{"time known, energy unknown", &without_energy, 0,
		"wattle: 20.0 s, n/a, n/a, step 5/10, to go 20 s (19 … 21 s)"},
	{"errors in seconds have two digits", &soon, 90,
		"wattle: 3.20 s, 30.0 J, 10.0 W, step 90/200, to go 3.43 s ± 0.088 s, 37.0 J ± 950 mJ"},
	{"estimated energy is marked", &estimated, 0,
		"wattle: 20.0 s, ~200 J, ~10.0 W, step 5/10, to go 20 s and ~190 J (180 … 200 J)"},
	{"estimated energy is marked at any width", &estimated, 20, "20 s, ~200 J"},
	{"unknown energy is not marked as estimated", &estimated_later, 0, "wattle: 1.00 s, n/a, n/a"},
	{"no interval where its ends are equal", &certain, 0,
		"wattle: 20.0 s, 20.0 J, 1.00 W, step 5/10, to go 20 s and 20.0 J"},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct buf out;
	buf_init(&out, 4096);
	progress_line(row->figures, row->width, &out);
	assert_string_equal(out.data, row->expected);
	buf_finish(&out);
}

static void every_width(void **state)
{
	for (size_t width = 20; width < 200; width++) {
		struct buf out;
		buf_init(&out, 4096);
		progress_line(&middle, width, &out);
		assert_true(utf8_text_columns(out.data, out.size) <= width);
		buf_finish(&out);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "the line fits into every width from 20 columns", every_width);
	return rows_run(&tests, "progress line");
}
