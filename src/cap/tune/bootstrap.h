/* How sure the choice and what it promises are. */
#pragma once

#include "cap/tune/figures.h"

/* Draws truths that the windows leave possible: curves of E and of T, as far off the fitted ones as noise and few
 * windows allow. What each has at the chosen limit gives the intervals of saving and slowdown; where each has its
 * own optimum, the range. Fills low and high of the three. -ENOMEM. */
int bootstrap_choice(const struct figures *figures, size_t chosen, uint64_t seed, struct arena *arena,
	struct tune_result *result);
