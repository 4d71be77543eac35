/* The rules of the search, one by one, and its results for few, unusual and invalid windows. */
#include "tune_card.h"

#include "base/util.h"

#include "rows.h"

#include <errno.h>
#include <string.h>

enum { LIMITS_MAX = 64, FUZZ_ROUNDS = 300 };

static void assert_near(double value, double expected, double tolerance)
{
	assert_true(fabs(value - expected) <= tolerance);
}

static const struct candidates_row {
	const char *teaches;
	double min, max, default_, from_percent;
	size_t n;
	int code;
	size_t n_values;
	double first, second, last;
} candidates_rows[] = {
	{"range 100 % to 30 %: eight steps of a tenth", 50, 300, 300, 30, 8, 0, 8, 300, 270, 90},
	{"below the device's minimum: the minimum, once", 150, 300, 300, 30, 8, 0, 6, 300, 270, 150},
	{"device minimum unknown", NAN, NAN, 200, 50, 3, 0, 3, 200, 150, 100},
	{"maximum below the default: starts there", 100, 250, 300, 30, 8, 0, 7, 250, 240, 100},
	{"two limits", 100, 400, 400, 50, 2, 0, 2, 400, 200, 200},
	{"locked clocks, in MHz", 210, 1980, 1980, 30, 8, 0, 8, 1980, 1782, 594},
	{"no range below the default: refused", 300, 300, 300, 30, 8, -ERANGE, 0, 0, 0, 0},
	{"minimum above the maximum: refused", 400, 300, 350, 30, 8, -ERANGE, 0, 0, 0, 0},
	{"default unknown", 100, 300, NAN, 30, 8, -ERANGE, 0, 0, 0, 0},
	{"only 100 %: nothing to compare", 100, 300, 300, 100, 8, -ERANGE, 0, 0, 0, 0},
	{"from 0 %: refused", 100, 300, 300, 0, 8, -ERANGE, 0, 0, 0, 0},
	{"a single limit: refused", 100, 300, 300, 30, 1, -ERANGE, 0, 0, 0, 0},
};

static void check_candidates(void **state)
{
	const struct candidates_row *row = *state;
	double values[LIMITS_MAX];
	size_t n = 0;
	assert_int_equal(tune_candidates(row->min, row->max, row->default_, row->from_percent, row->n, values, &n),
		row->code);
	if (row->code < 0)
		return;
	assert_int_equal(n, row->n_values);
	assert_near(values[0], row->first, 1e-9);
	assert_near(values[1], row->second, 1e-9);
	assert_near(values[n - 1], row->last, 1e-9);
}

static const struct options_row {
	const char *teaches;
	struct tune_options options;
	double limits[3];
	size_t n;
	int code;
} options_rows[] = {
	{"valid options", {.seconds = 30}, {300, 200, 100}, 3, 0},
	{"no time", {.seconds = 0}, {300, 200, 100}, 3, -EINVAL},
	{"unknown time", {.seconds = NAN}, {300, 200, 100}, 3, -EINVAL},
	{"endless time", {.seconds = INFINITY}, {300, 200, 100}, 3, -EINVAL},
	{"one limit", {.seconds = 30}, {300}, 1, -EINVAL},
	{"no limit", {.seconds = 30}, {0}, 0, -EINVAL},
	{"equal limits", {.seconds = 30}, {300, 300, 100}, 3, -EINVAL},
	{"ascending limits", {.seconds = 30}, {100, 200, 300}, 3, -EINVAL},
	{"limit of 0: refused", {.seconds = 30}, {300, 200, 0}, 3, -EINVAL},
	{"unknown limit: refused", {.seconds = 30}, {300, NAN, 100}, 3, -EINVAL},
	{"slowdown of 0 %: refused", {.goal = TUNE_SLOWDOWN, .seconds = 30}, {300, 200}, 2, 0},
	{"negative slowdown: refused", {.goal = TUNE_SLOWDOWN, .slowdown_percent = -1, .seconds = 30}, {300, 200}, 2,
		-EINVAL},
	{"slowdown unknown", {.goal = TUNE_SLOWDOWN, .slowdown_percent = NAN, .seconds = 30}, {300, 200}, 2, -EINVAL},
};

static void check_options(void **state)
{
	const struct options_row *row = *state;
	struct tuner *tuner = NULL;
	assert_int_equal(tuner_new(&row->options, row->limits, row->n, &tuner), row->code);
	tuner_free(tuner);
}

