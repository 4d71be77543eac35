/* Accuracy of the forecast: programs are drawn whose steps behave in known ways; while each "runs", the forecast is
 * made at several moments, from the data of a recorder with ticks of 100 ms, and compared with the program's true
 * continuation. The 95 % interval must contain the true value about that often, and must not be much wider than
 * needed. */
#include "analysis/forecast/forecast.h"
#include "base/rng.h"
#include "base/util.h"

#include "rows.h"

#include <math.h>

enum { RUNS = 100, STEPS = 1000 };
static const double TICK_S = 0.1, POWER_W = 100;

static double uniform(struct rng *rng)
{
	return ((double)(rng_next(rng) >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct rng *rng)
{
	double radius = sqrt(-2 * log(uniform(rng)));
	return radius * cos(2 * M_PI * uniform(rng));
}

/* ---- programs: duration of step i, in typical steps ---- */

struct program {
	struct rng rng;
	double state;
	double pause; // between this step and the next
};

static double constant(struct program *program, int i)
{
	return 1;
}

static double noisy(struct program *program, int i)
{
	return fmax(1 + 0.1 * normal(&program->rng), 0.1);
}

static double skewed(struct program *program, int i)
{
	return exp(0.5 * normal(&program->rng));
}

static double on_a_line(struct program *program, int i)
{
	return 1 + 0.5 * i / STEPS + 0.05 * normal(&program->rng);
}

static double wandering(struct program *program, int i)
{
	program->state += 0.2 / sqrt(STEPS) * normal(&program->rng);
	return exp(program->state) * (1 + 0.05 * normal(&program->rng));
}

static double correlated(struct program *program, int i)
{
	program->state = 0.9 * program->state + 0.1 * sqrt(1 - 0.81) * normal(&program->rng);
	return 1 + program->state;
}

static double warming_up(struct program *program, int i)
{
	return (i < 25 ? 3 : 1) * (1 + 0.05 * normal(&program->rng));
}

static double bursty(struct program *program, int i)
{
	return (uniform(&program->rng) < 0.02 ? 10 : 1) * (1 + 0.05 * normal(&program->rng));
}

static double with_epochs(struct program *program, int i)
{
	program->pause = (i + 1) % 100 == 0 ? 20 + 2 * normal(&program->rng) : 0;
	return 1 + 0.05 * normal(&program->rng);
}

enum { MOMENTS = 4 };
static const double moments[MOMENTS] = {0.05, 0.2, 0.5, 0.9}; // shares of the steps

static const struct kind {
	const char *teaches;
	double (*step)(struct program *program, int i);
	double step_s;
	double min_percent; // fraction of intervals that contain the true value, at each moment
} kinds[] = {
	{"steps of equal duration, unequal energy", constant, 0.25, 88},
	{"steps that scatter by 10 %, each longer than a tick", noisy, 0.25, 90},
	{"steps that scatter by 10 %, many in a tick", noisy, 0.02, 90},
	{"steps that scatter by a factor of 1.6", skewed, 0.25, 90},
	{"each step a little slower than the one before", on_a_line, 0.25, 88},
	{"slowly wandering level, hardly visible in the first fifth", wandering, 0.25, 80},
	{"slow phases of some steps", correlated, 0.25, 90},
	{"the first 25 steps take three times as long", warming_up, 0.25, 90},
	{"one step in 50 takes ten times as long", bursty, 0.25, 87},
	{"validation after each 100 steps, the last ones included", with_epochs, 0.25, 88},
	{"validation after each 100 steps, many steps in a tick", with_epochs, 0.02, 88},
};

struct course { // of one program
	double time_s[STEPS + 1], energy_j[STEPS + 1], end_s, end_j;
};

static void run_program(const struct kind *kind, double step_s, uint64_t seed, struct course *course)
{
	struct program program = {.rng = rng_init(seed, 1)};
	double time_s = 3, energy_j = 200; // the program starts up
	for (int i = 0; i < STEPS; i++) {
		program.pause = 0;
		double took_s = kind->step(&program, i) * step_s;
		time_s += took_s;
		energy_j += took_s * POWER_W * (1 + 0.03 * normal(&program.rng));
		course->time_s[i] = time_s;
		course->energy_j[i] = energy_j;
		time_s += program.pause * step_s;
		energy_j += program.pause * step_s * POWER_W / 2;
	}
	course->end_s = time_s;
	course->end_j = energy_j;
}

struct judged {
	int held;
	double width[RUNS], error[RUNS]; // fractions of the true value; half the interval's width
};

static void judge(struct judged *judged, int run, const struct forecast_figure *figure, double truth)
{
	judged->held += truth >= figure->low * (1 - 1e-9) && truth <= figure->high * (1 + 1e-9);
	judged->width[run] = (figure->high - figure->low) / 2 / truth;
	judged->error[run] = fabs(figure->left - truth) / truth;
}

/* The recorder's data at its ticks. */
static struct forecast look(const struct course *course, double now_s, double *ret_energy_j)
{
	struct forecast_log log = {0};
	int done = 0;
	for (double t_s = TICK_S; t_s <= now_s + 1e-6; t_s += TICK_S) {
		int before = done;
		while (done < STEPS && course->time_s[done] <= t_s)
			done++;
		if (done > before)
			forecast_add(&log,
				(struct forecast_point){done, course->time_s[done - 1], course->energy_j[done - 1]});
	}
	*ret_energy_j = course->energy_j[done - 1] + POWER_W * (now_s - course->time_s[done - 1]);
	return forecast_make(&log, STEPS, (struct forecast_point){done, now_s, *ret_energy_j});
}

static void simulate(const struct kind *kind, double moment, struct judged *times, struct judged *energies)
{
	static struct course course;
	*times = *energies = (struct judged){0};
	for (int run = 0; run < RUNS; run++) {
		run_program(kind, kind->step_s, (uint64_t)run * 1000 + 17, &course);
		double energy_j, now_s = TICK_S * ceil(course.time_s[(int)(STEPS * moment)] / TICK_S + 1e-6);
		struct forecast forecast = look(&course, now_s, &energy_j);
		judge(times, run, &forecast.time_s, course.end_s - now_s);
		judge(energies, run, &forecast.energy_j, course.end_j - energy_j);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double quantile(double *values, double share)
{
	qsort(values, RUNS, sizeof(*values), by_value);
	return values[(int)(share * (RUNS - 1))];
}

// From half time on the interval must also not be much wider than needed.
static void check_judged(const struct kind *kind, double moment, const char *quantity, struct judged *judged)
{
	double held = 100.0 * judged->held / RUNS, width = 100 * quantile(judged->width, 0.5);
	double needed = 100 * quantile(judged->error, 0.95);
	printf("# %2.0f %% done: %s held in %.0f %%, half width %.3g %%, that of 95 %% would be %.3g %%\n",
		100 * moment, quantity, held, width, needed);
	fflush(stdout);
	assert_true(held >= kind->min_percent);
	assert_true(moment < 0.5 || width <= 2 * needed + 1e-6);
}

static void check_kind(void **state)
{
	static struct judged times, energies;
	const struct kind *kind = *state;
	for (int m = 0; m < MOMENTS; m++) {
		simulate(kind, moments[m], &times, &energies);
		check_judged(kind, moments[m], "time", &times);
		check_judged(kind, moments[m], "energy", &energies);
	}
}

/* ---- ends and special cases ---- */

static struct forecast after_steps(int64_t n, double step_s, double step_j, int64_t all, double late_s)
{
	struct forecast_log log = {0};
	for (int64_t i = 1; i <= n; i++)
		forecast_add(&log, (struct forecast_point){i, step_s * (double)i, step_j * (double)i});
	double t = (double)n;
	return forecast_make(&log, all, (struct forecast_point){n, step_s * t + late_s, step_j * t});
}

static void too_few(void **state)
{
	assert_true(isnan(after_steps(0, 1, 1, 10, 0).time_s.left));
	assert_true(isnan(after_steps(3, 1, 1, 10, 0).time_s.left));
	assert_false(isnan(after_steps(4, 1, 1, 10, 0).time_s.left));
}

static void too_many(void **state)
{
	assert_true(isnan(after_steps(10, 1, 1, 10, 0).time_s.left));
	assert_true(isnan(after_steps(20, 1, 1, 10, 0).energy_j.high));
}

static void no_energy(void **state)
{
	struct forecast forecast = after_steps(20, 1, (double)NAN, 100, 0);
	assert_true(isnan(forecast.energy_j.left) && isnan(forecast.energy_j.high));
	assert_true(fabs(forecast.time_s.left - 80) < 1e-6);
}

static void late_energy(void **state)
{
	struct forecast_log log = {0};
	for (int i = 1; i <= 20; i++)
		forecast_add(&log, (struct forecast_point){i, i, i > 3 ? 2.0 * i : (double)NAN});
	struct forecast forecast = forecast_make(&log, 100, (struct forecast_point){20, 20, 40});
	assert_true(fabs(forecast.energy_j.left - 160) < 1e-6 && fabs(forecast.time_s.left - 80) < 1e-6);
}

static void part_of_a_step(void **state)
{
	assert_true(fabs(after_steps(20, 10, 1, 100, 4).time_s.left - 796) < 1e-6);
}

static void hanging(void **state)
{
	struct forecast forecast = after_steps(20, 10, 1, 100, 500);
	assert_true(fabs(forecast.time_s.left - 790) < 1e-6);
	assert_true(forecast.time_s.high > forecast.time_s.left + 400);
}

// 3 epochs of 10 s and 5 s of validation, and 4 s into the fourth validation.
static void part_of_a_pause(void **state)
{
	struct forecast_log log = {0};
	double t_s = 0;
	for (int64_t i = 1; i <= 400; i++) {
		t_s += 0.1;
		forecast_add(&log, (struct forecast_point){i, t_s, t_s});
		t_s += i % 100 == 0 ? 5 : 0;
	}
	struct forecast forecast = forecast_make(&log, 500, (struct forecast_point){400, t_s - 1, t_s - 1});
	assert_int_equal(forecast.pause_every, 100);
	assert_true(fabs(forecast.time_s.left - (1 + 10 + 5)) < 0.2);
}

/* Steady steps and the interval's width: early it allows for a first pause still to come and for a slow beginning,
 * later it does not. */
static void what_is_to_come(void **state)
{
	static const struct {
		int64_t done, all;
		double low_max, high_min, high_max; // of the rest if steps continue
	} rows[] = {
		{5, 1000, 0.5, 1.3, 1.6},
		{50, 1000, 0.9, 1.3, 1.5},
		{200, 1000, 1, 1.1, 1.25},
		{500, 1000, 1, 1, 1.001},
		{50000, 1000000, 1, 1.3, 1.5},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct forecast_figure time_s = after_steps(rows[i].done, 1, 1, rows[i].all, 0).time_s;
		double left = (double)(rows[i].all - rows[i].done);
		assert_true(fabs(time_s.left / left - 1) < 1e-3);
		assert_true(time_s.low >= 0 && time_s.low <= rows[i].low_max * left * 1.001);
		assert_true(time_s.high >= rows[i].high_min * left * 0.999 && time_s.high <= rows[i].high_max * left);
	}
}

static void nothing_takes_any(void **state)
{
	struct forecast forecast = after_steps(20, 0, 0, 100, 0);
	assert_true(forecast.time_s.left < 1e-9 && forecast.energy_j.high >= 0 && forecast.time_s.high < 1e-9);
}

static void millions(void **state)
{
	struct forecast_log log = {0};
	const int64_t at_once = 7919, n = 200000;
	for (int64_t i = 1; i <= n; i++)
		forecast_add(&log, (struct forecast_point){i * at_once, 0.1 * (double)i, 5 * (double)i});
	assert_true(log.n <= FORECAST_POINTS && log.n > FORECAST_POINTS / 4);
	struct forecast_point now = {n * at_once, 0.1 * (double)n, 5 * (double)n};
	struct forecast forecast = forecast_make(&log, 4 * n * at_once, now);
	assert_true(fabs(forecast.time_s.left / (3 * now.time_s) - 1) < 1e-3);
	assert_true(fabs(forecast.energy_j.left / (3 * now.energy_j) - 1) < 1e-3);
}

static void clock_that_stands(void **state)
{
	struct forecast_log log = {0};
	for (int i = 0; i < 50; i++)
		forecast_add(&log, (struct forecast_point){5, i, i});
	assert_int_equal(log.n, 1);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, kinds, check_kind);
	ROWS_ADD_ONE(&tests, "fewer than 4 steps: no forecast", too_few);
	ROWS_ADD_ONE(&tests, "planned number of steps reached or exceeded: no forecast", too_many);
	ROWS_ADD_ONE(&tests, "energy unknown: time is forecast", no_energy);
	ROWS_ADD_ONE(&tests, "energy known later than time: forecast from then on", late_energy);
	ROWS_ADD_ONE(&tests, "elapsed part of the current step: subtracted", part_of_a_step);
	ROWS_ADD_ONE(&tests, "step that hangs: may hang as long again", hanging);
	ROWS_ADD_ONE(&tests, "elapsed part of an expected pause: subtracted", part_of_a_pause);
	ROWS_ADD_ONE(&tests,
		"early: the interval includes possible pauses; at half time: narrow for steady steps",
		what_is_to_come);
	ROWS_ADD_ONE(&tests, "steps without time and energy", nothing_takes_any);
	ROWS_ADD_ONE(&tests, "a billion steps: fixed memory", millions);
	ROWS_ADD_ONE(&tests, "points without a new step: left out", clock_that_stands);
	return rows_run(&tests, "forecast");
}
