/* Coverage of error_j where power varies faster than the counters are updated, or in phase with them. Simulated
 * machines with a package, DRAM and a GPU of known energy, recorded as wattle does: a sample every 100 ms, quick
 * readings of the counters at the start and at the end, and a power reading of the GPU after those. 1,000 runs of
 * each row; the interval must contain 95 % of the true values, for each domain and the total. Width: the median of
 * the stated errors, relative to the 95 % quantile of the actual errors; at most 3. */
#include "machine.h"

#include "analysis/metadata_keys.h"
#include "energy/curve.h"

enum { RUNS = 1000, READINGS_MAX = 4096, PATTERN_MAX = 256 };

/* ---- power as a function of time: a repeating pattern ---- */

struct wave {
	size_t n;
	double t_s[PATTERN_MAX + 1], w[PATTERN_MAX], j[PATTERN_MAX + 1]; // t_s[0] = 0, t_s[n] is the pattern's length
	double phase_s;
	double from_s, to_s, idle_w; // idle before and after
};

static void wave_begin(struct wave *wave)
{
	*wave = (struct wave){.from_s = -INFINITY, .to_s = INFINITY};
}

static void wave_add(struct wave *wave, double w, double lasts_s)
{
	size_t i = wave->n++;
	wave->w[i] = w;
	wave->t_s[i + 1] = wave->t_s[i] + lasts_s;
	wave->j[i + 1] = wave->j[i] + w * lasts_s;
}

// From the pattern's origin.
static double pattern_j(const struct wave *wave, double t_s)
{
	double length_s = wave->t_s[wave->n], rounds = floor(t_s / length_s), rest_s = t_s - rounds * length_s;
	size_t low = 0, high = wave->n;
	while (high - low > 1) {
		size_t middle = (low + high) / 2;
		if (wave->t_s[middle] <= rest_s)
			low = middle;
		else
			high = middle;
	}
	return rounds * wave->j[wave->n] + wave->j[low] + wave->w[low] * (rest_s - wave->t_s[low]);
}

static double wave_j(const struct wave *wave, double t_s)
{
	double inside_s = fmin(fmax(t_s, wave->from_s), wave->to_s);
	return pattern_j(wave, inside_s + wave->phase_s) + wave->idle_w * (t_s - inside_s);
}

static double wave_mean_w(const struct wave *wave, double from_s, double to_s)
{
	return (wave_j(wave, to_s) - wave_j(wave, from_s)) / (to_s - from_s);
}

/* ---- loads ---- */

struct powers { // of a domain, W
	double low, high;
};

static double log_between(uint64_t *random, double low, double high)
{
	return low * pow(high / low, random_uniform(random));
}

static void make_square(struct wave *wave, struct powers p, double period_s, uint64_t *random)
{
	double duty = random_uniform(random) < 0.5 ? 0.5 : random_between(random, 0.25, 0.75);
	wave_add(wave, p.low, period_s * (1 - duty));
	wave_add(wave, p.high, period_s * duty);
}

// Forward, backward, a pause for data and the optimizer; iterations vary; occasionally a longer pause.
static void make_training(struct wave *wave, struct powers p, double period_s, uint64_t *random)
{
	double forward_w = p.low + (p.high - p.low) * random_between(random, 0.5, 0.9);
	double pause = random_between(random, 0.05, 0.4), forward = random_between(random, 0.2, 0.4);
	for (int i = 0; i < 60; i++) {
		double length_s = period_s * random_between(random, 0.9, 1.1);
		wave_add(wave, forward_w, length_s * forward);
		wave_add(wave, p.high, length_s * (1 - forward - pause));
		wave_add(wave, p.low, length_s * pause);
	}
	wave_add(wave, p.low, 3 * period_s);
}

static void make_steady(struct wave *wave, struct powers p, double period_s, uint64_t *random)
{
	double w = random_between(random, p.low, p.high);
	for (int i = 0; i < 100; i++)
		wave_add(wave, w * random_between(random, 0.97, 1.03), 0.013);
}

typedef void make_wave(struct wave *wave, struct powers p, double period_s, uint64_t *random);

/* ---- a machine ---- */

enum reading { NO_POWER, INSTANT, MEAN_100MS, MEAN_1S };
enum part_index { PACKAGE, DRAM, GPU, PARTS, TOTAL = PARTS, GPU_WINDOW, FIGURES };
enum { CPU_WIDE = 1 << PACKAGE | 1 << DRAM, GPU_WIDE = 1 << GPU | 1 << TOTAL | 1 << GPU_WINDOW };

#define ANY_LENGTH                                                                                                     \
	{                                                                                                              \
		0.3, 20                                                                                                \
	}
#define SHORT                                                                                                          \
	{                                                                                                              \
		0.3, 1                                                                                                 \
	}