struct bed {
	struct tuner *tuner;
	double limits[LIMITS_MAX];
	size_t n;
	double clock_s;
	struct rng rng;
	size_t n_windows[2 * LIMITS_MAX]; // by index; the search adds no more limits than there were
	double measured_s[2 * LIMITS_MAX];
};

static void bed_init(struct bed *bed, const struct tune_options *options, size_t n, double top)
{
	*bed = (struct bed){.n = n, .rng = rng_init(options->seed, 5)};
	for (size_t i = 0; i < n; i++)
		bed->limits[i] = top * (1 - 0.7 * (double)i / (double)(n - 1));
	assert_int_equal(tuner_new(options, bed->limits, n, &bed->tuner), 0);
}

// log E first falls and then rises as the limit falls, log T rises; both scale with `unit`.
static struct tune_window a_window(struct bed *bed, size_t limit, double step_s, double seconds, double noise)
{
	double u = log(tuner_limit(bed->tuner, limit) / bed->limits[0]);
	double time_s = step_s * exp(0.5 * u * u + noise * dice_normal(&bed->rng));
	double energy_j = 40 * step_s * exp(0.9 * u + 0.8 * u * u + noise * dice_normal(&bed->rng));
	double steps = fmax(ceil(seconds / time_s), 1);
	struct tune_window window = {.limit = limit,
		.steps = steps,
		.energy_j = steps * energy_j,
		.energy_error_j = NAN,
		.time_s = steps * time_s,
		.at_s = bed->clock_s + steps * time_s / 2};
	bed->clock_s += steps * time_s;
	return window;
}

static void measure(struct bed *bed, double step_s, double noise)
{
	size_t limit;
	double seconds;
	for (size_t i = 0; tuner_next(bed->tuner, &limit, &seconds); i++) {
		assert_true(i < 10000);
		struct tune_window window = a_window(bed, limit, step_s, seconds, noise);
		bed->n_windows[limit]++;
		bed->measured_s[limit] += window.time_s;
		tuner_add(bed->tuner, &window);
	}
}

static void order(void **state)
{
	struct bed bed;
	size_t rounds[2][5], limit;
	double seconds;
	bed_init(&bed, &(struct tune_options){.seconds = 28, .seed = 3}, 4, 400);
	for (size_t r = 0; r < 2; r++) {
		bool seen[4] = {false};
		for (size_t i = r == 0 ? 0 : 1; i < 5; i++) {
			assert_true(tuner_next(bed.tuner, &limit, &seconds));
			assert_true(seconds > 3.99 && seconds < 4.01);
			rounds[r][i] = limit;
			assert_int_equal(limit == 0, i == 0 || i == 4); // the reference before and after
			assert_false(i < 4 && seen[limit]);
			seen[limit] = true;
			// Equal for all limits, so none is dropped; half of the noise is between the rounds.
			struct tune_window window = {.limit = limit,
				.steps = 10,
				.energy_j = i % 2 == r ? 100 : 104,
				.time_s = 4,
				.at_s = bed.clock_s += 4};
			tuner_add(bed.tuner, &window);
		}
	}
	assert_int_equal(rounds[0][0], 0);
	tuner_free(bed.tuner);
}

static void asked_twice(void **state)
{
	struct bed bed;
	size_t a = 7, b = 0;
	double seconds;
	bed_init(&bed, &(struct tune_options){.seconds = 30, .seed = 3}, 8, 400);
	assert_true(tuner_next(bed.tuner, &a, &seconds));
	assert_true(tuner_next(bed.tuner, &b, &seconds));
	assert_int_equal(a, b);
	tuner_free(bed.tuner);
}

static const struct length_row {
	const char *teaches;
	double seconds, step_s;
	size_t windows_of_reference; // noise so large that no limit is dropped
	double max_s;                // of a limit
} length_rows[] = {
	{"seven windows of 4 s", 30, 0.01, 7, 30.5},
	{"long duration: longer windows, not more of them", 600, 0.01, 7, 601},
	{"short duration: four windows", 6, 0.01, 4, 6.1},
	{"very little", 0.3, 0.01, 4, 0.4},
	{"steps longer than windows: windows extended by up to half", 30, 9, 3, 46},
	{"step longer than the duration: one window, and the reference twice", 2, 9, 2, 25},
};

