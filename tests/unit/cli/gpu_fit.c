#include "cli/sensors.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const struct gpu_supply unknown_supply = {0.91, 0.05}, known_supply = {0.92, 0.02}, on_card = {1, 0};

/* ---- simulated machines with a known true factor ---- */

struct machine {
	double factor, offset_w;                         // true power = factor · (reading - offset)
	double overhead_w, linear, quadratic;            // loss of the power supply
	double idle_w, load_w;                           // true GPU power
	double others_idle_w, others_load_w, others_off; // relative error of the meter
	double fans_w;                                   // further load, seen only by the wall meter
	double drift_w;                                  // difference between phases
	double noise_w;
	bool on_card;
};

static uint64_t state;

static double between(double low, double high)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return low + (high - low) * (double)(state >> 11) / 9007199254740992.0;
}

static void make_phases(const struct machine *m, struct gpu_phase phases[GPU_FIT_PHASES])
{
	for (size_t i = 0; i < GPU_FIT_PHASES; i++) {
		bool loaded = i % 2 == 1;
		double gpu_w = loaded ? m->load_w : m->idle_w, others_w = loaded ? m->others_load_w : m->others_idle_w;
		double fans_w = (loaded ? m->fans_w : 0) + m->drift_w * (double)i;
		double out_w = m->on_card ? gpu_w : gpu_w + others_w + fans_w;
		double in_w = m->on_card ? out_w
					 : m->overhead_w + out_w * (1 + m->linear) + m->quadratic * out_w * out_w;
		phases[i] = (struct gpu_phase){.wall_w = in_w + between(-m->noise_w, m->noise_w),
			.gpu_w = gpu_w / m->factor + m->offset_w + between(-m->noise_w, m->noise_w),
			.others_w = others_w * m->others_off,
			.others_error = 0.1};
	}
}

static struct machine any_machine(void)
{
	double idle_w = between(15, 60);
	return (struct machine){.factor = between(0.95, 1.1),
		.offset_w = between(-3, 3),
		.overhead_w = between(8, 20),
		.linear = between(0.03, 0.08),
		.quadratic = between(0, 0.00003),
		.idle_w = idle_w,
		.load_w = idle_w + between(150, 350),
		.others_idle_w = between(30, 80),
		.others_load_w = between(60, 110),
		.others_off = between(0.95, 1.05),
		.fans_w = between(0, 2),
		.drift_w = between(-1, 1),
		.noise_w = 1.5};
}

static void holds_the_truth(void **unused)
{
	enum { RUNS = 2000 };
	size_t n = 0, held = 0;
	double width = 0;
	state = UINT64_C(0x9e3779b97f4a7c15);
	for (int i = 0; i < RUNS; i++) {
		struct gpu_phase phases[GPU_FIT_PHASES];
		struct gpu_fit fit;
		struct machine m = any_machine();
		make_phases(&m, phases);
		if (gpu_fit_make(phases, &unknown_supply, &fit, NULL) < 0)
			continue;
		n++;
		held += fabs(fit.factor - m.factor) <= fit.error * fit.factor;
		width += fit.error;
		assert_true(fit.error < 0.10);
	}
	print_message("# %zu of %d accepted, %.1f %% hold the truth, mean error %.1f %%\n", n, RUNS,
		100.0 * (double)held / (double)n, 100 * width / (double)n);
	assert_true((double)n > 0.8 * RUNS);
	assert_true((double)held >= 0.95 * (double)n);
}

#define QUIET                                                                                                          \
	{                                                                                                              \
		.factor = 1.06, .idle_w = 30, .load_w = 330, .others_idle_w = 50, .others_load_w = 70,                 \
		.others_off = 1, .linear = 1 / 0.92 - 1                                                                \
	}

static const struct row {
	const char *teaches;
	struct machine machine;
	const struct gpu_supply *supply;
	double min_error, max_error; // error of an accepted result
	const char *refused;         // part of the message; NULL: accepted
} rows[] = {
	{"power supply of known efficiency: its error is the largest part", QUIET, &known_supply, 0.02, 0.035, NULL},
	{"meter in the supply lines of the card: smallest error",
		{.factor = 0.97, .idle_w = 30, .load_w = 330, .on_card = true}, &on_card, 0.01, 0.02, NULL},
	{"load that hardly changes the GPU's power: refused",
		{.factor = 1, .idle_w = 30, .load_w = 50, .others_off = 1}, &known_supply, 0, 0,
		"changes the GPU's power by 20 W; at least 30 W"},
	{"meter of another machine: refused", {.factor = 0.3, .idle_w = 30, .load_w = 330, .on_card = true}, &on_card,
		0, 0, "implausible"},
	{"CPU power changes as much as the GPU's: refused",
		{.factor = 1,
			.idle_w = 30,
			.load_w = 130,
			.others_idle_w = 20,
			.others_load_w = 220,
			.others_off = 1,
			.linear = 0.08},
		&known_supply, 0, 0, "CPU power is not measured accurately enough"},
	{"phases that differ: refused", {.factor = 1, .idle_w = 30, .load_w = 130, .others_off = 1, .noise_w = 40},
		&on_card, 0, 0, "the phases differ"},
};

static void fits(void **data)
{
	const struct row *row = *data;
	struct gpu_phase phases[GPU_FIT_PHASES];
	struct gpu_fit fit;
	struct wattle_error error = {0};
	state = 7;
	make_phases(&row->machine, phases);
	int r = gpu_fit_make(phases, row->supply, &fit, &error);
	if (row->refused != NULL) {
		assert_int_equal(r, -ERANGE);
		if (strstr(error.text, row->refused) == NULL)
			fail_msg("%s", error.text);
		return;
	}
	if (r < 0)
		fail_msg("%s", error.text);
	assert_true(fit.error >= row->min_error && fit.error <= row->max_error);
	assert_true(fabs(fit.factor - row->machine.factor) <= 0.001);
}

static void drift_cancels(void **unused)
{
	struct gpu_phase phases[GPU_FIT_PHASES];
	struct gpu_fit fit;
	struct machine m = QUIET;
	m.drift_w = 5; // 40 W over the whole measurement
	make_phases(&m, phases);
	assert_int_equal(gpu_fit_make(phases, &known_supply, &fit, NULL), 0);
	assert_true(fabs(fit.factor - m.factor) <= 0.001);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, fits);
	ROWS_ADD_ONE(&tests, "2,000 machines with unknown supplies: 95 % of the intervals contain the true factor",
		holds_the_truth);
	ROWS_ADD_ONE(&tests, "slow drift between idle phases cancels out", drift_cancels);
	return rows_run(&tests, "gpu_fit");
}
