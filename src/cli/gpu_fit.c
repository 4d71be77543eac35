#include "cli/sensors.h"

#include "base/util.h"
#include "sensor/gpu_gain.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

static const double student_95 = 3.182; // three degrees of freedom
static_assert(GPU_FIT_CYCLES == 4, "student_95 has the degrees of freedom of four cycles");
static const double delta_min_w = 30; // below it, other parts of the machine weigh too much
static const double meter_error = 0.01, offset_w = 3;

struct rise { // increase of a loaded phase over the idle phases around it
	double wall_w, gpu_w, others_w;
};

static struct rise rise_of(const struct gpu_phase *loaded)
{
	const struct gpu_phase *a = loaded - 1, *b = loaded + 1;
	return (struct rise){.wall_w = loaded->wall_w - (a->wall_w + b->wall_w) / 2,
		.gpu_w = loaded->gpu_w - (a->gpu_w + b->gpu_w) / 2,
		.others_w = loaded->others_w - (a->others_w + b->others_w) / 2};
}

static bool is_on_card(const struct gpu_supply *supply)
{
	return supply->error == 0;
}

static double factor_of(const struct rise *rise, const struct gpu_supply *supply)
{
	double others_w = is_on_card(supply) ? 0 : rise->others_w;
	return (supply->efficiency * rise->wall_w - others_w) / rise->gpu_w;
}

static double deviation(const double *values, size_t n, double mean)
{
	double squares = 0;
	for (size_t i = 0; i < n; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return sqrt(squares / (double)(n - 1));
}

static int check_fit(const struct gpu_fit *fit, struct wattle_error *reterr)
{
	const struct {
		double part;
		const char *text;
	} parts[] = {{fit->scatter,
			     "the phases differ, because of other load or a meter that lags; try a longer --seconds"},
		{fit->efficiency, "give --supply-efficiency, or measure behind the power supply"},
		{fit->others,
			"CPU power is not measured accurately enough; `wattle sensors` shows how to enable a "
			"CPU sensor"},
		{fit->offset, "use a command that loads the GPU more"}, {fit->meter, "use a better meter"}};
	size_t worst = 0;
	for (size_t i = 1; i < ARRAY_SIZE(parts); i++)
		worst = parts[i].part > parts[worst].part ? i : worst;
	if (!(fit->factor >= GPU_GAIN_MIN && fit->factor <= GPU_GAIN_MAX))
		return error_set(reterr, -ERANGE,
			"a factor of %lld %% is implausible: check that the meter measures this machine",
			llround(100 * fit->factor));
	if (!(fit->error < GPU_GAIN_ASSUMED_ERROR))
		return error_set(reterr, -ERANGE,
			"the error would be %lld %%, no better than uncalibrated; the largest part is %lld %%: %s",
			llround(100 * fit->error), llround(100 * parts[worst].part), parts[worst].text);
	return 0;
}

int gpu_fit_make(const struct gpu_phase phases[GPU_FIT_PHASES], const struct gpu_supply *supply,
	struct gpu_fit *ret_fit, struct wattle_error *reterr)
{
	double factors[GPU_FIT_CYCLES];
	struct rise sum = {0};
	struct gpu_fit fit = {0};
	double others_error_w = 0;
	for (size_t i = 0; i < GPU_FIT_CYCLES; i++) {
		struct rise rise = rise_of(&phases[2 * i + 1]);
		if (!(rise.gpu_w >= delta_min_w))
			return error_set(reterr, -ERANGE,
				"the command changes the GPU's power by %lld W; at least %lld W are needed",
				llround(rise.gpu_w), llround(delta_min_w));
		factors[i] = factor_of(&rise, supply);
		fit.factor += factors[i] / GPU_FIT_CYCLES;
		sum = (struct rise){sum.wall_w + rise.wall_w, sum.gpu_w + rise.gpu_w, sum.others_w + rise.others_w};
		others_error_w += phases[2 * i + 1].others_error * fabs(rise.others_w);
	}
	double whole_w = fit.factor * sum.gpu_w;
	fit.delta_w = sum.gpu_w / GPU_FIT_CYCLES;
	fit.scatter = student_95 * deviation(factors, GPU_FIT_CYCLES, fit.factor) / sqrt(GPU_FIT_CYCLES) / fit.factor;
	fit.efficiency = supply->error * sum.wall_w / whole_w;
	fit.others = is_on_card(supply) ? 0 : others_error_w / whole_w;
	fit.meter = meter_error * supply->efficiency * sum.wall_w / whole_w;
	fit.offset = offset_w / fit.delta_w;
	const double parts[] = {fit.scatter, fit.efficiency, fit.others, fit.meter, fit.offset};
	double squares = 0;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		squares += parts[i] * parts[i];
	fit.error = fmax(sqrt(squares), GPU_GAIN_ERROR_MIN);
	*ret_fit = fit;
	return check_fit(&fit, reterr);
}