static void check_length(void **state)
{
	const struct length_row *row = *state;
	struct bed bed;
	bed_init(&bed, &(struct tune_options){.seconds = row->seconds, .seed = 3}, 4, 400);
	measure(&bed, row->step_s, 0.2);
	assert_int_equal(bed.n_windows[0], row->windows_of_reference);
	for (size_t i = 0; i < 4; i++)
		assert_true(bed.measured_s[i] <= row->max_s + 9 * row->step_s * (row->step_s > 1));
	tuner_free(bed.tuner);
}

static void worse_are_left_out(void **state)
{
	struct bed bed;
	bed_init(&bed, &(struct tune_options){.goal = TUNE_ED2P, .seconds = 30, .seed = 9}, 8, 400);
	measure(&bed, 0.01, 0.005);
	size_t sum = 0;
	for (size_t i = 0; i < 8; i++)
		sum += bed.n_windows[i];
	assert_true(bed.n_windows[7] == 2); // half as good: decided after two rounds
	assert_true(sum < 49 * 2 / 3);
	assert_near(tuner_progress(bed.tuner), 1, 0);
	assert_near(tuner_seconds_left(bed.tuner), 0, 0);
	tuner_free(bed.tuner);
}

// A corner between two candidates: only a window there finds it. The device accepts multiples of 7 only.
static double sevens(void *data, double limit)
{
	(*(size_t *)data)++;
	return 7 * floor(limit / 7);
}

static void corner_is_found(void **state)
{
	struct arena *arena = arena_new();
	struct bed bed;
	struct tune_result result;
	size_t limit, asked = 0;
	double seconds, least = INFINITY, measured_s = 0;
	bed_init(&bed,
		&(struct tune_options){.goal = TUNE_EDP,
			.seconds = 30,
			.seed = 9,
			.adds_limits = true,
			.taken = sevens,
			.data = &asked},
		8, 400);
	while (tuner_next(bed.tuner, &limit, &seconds)) {
		double limit_w = tuner_limit(bed.tuner, limit), u = fabs(log(limit_w / 224));
		double noise = 1 + 0.01 * dice_normal(&bed.rng);
		assert_true(limit < 8 || fmod(limit_w, 7) == 0);
		assert_true(limit < 8 ? limit_w == bed.limits[limit] : limit_w > 160 && limit_w < 280);
		measured_s += seconds;
		least = fmin(least, u);
		tuner_add(bed.tuner,
			&(struct tune_window){.limit = limit,
				.steps = 10,
				.energy_j = 100 * exp(u) * noise,
				.time_s = seconds,
				.at_s = measured_s});
	}
	assert_true(asked > 0 && least < 0.06); // the neighbouring candidates are 240 and 200
	assert_true(measured_s <= 8 * 30.1);    // in no more time than the candidates might have taken
	assert_true(isnan(tuner_limit(bed.tuner, 99)));
	assert_int_equal(tuner_conclude(bed.tuner, arena, &result), 0);
	assert_true(result.chosen > 210 && result.chosen < 240);
	for (size_t i = 1; i < result.n_limits; i++)
		assert_true(result.limits[i].limit < result.limits[i - 1].limit && result.limits[i].n_windows > 0);
	arena_free(arena);
	tuner_free(bed.tuner);
}

static void progress_rises(void **state)
{
	struct bed bed;
	size_t limit;
	double seconds, before = 0;
	bed_init(&bed, &(struct tune_options){.seconds = 30, .seed = 9}, 8, 400);
	double left = tuner_seconds_left(bed.tuner);
	assert_true(left <= 8 * 30.1 && left > 100);
	while (tuner_next(bed.tuner, &limit, &seconds)) {
		struct tune_window window = a_window(&bed, limit, 0.01, seconds, 0.02);
		tuner_add(bed.tuner, &window);
		double now = tuner_progress(bed.tuner);
		assert_true(now >= before && now > 0 && now <= 1);
		before = now;
	}
	assert_near(before, 1, 0);
	tuner_free(bed.tuner);
}

static void whole_runs(void **state)
{
	for (size_t r = 0; r < 2; r++) {
		struct bed bed;
		bed_init(&bed, &(struct tune_options){.seconds = r == 0 ? 30 : 100, .seed = 4, .whole_runs = true}, 3,
			400);
		assert_true(isnan(tuner_seconds_left(bed.tuner)));
		measure(&bed, 40, 0.3);
		assert_int_equal(bed.n_windows[0],
			r == 0 ? 2 : 3); // a run longer than `seconds`: once, then the reference again
		assert_true(bed.n_windows[1] >= 1 && bed.n_windows[2] >= 1);
		tuner_free(bed.tuner);
	}
}