static const struct row {
	const char *teaches;
	make_wave *make;
	double update_phase[2];  // periods of the load relative to those of the counter, from, to
	double package_s, gpu_s; // periods of the counters
	double length_s[2];      // of the run
	enum reading reading;    // of the GPU's power
	bool program;            // idle before and after
	unsigned int wide;       // 1 << figure: wider than this load needs, because one in phase looks the same
	double max_j;            // 95 % of the GPU's errors are smaller; 0: not checked
} rows[] = {
	{"in phase, GPU 100 ms, power", make_square, {0.7, 1.3}, 0.001, 0.1, ANY_LENGTH, INSTANT},
	{"in phase, GPU 20 ms, power", make_square, {0.7, 1.3}, 0.02, 0.02, ANY_LENGTH, INSTANT},
	{"in phase, GPU 100 ms, 1 s means", make_square, {0.7, 1.3}, 0.02, 0.1, ANY_LENGTH, MEAN_1S},
	{"in phase, GPU 100 ms, no power", make_square, {0.7, 1.3}, 0.02, 0.1, ANY_LENGTH, NO_POWER},
	{"in phase, GPU 100 ms, power; short", make_square, {0.7, 1.3}, 0.02, 0.1, SHORT, INSTANT},
	{"in phase, GPU 100 ms, 100 ms means", make_square, {0.7, 1.3}, 0.02, 0.1, ANY_LENGTH, MEAN_100MS},
	{"square, GPU 100 ms, power", make_square, {0.5, 30}, 0.001, 0.1, ANY_LENGTH, INSTANT, .max_j = 14},
	{"square, GPU 20 ms, power", make_square, {0.5, 30}, 0.02, 0.02, ANY_LENGTH, INSTANT},
	{"square, GPU 100 ms, 100 ms means", make_square, {0.5, 30}, 0.02, 0.1, ANY_LENGTH, MEAN_100MS},
	{"square, GPU 100 ms, 1 s means", make_square, {0.5, 30}, 0.02, 0.1, ANY_LENGTH, MEAN_1S},
	{"square, GPU 100 ms, power; short", make_square, {0.5, 30}, 0.02, 0.1, SHORT, INSTANT},
	{"training, GPU 100 ms, power", make_training, {0.5, 30}, 0.001, 0.1, ANY_LENGTH, INSTANT, .max_j = 11.5},
	{"training, GPU 20 ms, power", make_training, {0.5, 30}, 0.02, 0.02, ANY_LENGTH, INSTANT, .max_j = 2.4},
	{"training, GPU 100 ms, 1 s means", make_training, {0.5, 30}, 0.02, 0.1, ANY_LENGTH, MEAN_1S, .max_j = 12},
	{"training, GPU 100 ms, power; short", make_training, {0.5, 30}, 0.02, 0.1, SHORT, INSTANT, .max_j = 11},
	{"steady, GPU 100 ms, power", make_steady, {1, 1}, 0.001, 0.1, ANY_LENGTH, INSTANT, .wide = GPU_WIDE,
		.max_j = 2.1},
	{"steady, GPU 100 ms, 100 ms means", make_steady, {1, 1}, 0.02, 0.1, ANY_LENGTH, MEAN_100MS,
		.wide = CPU_WIDE | GPU_WIDE},
	{"steady, GPU 100 ms, 1 s means", make_steady, {1, 1}, 0.001, 0.1, ANY_LENGTH, MEAN_1S, .wide = GPU_WIDE},
	{"program, square, GPU 100 ms, power", make_square, {0.5, 30}, 0.02, 0.1, ANY_LENGTH, INSTANT, .program = true},
	{"program, training, GPU 100 ms, 100 ms means", make_training, {0.5, 30}, 0.02, 0.1, ANY_LENGTH, MEAN_100MS,
		.program = true},
};

struct part { // a domain of the machine
	struct wave wave;
	struct counter_model counter;
	enum reading reading;
	struct run_device *device;
};

static const struct powers powers[PARTS] = {{30, 220}, {4, 30}, {70, 650}};
static const enum domain_kind kinds[PARTS] = {DOMAIN_PACKAGE, DOMAIN_DRAM, DOMAIN_GPU};
static const char *const names[PARTS] = {"package-0", "dram-0", "gpu-0"};

struct scene {
	struct part parts[PARTS];
	double end_s;
	size_t n;
	double t_s[READINGS_MAX];
	bool sample[READINGS_MAX], power[READINGS_MAX]; // neither: a quick reading of the counters
	struct run run;
	uint64_t random;
};

static double counter_j(const struct part *part, double t_s)
{
	double j = wave_j(&part->wave, counter_last_update_s(&part->counter, t_s));
	return floor(j / part->counter.quantum_j) * part->counter.quantum_j;
}

