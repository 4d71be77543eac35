/* Stacks for flame graphs: a line for each, "process;outer;inner weight", weighted by what the innermost block had for itself. */
#pragma once

#include "analysis/findings.h"
#include "base/buf.h"

enum folded_weight {
	FOLDED_ENERGY, // joules of the target; what lies outside of blocks is "[outside]", and all adds up to the target's
	FOLDED_TIME, // seconds, those of threads that ran side by side added up
};

/* Names may hold anything but ";" and control characters, which are written as in C ("\x3b", "\n"), as is "\" itself.
 * `more` is called after each line, so that `out` may be passed on. */
void folded_text(const struct findings *findings, enum folded_weight weight, struct buf *out, void (*more)(void *data),
	void *data);