static void lost_windows_end(void **state)
{
	struct bed bed;
	size_t limit, n = 0;
	double seconds;
	bed_init(&bed, &(struct tune_options){.seconds = 30, .seed = 4}, 8, 400);
	for (; tuner_next(bed.tuner, &limit, &seconds); n++)
		tuner_add(bed.tuner, &(struct tune_window){.limit = limit, .time_s = n % 2 ? NAN : 4});
	assert_true(n > 8 && n <= 49);
	struct arena *arena = arena_new();
	struct tune_result result;
	assert_int_equal(tuner_conclude(bed.tuner, arena, &result), -ENODATA);
	arena_free(arena);
	tuner_free(bed.tuner);
}

static const struct data_row {
	const char *teaches;
	size_t limits[6]; // of the windows that exist
	size_t n;
	int code;
} data_rows[] = {
	{"no windows", {0}, 0, -ENODATA},
	{"windows of the reference only", {0, 0, 0}, 3, -ENODATA},
	{"windows of all limits but the reference", {1, 2, 3}, 3, -ENODATA},
	{"one window each of two limits", {0, 1}, 2, 0},
	{"one window each of some limits", {0, 1, 3, 5}, 4, 0},
	{"one round of two limits", {0, 1, 0}, 3, 0},
};

static void check_data(void **state)
{
	const struct data_row *row = *state;
	struct arena *arena = arena_new();
	struct bed bed;
	struct tune_result result;
	bed_init(&bed, &(struct tune_options){.seconds = 30, .seed = 4}, 8, 400);
	for (size_t i = 0; i < row->n; i++) {
		struct tune_window window = a_window(&bed, row->limits[i], 0.01, 4, 0.02);
		tuner_add(bed.tuner, &window);
	}
	assert_int_equal(tuner_conclude(bed.tuner, arena, &result), row->code);
	if (row->code == 0) {
		assert_true(result.chosen <= 400 && result.chosen >= 120);
		assert_int_equal(isnan(result.limits[0].objective.low), row->n != 3); // no limit twice: noise unknown
		assert_true(isnan(result.limits[7].objective.value) && result.limits[7].n_windows == 0);
	}
	arena_free(arena);
	tuner_free(bed.tuner);
}

static const struct scale_row {
	const char *teaches;
	double step_s, top;
} scale_rows[] = {
	{"steps of a microsecond", 1e-6, 400},
	{"steps of an hour", 3600, 400},
	{"steps of nearly zero length", 1e-100, 400},
	{"steps of very great length", 1e100, 400},
	{"MHz", 0.1, 2100},
	{"limits of a few watts", 0.1, 6},
	{"limits below a watt", 0.1, 0.7},
	{"limits far out of range", 0.1, 1e30},
};

// The unit of the data does not matter: the same fraction of the reference is chosen, up to whole limits.
static void check_scale(void **state)
{
	const struct scale_row *row = *state;
	double chosen[2];
	for (size_t i = 0; i < 2; i++) {
		struct arena *arena = arena_new();
		struct bed bed;
		struct tune_result result;
		double step_s = i == 0 ? 0.1 : row->step_s, top = i == 0 ? 400 : row->top;
		bed_init(&bed, &(struct tune_options){.goal = TUNE_EDP, .seconds = 30, .seed = 7}, 8, top);
		for (size_t w = 0; w < 25; w++) {
			struct tune_window window = a_window(&bed, w % 8, step_s, step_s * 100, 0.01);
			tuner_add(bed.tuner, &window);
		}
		assert_int_equal(tuner_conclude(bed.tuner, arena, &result), 0);
		assert_true(result.chosen <= bed.limits[0] && result.chosen >= bed.limits[7]);
		chosen[i] = result.chosen / top;
		arena_free(arena);
		tuner_free(bed.tuner);
	}
	assert_true(fabs(chosen[0] - chosen[1]) <= fmax(0.011, row->top < 10 ? 0.5 / row->top : 0));
}

static void conclude_of(const struct tune_options *options, size_t n, double noise, struct arena *arena,
	struct tune_result *result)
{
	struct bed bed;
	bed_init(&bed, options, n, 400);
	measure(&bed, 0.01, noise);
	assert_int_equal(tuner_conclude(bed.tuner, arena, result), 0);
	tuner_free(bed.tuner);
}