/* ---- a recording ---- */

static double late_s(struct scene *s)
{
	return -log(1 - random_uniform(&s->random)) * 0.0002;
}

static void add_reading(struct scene *s, double t_s, bool sample)
{
	s->sample[s->n] = s->power[s->n] = sample;
	s->t_s[s->n++] = t_s;
}

static bool has_slow(const struct part *part)
{
	return part->counter.period_s >= 0.003;
}

// Readings until each slow counter has been updated so many times.
static void look(struct scene *s, double from_s, int updates, double max_periods, double max_s, double end_s)
{
	double t_s = from_s;
	for (;;) {
		double step_s = INFINITY;
		for (size_t i = 0; i < PARTS; i++) {
			const struct counter_model *c = &s->parts[i].counter;
			double until_s = fmin(max_s, max_periods * c->period_s);
			double seen = (counter_last_update_s(c, t_s) - counter_last_update_s(c, from_s)) / c->period_s;
			if (has_slow(&s->parts[i]) && seen < updates - 0.5 && t_s - from_s < until_s)
				step_s = fmin(step_s, fmax(0.001, c->period_s / 20));
		}
		t_s += step_s + late_s(s);
		if (!(t_s < end_s))
			return;
		add_reading(s, t_s, false);
	}
}

static void record(struct scene *s)
{
	s->n = 0;
	add_reading(s, 0, true);
	add_reading(s, 0.001 + late_s(s), true);
	look(s, s->t_s[1], 5, 10, 0.6, s->end_s);
	size_t looked = s->n;
	for (double t_s = 0.1; t_s < s->end_s; t_s += 0.1)
		add_reading(s, t_s + late_s(s), true);
	for (size_t i = looked; i > 0 && i < s->n; i++) // in order of time
		for (size_t k = i; k > 1 && s->t_s[k] < s->t_s[k - 1]; k--) {
			double t_s = s->t_s[k];
			bool sample = s->sample[k];
			s->t_s[k] = s->t_s[k - 1];
			s->sample[k] = s->power[k] = s->sample[k - 1];
			s->t_s[k - 1] = t_s;
			s->sample[k - 1] = s->power[k - 1] = sample;
		}
	add_reading(s, s->end_s + 0.0003 + late_s(s), true);
	look(s, s->t_s[s->n - 1], 1, 1.5, 0.16, INFINITY);
	add_reading(s, s->t_s[s->n - 1] + late_s(s), false);
	s->power[s->n - 1] = true;
}

static double reading_w(const struct part *part, double t_s)
{
	double from_s = t_s - 1e-6, until_s = t_s;
	if (part->reading == MEAN_100MS) { // of the 100 ms before the latest update of the counter
		until_s = counter_last_update_s(&part->counter, t_s);
		from_s = until_s - 0.1;
	} else if (part->reading == MEAN_1S) {
		from_s = t_s - 1;
	}
	return wave_mean_w(&part->wave, from_s, until_s);
}

static void read_part(struct scene *s, struct part *part, size_t i)
{
	struct run_device *device = part->device;
	device->values[DEVICE_ENERGY][i] = llround(counter_j(part, s->t_s[i]) * 1e6);
	if (!s->power[i] || part->reading == NO_POWER)
		return;
	device->values[DEVICE_POWER][i] = llround(reading_w(part, s->t_s[i]) * 1e3);
	if (part->reading != MEAN_1S)
		device->values[DEVICE_POWER_AVERAGE][i] = llround(
			wave_mean_w(&part->wave, s->t_s[i] - 1, s->t_s[i]) * 1e3);
}

static void build(struct scene *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		n += s->sample[i];
	build_run(&s->run, n);
	build_segment(&s->run, 0, s->end_s);
	n = 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->sample[i])
			s->run.t_ns[n++] = at_s(s->t_s[i]);
	build_cpu(&s->run, 1, 0, 0, 1);
	s->run.n = s->n; // the devices have more rows than the run
	for (size_t p = 0; p < PARTS; p++) {
		struct part *part = &s->parts[p];
		part->device = build_device(&s->run, names[p], kinds[p]);
		part->device->t_ns = arena_alloc(s->run.arena, s->n, sizeof(int64_t));
		part->device->resolution_j = part->counter.quantum_j;
		part->device->update_period_s = part->counter.period_s;
		part->device->update_jitter_s = part->counter.jitter_s;
		for (size_t i = 0; i < s->n; i++) {
			part->device->t_ns[i] = at_s(s->t_s[i]);
			read_part(s, part, i);
		}
	}
	s->run.n = n;
}

