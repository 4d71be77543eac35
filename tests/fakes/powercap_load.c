#include "powercap_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const load_shape_names[LOAD_SHAPES] = {"constant", "sin", "step", "ramp"};

static bool parse_shape(const char **at, enum load_shape *ret_shape)
{
	for (int i = LOAD_SIN; i < LOAD_SHAPES; i++) {
		size_t length = strlen(load_shape_names[i]);
		if (strncmp(*at, load_shape_names[i], length) != 0)
			continue;
		*ret_shape = (enum load_shape)i;
		*at += length;
		return true;
	}
	return false;
}

static bool parse_number(const char **at, double *ret_value)
{
	char *end;
	*ret_value = strtod(*at, &end);
	bool any = end != *at && isfinite(*ret_value);
	*at = end;
	return any;
}

static bool parse_term(const char **at, struct load_term *ret_term)
{
	*ret_term = (struct load_term){.period_s = 1};
	if (!parse_number(at, &ret_term->watts))
		return false;
	if (**at != '*')
		return true;
	++*at;
	if (!parse_shape(at, &ret_term->shape))
		return false;
	if (**at != '@')
		return true;
	++*at;
	return parse_number(at, &ret_term->period_s) && ret_term->period_s > 0;
}

// The lowest possible sum of the terms.
static double floor_w(const struct load *load)
{
	double w = 0;
	for (size_t i = 0; i < load->n; i++) {
		const struct load_term *term = &load->terms[i];
		w += term->shape == LOAD_CONSTANT ? term->watts
			: term->shape == LOAD_SIN ? -fabs(term->watts)
						  : fmin(0, term->watts);
	}
	return w;
}

bool load_parse(const char *text, struct load *ret_load)
{
	struct load load = {0};
	for (const char *at = text;; at++) {
		if (load.n == LOAD_TERMS_MAX || !parse_term(&at, &load.terms[load.n++]))
			return false;
		if (*at == '\0')
			break;
		if (*at != '+')
			return false;
	}
	if (floor_w(&load) < 0)
		return false;
	*ret_load = load;
	return true;
}

static double term_energy_j(const struct load_term *term, double t_s)
{
	double w = term->watts, period = term->period_s;
	double whole = floor(t_s / period), rest = t_s - whole * period;
	switch (term->shape) {
	case LOAD_SIN:
		return w * period / (2 * M_PI) * (1 - cos(2 * M_PI * t_s / period));
	case LOAD_STEP:
		return w * (whole * period / 2 + fmax(0, rest - period / 2));
	case LOAD_RAMP:
		return w * (whole * period / 2 + rest * rest / (2 * period));
	case LOAD_CONSTANT:
	case LOAD_SHAPES:
		break;
	}
	return w * t_s;
}

double load_energy_j(const struct load *load, double t_s)
{
	double j = 0;
	for (size_t i = 0; i < load->n; i++)
		j += term_energy_j(&load->terms[i], t_s);
	return j;
}
