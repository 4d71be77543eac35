/* How sure the choice and what it promises are. */
#pragma once

#include "cap/tune/figures.h"

/* Draws figures anew as they would come if the smooth curves were the truth and the noise what it was, chooses anew each time,
 * and compares what is promised then with that truth: so the luck of the limit that looks best is in the intervals.
 * Fills low and high of the three. -ENOMEM. */
int bootstrap_choice(const struct figures *figures, const struct choice *choice, uint64_t seed, struct arena *arena,
	struct tune_result *result);
