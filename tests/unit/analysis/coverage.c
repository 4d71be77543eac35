/* Does error_j hold what it says? Simulated machines of which the true energy is known, 1,000 runs of each kind. The
 * interval must hold the truth in 95 % of them, and must not be more than three times as wide as it has to be: the width
 * that would just have held 95 % is the 95 % quantile of the errors seen. Each row prints both figures. */
#include "machine.h"

enum { RUNS = 1000, READINGS_MAX = 16384 };

/* ---- a recording ---- */

struct times {
	size_t n;
	double s[READINGS_MAX];
	bool sample[READINGS_MAX]; // else a quick look at the counter
};

static void add_time(struct times *times, double t_s, bool sample)
{
	times->s[times->n] = t_s;
	times->sample[times->n++] = sample;
}

// Quick looks until the counter has moved once more, but not for longer than one and a half periods.
static void add_quick_looks(struct times *times, const struct counter_model *counter, double from_s)
{
	double step_s = fmax(0.001, counter->period_s / 20);
	double until_s = fmin(counter_last_update_s(counter, from_s + 1.2 * counter->period_s) + step_s,
		from_s + 1.5 * counter->period_s);
	for (double t_s = from_s + step_s; t_s < until_s + step_s; t_s += step_s)
		add_time(times, t_s, false);
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

enum recorder { // how the recorder reads
	PLAIN,      // samples only
	LOOKS,      // and quick looks around the start and the end
};

static void make_times(struct times *times, enum recorder recorder, const struct counter_model *counter,
	double interval_s, double end_s)
{
	times->n = 0;
	add_time(times, -0.002, true);
	if (recorder == LOOKS)
		add_quick_looks(times, counter, -0.002);
	double looked_s = times->s[times->n - 1];
	for (double t_s = interval_s; t_s < end_s; t_s += interval_s)
		if (t_s > looked_s)
			add_time(times, t_s, true);
	add_time(times, end_s + 0.0005, true);
	if (recorder == LOOKS)
		add_quick_looks(times, counter, end_s + 0.0005);
}

struct scene {
	struct load load;
	struct counter_model counter;
	struct times times;
	double interval_s, end_s;
	struct run run;
	struct run_device *device;
	uint64_t random;
};

static void build(struct scene *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->times.n; i++)
		n += s->times.sample[i];
	build_run(&s->run, n);
	build_segment(&s->run, 0, s->end_s);
	n = 0;
	for (size_t i = 0; i < s->times.n; i++)
		if (s->times.sample[i])
			s->run.t_ns[n++] = at_s(s->times.s[i]);
	build_cpu(&s->run, 1, 0, 0, 1); // the target alone is busy
	s->run.n = s->times.n; // the device has more rows than the run
	s->device = build_device(&s->run, "package-0", DOMAIN_PACKAGE);
	s->run.n = n;
	s->device->t_ns = arena_alloc(s->run.arena, s->times.n, sizeof(int64_t));
	for (size_t i = 0; i < s->times.n; i++)
		s->device->t_ns[i] = at_s(s->times.s[i]);
}

static void count_energy(struct scene *s)
{
	for (size_t i = 0; i < s->times.n; i++)
		s->device->values[DEVICE_ENERGY][i] = counter_read_uj(&s->counter, &s->load, s->times.s[i]);
}

/* ---- the kinds ---- */

