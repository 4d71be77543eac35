#include "analysis/compare/series.h"

#include "base/util.h"

struct sum {
	double value, rest; // rest: rounding error of value
};

// Knuth's two-sum, without a branch. Analysis is never built with -ffast-math, which would optimise it away.
static void add(struct sum *sum, double x)
{
	double value = sum->value + x;
	double part = value - sum->value;
	sum->rest += (sum->value - (value - part)) + (x - part);
	sum->value = value;
}

struct first_pass {
	size_t n;
	double min, max;
	struct sum sum;
};

static struct first_pass first_pass(const double *values, const struct slice *slices, size_t n_slices)
{
	struct first_pass pass = {.min = (double)INFINITY, .max = -(double)INFINITY};
	for (size_t s = 0; s < n_slices; s++)
		for (size_t i = slices[s].begin; i < slices[s].end; i++) {
			double x = values[i];
			if (isnan(x))
				continue;
			pass.n++;
			pass.min = x < pass.min ? x : pass.min;
			pass.max = x > pass.max ? x : pass.max;
			add(&pass.sum, x);
		}
	return pass;
}

// The mean is rounded too; the sum of the deviations, which would otherwise be 0, corrects for that.
static double deviation(const double *values, const struct slice *slices, size_t n_slices, double mean, size_t n)
{
	struct sum squares = {0}, deviations = {0};
	for (size_t s = 0; s < n_slices; s++)
		for (size_t i = slices[s].begin; i < slices[s].end; i++) {
			double d = values[i] - mean;
			if (isnan(d))
				continue;
			add(&squares, d * d);
			add(&deviations, d);
		}
	double sum = deviations.value + deviations.rest;
	double variance = (squares.value + squares.rest - sum * sum / (double)n) / (double)n;
	return variance > 0 ? sqrt(variance) : 0;
}

struct value_stats series_stats(const double *values, const struct slice *slices, size_t n_slices)
{
	const double none = (double)NAN;
	struct first_pass pass = first_pass(values, slices, n_slices);
	if (pass.n == 0)
		return (struct value_stats){none, none, none, none, none};
	double total = pass.sum.value + pass.sum.rest;
	double mean = total / (double)pass.n;
	return (struct value_stats){
		.min = pass.min,
		.max = pass.max,
		.mean = mean,
		.std = pass.min < pass.max ? deviation(values, slices, n_slices, mean, pass.n) : 0,
		.total = total,
	};
}