static void same_answer(void **state)
{
	struct arena *arena = arena_new();
	struct tune_result a, b;
	conclude_of(&(struct tune_options){.seconds = 30, .seed = 11}, 8, 0.02, arena, &a);
	conclude_of(&(struct tune_options){.seconds = 30, .seed = 11}, 8, 0.02, arena, &b);
	assert_memory_equal(&a.saving_percent, &b.saving_percent, sizeof(a.saving_percent));
	assert_memory_equal(&a.chosen_range, &b.chosen_range, sizeof(a.chosen_range));
	assert_memory_equal(a.curve_y, b.curve_y, a.n_curve * sizeof(double));
	arena_free(arena);
}

static void without_noise(void **state)
{
	struct arena *arena = arena_new();
	struct tune_result result;
	conclude_of(&(struct tune_options){.goal = TUNE_ENERGY, .seconds = 30, .seed = 2}, 8, 0, arena, &result);
	assert_true(fabs(result.chosen - 400 * exp(-0.9 / 1.6)) < 15); // the true optimum
	assert_true(result.noise_percent < 0.01);
	assert_true(result.saving_percent.value > 20 && result.saving_percent.value < 25);
	arena_free(arena);
}

static void sixty_four(void **state)
{
	struct arena *arena = arena_new();
	struct tune_result result;
	conclude_of(&(struct tune_options){.goal = TUNE_ENERGY, .seconds = 30, .seed = 2}, LIMITS_MAX, 0.02, arena,
		&result);
	assert_true(fabs(log(result.chosen / 400) + 0.9 / 1.6) < 0.19); // within 3 % of the least energy
	arena_free(arena);
}

// Energy rises by 60 % during the measurement for every limit alike: without correction the last limits would look bad.
static void drift_is_taken_off(void **state)
{
	struct arena *arena = arena_new();
	struct bed bed;
	struct tune_result result;
	size_t limit;
	double seconds;
	bed_init(&bed, &(struct tune_options){.goal = TUNE_ENERGY, .seconds = 30, .seed = 2}, 8, 400);
	while (tuner_next(bed.tuner, &limit, &seconds)) {
		struct tune_window window = a_window(&bed, limit, 0.01, seconds, 0.001);
		window.energy_j *= exp(0.004 * window.at_s);
		tuner_add(bed.tuner, &window);
	}
	assert_int_equal(tuner_conclude(bed.tuner, arena, &result), 0);
	assert_true(fabs(result.drift_percent - 100 * expm1(0.004 * (bed.clock_s - 4))) < 3);
	for (size_t i = 1; i < result.n_limits; i++) {
		double u = log(result.limits[i].limit / 400), ratio = exp(0.9 * u + 0.8 * u * u);
		double found = result.limits[i].energy_per_step_j.value / result.limits[0].energy_per_step_j.value;
		assert_true(fabs(found / ratio - 1) < 0.01);
	}
	arena_free(arena);
	tuner_free(bed.tuner);
}

static void nothing_differs(void **state)
{
	struct arena *arena = arena_new();
	struct bed bed;
	struct tune_result result;
	bed_init(&bed, &(struct tune_options){.seconds = 30, .seed = 2}, 8, 400);
	for (size_t w = 0; w < 49; w++) {
		double noise = 0.001 * dice_normal(&bed.rng);
		tuner_add(bed.tuner,
			&(struct tune_window){.limit = w % 8,
				.steps = 10,
				.energy_j = 100 * exp(noise),
				.time_s = 4,
				.at_s = (double)w});
	}
	assert_int_equal(tuner_conclude(bed.tuner, arena, &result), 0);
	assert_near(result.chosen, 400, 0);
	assert_near(result.saving_percent.value, 0, 0);
	assert_true(strstr(result.note, "the reference is kept") != NULL);
	arena_free(arena);
	tuner_free(bed.tuner);
}

static void bound_of_nothing(void **state)
{
	struct arena *arena = arena_new();
	struct tune_result result;
	conclude_of(&(struct tune_options){.goal = TUNE_SLOWDOWN, .slowdown_percent = 0, .seconds = 30, .seed = 2}, 8,
		0.002, arena, &result);
	assert_true(result.limits[0].is_allowed && !result.limits[7].is_allowed);
	assert_true(result.chosen > 350); // 400 itself, or equally good within the noise
	arena_free(arena);
}