static const struct row {
	const char *teaches;
	double period_s, jitter, quantum_j; // jitter: of the period
	enum load_kind load;
	double interval_s[2], length_s[2]; // from, to
	enum recorder recorder;
	bool period_unknown;
} rows[] = {
	{"RAPL, 1 ms, steps", 0.001, 0.02, 0.000061, LOAD_STEPS, {0.01, 0.2}, {1, 12}, PLAIN, false},
	{"RAPL, 1 ms, steps, quick looks", 0.001, 0.02, 0.000061, LOAD_STEPS, {0.01, 0.2}, {1, 12}, LOOKS, false},
	{"20 ms, steps", 0.02, 0.05, 0.001, LOAD_STEPS, {0.01, 0.2}, {1, 12}, PLAIN, false},
	{"20 ms, steps, quick looks", 0.02, 0.05, 0.001, LOAD_STEPS, {0.01, 0.2}, {1, 12}, LOOKS, false},
	{"20 ms, random, quick looks", 0.02, 0.05, 0.001, LOAD_RANDOM, {0.01, 0.2}, {1, 12}, LOOKS, false},
	{"100 ms, steps", 0.1, 0.05, 0.001, LOAD_STEPS, {0.01, 0.3}, {1, 12}, PLAIN, false},
	{"100 ms, steps, quick looks", 0.1, 0.05, 0.001, LOAD_STEPS, {0.01, 0.3}, {1, 12}, LOOKS, false},
	{"100 ms, square wave", 0.1, 0.05, 0.001, LOAD_SQUARE, {0.01, 0.3}, {1, 12}, PLAIN, false},
	{"100 ms, square wave, quick looks", 0.1, 0.05, 0.001, LOAD_SQUARE, {0.01, 0.3}, {1, 12}, LOOKS, false},
	{"100 ms, random", 0.1, 0.05, 0.001, LOAD_RANDOM, {0.01, 0.3}, {1, 12}, PLAIN, false},
	{"100 ms, random, quick looks", 0.1, 0.05, 0.001, LOAD_RANDOM, {0.01, 0.3}, {1, 12}, LOOKS, false},
	{"100 ms, sampled once a second, quick looks", 0.1, 0.05, 0.001, LOAD_RANDOM, {0.5, 1}, {2, 12}, LOOKS, false},
	{"100 ms, nobody measured the period", 0.1, 0.05, 0.001, LOAD_STEPS, {0.02, 0.1}, {1, 12}, PLAIN, true},
	{"whole joules, ten times a second", 0.1, 0, 1, LOAD_STEPS, {0.05, 0.2}, {1, 12}, LOOKS, false},
};

static void make_scene(struct scene *s, const struct row *row)
{
	load_make(&s->load, row->load, &s->random);
	s->counter = (struct counter_model){.period_s = row->period_s,
		.jitter_s = row->jitter * row->period_s,
		.quantum_j = row->quantum_j,
		.phase_s = row->period_s * random_uniform(&s->random),
		.seed = random_next(&s->random)};
	s->interval_s = random_between(&s->random, row->interval_s[0], row->interval_s[1]);
	s->end_s = random_between(&s->random, row->length_s[0], row->length_s[1]);
	make_times(&s->times, row->recorder, &s->counter, s->interval_s, s->end_s);
	build(s);
	s->device->resolution_j = row->quantum_j;
	if (!row->period_unknown) {
		s->device->update_period_s = row->period_s;
		s->device->update_jitter_s = row->jitter * row->period_s;
	}
	count_energy(s);
}

/* ---- the tally ---- */

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

// Each error against its own run's width would hide wide intervals of easy runs: widths are compared in the middle.
static void judge(struct coverage *c, const char *name)
{
	qsort(c->wrong_j, c->n, sizeof(double), by_time);
	qsort(c->width_j, c->n, sizeof(double), by_time);
	double covered = 100 * (double)c->covered / (double)c->n;
	double needed_j = c->wrong_j[c->n * 95 / 100], width_j = c->width_j[c->n / 2];
	print_message("# %-48s holds the truth in %5.1f %%, %.2f times as wide as needed\n", name, covered,
		width_j / needed_j);
	if (covered < 95 || width_j > 3 * needed_j)
		fail_msg("covered %.1f %%, %.3g J where %.3g J would do", covered, width_j, needed_j);
}

static void check(void **state)
{
	const struct row *row = *state;
	static struct scene scene;
	static struct coverage coverage;
	coverage.n = coverage.covered = 0;
	scene.random = UINT64_C(0x9e3779b97f4a7c15);
	for (int i = 0; i < RUNS; i++) {
		struct findings findings;
		make_scene(&scene, row);
		assert_int_equal(findings_make(&scene.run, &findings), 0);
		note(&coverage, findings.total_j, findings.error_j,
			load_energy_j(&scene.load, scene.end_s) - load_energy_j(&scene.load, 0));
		findings_finish(&findings);
		build_finish(&scene.run);
	}
	judge(&coverage, row->teaches);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "coverage");
}