static void make_scene(struct scene *s, const struct row *row)
{
	s->end_s = log_between(&s->random, row->length_s[0], row->length_s[1]);
	for (size_t p = 0; p < PARTS; p++) {
		struct part *part = &s->parts[p];
		double period_s = p == GPU ? row->gpu_s : row->package_s;
		part->reading = p == GPU ? row->reading : NO_POWER;
		part->counter = (struct counter_model){.period_s = period_s,
			.jitter_s = random_between(&s->random, 0.002, 0.04) * period_s,
			.quantum_j = p == GPU ? 0.001 : 0.000061,
			.phase_s = period_s * random_uniform(&s->random),
			.seed = random_next(&s->random)};
		wave_begin(&part->wave);
		row->make(&part->wave, powers[p],
			period_s * log_between(&s->random, row->update_phase[0], row->update_phase[1]), &s->random);
		part->wave.phase_s = part->wave.t_s[part->wave.n] * random_uniform(&s->random);
		if (row->program) {
			part->wave.from_s = 0.003;
			part->wave.to_s = s->end_s - 0.001;
			part->wave.idle_w = powers[p].low * 0.8;
		}
	}
	record(s);
	build(s);
}

/* ---- totals ---- */

struct coverage {
	size_t n, covered;
	double wrong_j[RUNS], width_j[RUNS];
};

static void note(struct coverage *c, double energy_j, double error_j, double truth_j)
{
	c->wrong_j[c->n] = fabs(energy_j - truth_j);
	c->covered += c->wrong_j[c->n] <= error_j;
	c->width_j[c->n++] = error_j;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double truth_j(const struct part *part, double from_s, double to_s)
{
	return wave_j(&part->wave, to_s) - wave_j(&part->wave, from_s);
}

static void note_window(struct coverage *c, struct scene *s)
{
	const struct part *part = &s->parts[GPU];
	double length_s = random_between(&s->random, 0.05, fmin(1, s->end_s / 2));
	double from_s = random_between(&s->random, 0, s->end_s - length_s), to_s = from_s + length_s;
	struct energy_between between;
	assert_int_equal(energy_between(&s->run, part->device, run_metadata_i64(&s->run, META_KEY_INTERVAL),
				 at_s(from_s), at_s(to_s), &between),
		0);
	note(c, between.j, between.error_j, truth_j(part, from_s, to_s));
}

static void note_run(struct coverage *coverages, struct scene *s)
{
	struct findings findings;
	double sum_j = 0;
	assert_int_equal(findings_make(&s->run, &findings), 0);
	for (size_t p = 0; p < PARTS; p++) {
		const struct domain_finding *domain = finding_of(&findings, names[p]);
		double j = truth_j(&s->parts[p], 0, s->end_s);
		note(&coverages[p], domain->energy_j, domain->error_j, j);
		sum_j += j;
	}
	note(&coverages[TOTAL], findings.total_j, findings.error_j, sum_j);
	findings_finish(&findings);
}

struct verdict {
	double inside, needed_j, width;
};

// Median widths are compared, so that wide intervals of easy runs are visible.
static struct verdict judge(struct coverage *c)
{
	qsort(c->wrong_j, c->n, sizeof(double), by_size);
	qsort(c->width_j, c->n, sizeof(double), by_size);
	double needed_j = c->wrong_j[c->n * 95 / 100];
	return (struct verdict){100 * (double)c->covered / (double)c->n, needed_j, c->width_j[c->n / 2] / needed_j};
}

static void check(void **state)
{
	static const char *const shown[] = {"package", "dram", "gpu", "total", "window of gpu"};
	static const double least = 95, width_max = 3; // coverage in percent; relative to the width needed
	const struct row *row = *state;
	static struct scene scene;
	static struct coverage coverages[FIGURES];
	memset(coverages, 0, sizeof(coverages));
	scene.random = UINT64_C(0x9e3779b97f4a7c15);
	for (int i = 0; i < RUNS; i++) {
		make_scene(&scene, row);
		note_run(coverages, &scene);
		note_window(&coverages[GPU_WINDOW], &scene);
		build_finish(&scene.run);
	}
	for (size_t k = 0; k < FIGURES; k++) {
		struct verdict v = judge(&coverages[k]);
		print_message("# %-42s %-13s inside %5.1f %%, width %.2f of %.3g J\n", row->teaches, shown[k], v.inside,
			v.width, v.needed_j);
		if (k == GPU_WINDOW && row->gpu_s < 0.1) // intervals of several updates: coverage.c
			continue;
		if (v.inside < least || (v.width > width_max && (row->wide >> k & 1) == 0))
			fail_msg("%s: %.1f %% inside, %.2f times as wide as needed", shown[k], v.inside, v.width);
		if (k == GPU && row->max_j > 0 && v.needed_j > row->max_j)
			fail_msg("95 %% of the errors are within %.3g J, not %.3g J", v.needed_j, row->max_j);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "coverage_swing");
}
