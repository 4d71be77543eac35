/* Power as a known function of time, and its exact integral.
 *
 * A load is a sum of terms, each WATTS, WATTS*SHAPE or WATTS*SHAPE@PERIOD (seconds, default 1), written one after the
 * other with '+': "50", "50+20*sin@2", "30+100*step@0.5". With t in seconds since the origin and P the period:
 *
 *	constant  W                                   integral  W t
 *	sin       W sin(2 pi t / P)                   integral  W P / (2 pi) (1 - cos(2 pi t / P))
 *	step      0 in the first half of each period, integral  W (floor(t / P) P / 2 + max(0, t mod P - P / 2))
 *	          W in the second
 *	ramp      W (t mod P) / P                     integral  W (floor(t / P) P / 2 + (t mod P)^2 / (2 P)) */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum load_shape { LOAD_CONSTANT, LOAD_SIN, LOAD_STEP, LOAD_RAMP, LOAD_SHAPES };
extern const char *const load_shape_names[LOAD_SHAPES];

struct load_term {
	double watts, period_s;
	enum load_shape shape;
};

enum { LOAD_TERMS_MAX = 8 };
struct load {
	struct load_term terms[LOAD_TERMS_MAX];
	size_t n;
};

// False if the text is invalid, or if its power could become negative.
bool load_parse(const char *text, struct load *ret_load);
double load_energy_j(const struct load *load, double t_s); // from the origin to t_s
