/* Limits between the candidates, beside the best one. */
#pragma once

#include "cap/tune/estimate.h"
#include "cap/tune/tuner.h"

// Adds limits to be measured, as far as the time that others left reaches. The estimate is of all limits before.
void tune_refine(struct tuner *tuner, const struct estimate *estimate);
