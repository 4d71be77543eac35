/* A search on a simulated device whose limits act late: windows are measured as `wattle cap tune` measures whole
 * runs, tune_steady waits for steady power, and the chosen limit is compared with the device's formulas. No clock:
 * the result is the same on every machine. */
#include "tune_card.h"

#include "base/util.h"
#include "cap/tune/meter.h"

#include "rows.h"

static const struct card card = {"", 700, 200, 80, 780, 0.65, 0.55, 0.35, 1, 0.15, 0, 0.01};
static const double TICK_S = 0.001, STRETCH_S = 0.2, LONGER = 1.25, TOLERANCE = 0.02, MOST_S = 10;
enum { STEPS_A_RUN = 100 };

static const struct row {
	const char *teaches;
	double delay_s, approach_s; // delay before a limit acts, and the time constant from then on
	double min_w;               // no limit lowers the power below this
	double search_max_s;        // longest wait for each window, the run of 1 s included
} rows[] = {
	{"limit acts at once", 0, 0, 0, 1.9},
	{"limit acts after 0.1 s", 0.1, 0, 0, 2.1},
	{"limit acts after 0.3 s", 0.3, 0, 0, 2.3},
	{"limit acts after 0.3 s, gradually", 0.3, 0.1, 0, 2.9},
	{"limit acts after 1 s, when power has long been steady", 1, 0, 0, 3.2},
	{"limit acts after 1 s, gradually", 1, 0.2, 0, 3.8},
	{"limit acts after 2.5 s", 2.5, 0, 0, 5},
	{"no limit lowers the power below 300 W: waits once", 0.1, 0, 300, 2.6},
};

struct device {
	const struct row *row;
	double now_s, set_s;    // set: the newest limit …
	double limit_w, from_w; // … and the one in effect when it was set
};

static double limit_in_effect_w(const struct device *device)
{
	double acts_s = device->now_s - device->set_s - device->row->delay_s;
	if (acts_s < 0)
		return device->from_w;
	double left = device->row->approach_s > 0 ? exp(-acts_s / device->row->approach_s) : 0;
	return device->limit_w + (device->from_w - device->limit_w) * left;
}

static struct truth truth_at(const struct device *device, double limit_w)
{
	return card_at(&card, fmax(limit_w, device->row->min_w));
}

static void set(struct device *device, double limit_w)
{
	device->from_w = limit_in_effect_w(device);
	device->limit_w = limit_w;
	device->set_s = device->now_s;
}

// Works for a time, or until a number of steps is done; returns the energy.
static double work(struct device *device, double seconds, double steps)
{
	double energy_j = 0, until_s = device->now_s + seconds;
	while (steps > 0 && device->now_s < until_s - TICK_S / 2) {
		struct truth truth = truth_at(device, limit_in_effect_w(device));
		double tick_s = fmin(TICK_S, steps * truth.time_s);
		energy_j += truth.energy_j / truth.time_s * tick_s;
		steps -= tick_s / truth.time_s;
		device->now_s += tick_s;
	}
	return energy_j;
}

static void settle(struct device *device, struct tune_steady *steady)
{
	bool is_steady = false;
	tune_steady_begin(steady);
	work(device, steady->delay_s, INFINITY);
	for (double stretch_s = STRETCH_S; !is_steady && device->now_s - device->set_s < MOST_S; stretch_s *= LONGER) {
		double w = work(device, stretch_s, INFINITY) / stretch_s;
		const struct tune_interval_power power = {device->limit_w, w, w, device->now_s - device->set_s};
		is_steady = tune_steady_add(steady, &power, TOLERANCE);
	}
	assert_true(is_steady);
}

static struct tune_window measure(struct device *device, double limit_w, struct tune_steady *steady)
{
	if (limit_w != device->limit_w) {
		set(device, limit_w);
		settle(device, steady);
	}
	double begin_s = device->now_s, energy_j = work(device, INFINITY, STEPS_A_RUN);
	return (struct tune_window){.steps = STEPS_A_RUN,
		.energy_j = energy_j,
		.energy_error_j = 0.002 * energy_j,
		.time_s = device->now_s - begin_s,
		.at_s = (begin_s + device->now_s) / 2};
}

static void finds_the_limit(void **state)
{
	const struct row *row = *state;
	const struct tune_options options = {.goal = TUNE_SLOWDOWN, .slowdown_percent = 10, .seconds = 5, .seed = 1};
	const double limits[] = {700, 630, 560, 490, 420, 350, 280, 210};
	struct device device = {row, 0, -1e9, 700, 700};
	struct tune_steady steady = {0};
	struct tune_result result;
	struct tuner *tuner;
	size_t limit, n = 0;
	double seconds;
	assert_int_equal(tuner_new(&options, limits, ARRAY_SIZE(limits), &tuner), 0);
	for (; tuner_next(tuner, &limit, &seconds); n++) {
		struct tune_window window = measure(&device, limits[limit], &steady);
		struct truth truth = truth_at(&device, limits[limit]);
		window.limit = limit;
		assert_true(fabs(window.time_s / STEPS_A_RUN / truth.time_s - 1) < 0.01);
		tuner_add(tuner, &window);
	}
	assert_true(device.now_s < row->search_max_s * (double)n);
	struct arena *arena = arena_new();
	assert_int_equal(tuner_conclude(tuner, arena, &result), 0);
	double slowdown = 100 * (truth_at(&device, result.chosen).time_s / truth_at(&device, 700).time_s - 1);
	assert_true(fabs(slowdown - 10) < 0.7);
	assert_true(steady.delay_s <= row->delay_s + 3 * row->approach_s + 0.8);
	arena_free(arena);
	tuner_free(tuner);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, finds_the_limit);
	return rows_run(&tests, "tune_steady");
}