static double nonsense(struct rng *rng)
{
	static const double strange[] = {0, -1, NAN, INFINITY, -INFINITY, 1e-320, 1e308, 1e-300, 1, 2, 100};
	uint32_t which = rng_below(rng, 2 * ARRAY_SIZE(strange));
	return which < ARRAY_SIZE(strange) ? strange[which] : exp(20 * dice_normal(rng));
}

// Any input: no crash, the search ends, with a limit in range or an error code.
static void fuzz(void **state)
{
	for (uint64_t seed = 0; seed < FUZZ_ROUNDS; seed++) {
		struct rng rng = rng_init(seed, 9);
		size_t n = 2 + rng_below(&rng, rng_below(&rng, 8) == 0 ? 60 : 6), limit;
		struct tune_options options = {.goal = rng_below(&rng, 4),
			.slowdown_percent = rng_below(&rng, 20),
			.seconds = fmin(exp(3 * dice_normal(&rng)), 1e6),
			.seed = seed,
			.whole_runs = rng_below(&rng, 4) == 0,
			.adds_limits = rng_below(&rng, 2) == 0};
		struct bed bed;
		struct tune_result result;
		struct arena *arena = arena_new();
		double seconds;
		bed_init(&bed, &options, n, exp(2 + 2 * fabs(dice_normal(&rng))));
		for (size_t i = 0; tuner_next(bed.tuner, &limit, &seconds); i++) {
			assert_true(i <= 14 * n + 7 && limit < 2 * n && seconds >= 0);
			bool sane = rng_below(&rng, 3) > 0;
			struct tune_window window = {.limit = limit,
				.steps = sane ? 5 : nonsense(&rng),
				.energy_j = sane ? exp(dice_normal(&rng)) : nonsense(&rng),
				.energy_error_j = nonsense(&rng),
				.time_s = sane ? exp(dice_normal(&rng)) : nonsense(&rng),
				.at_s = nonsense(&rng)};
			if (rng_below(&rng, 10) == 0) {
				struct tune_window other = window;
				other.limit = rng_below(&rng, 2 * (uint32_t)n);
				tuner_add(bed.tuner, &other);
			}
			tuner_add(bed.tuner, &window);
			double left = tuner_seconds_left(bed.tuner), progress = tuner_progress(bed.tuner);
			assert_false(left < 0);
			assert_true(progress >= 0 && progress <= 1);
		}
		int r = tuner_conclude(bed.tuner, arena, &result);
		assert_true(r == 0 || r == -ENODATA);
		if (r == 0)
			assert_true(result.chosen <= bed.limits[0] && result.chosen >= bed.limits[n - 1]);
		arena_free(arena);
		tuner_free(bed.tuner);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, candidates_rows, check_candidates);
	ROWS_ADD(&tests, options_rows, check_options);
	ROWS_ADD_ONE(&tests, "rounds: the reference, each limit once, the reference", order);
	ROWS_ADD_ONE(&tests, "next window requested twice without a result: the same window", asked_twice);
	ROWS_ADD(&tests, length_rows, check_length);
	ROWS_ADD_ONE(&tests, "clearly worse limits are dropped", worse_are_left_out);
	ROWS_ADD_ONE(&tests, "corner between two candidates: found, at limits that the device accepts",
		corner_is_found);
	ROWS_ADD_ONE(&tests, "progress rises from 0 to 1", progress_rises);
	ROWS_ADD_ONE(&tests, "whole runs: one for each limit, more only where they fit", whole_runs);
	ROWS_ADD_ONE(&tests, "windows that could not be measured: the search still ends", lost_windows_end);
	ROWS_ADD(&tests, data_rows, check_data);
	ROWS_ADD(&tests, scale_rows, check_scale);
	ROWS_ADD_ONE(&tests, "same windows: bit-identical result", same_answer);
	ROWS_ADD_ONE(&tests, "without noise: the exact optimum is found", without_noise);
	ROWS_ADD_ONE(&tests, "64 limits", sixty_four);
	ROWS_ADD_ONE(&tests, "drift is removed", drift_is_taken_off);
	ROWS_ADD_ONE(&tests, "no difference between limits: the reference is kept, and a note reports it",
		nothing_differs);
	ROWS_ADD_ONE(&tests, "no slowdown allowed: a limit next to the reference", bound_of_nothing);
	ROWS_ADD_ONE(&tests, "senseless windows", fuzz);
	return rows_run(&tests, "the tuner");
}
