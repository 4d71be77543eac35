/* What the report of one rank says of its job, and of sensors that other ranks of it have read. */
#pragma once

#include "analysis/facts.h"
#include "base/buf.h"
#include "base/jsonw.h"

#include <stdbool.h>

bool rank_in_job(const struct run *run);
// "3 of 64, on node vn0, step 0": for a line of text. Empty where nothing of that is known.
void rank_words(struct buf *out, const struct run *run);
// What the recorder said of another rank that reads a device (energy/slice.h) as a sentence, and where the energy is to be found.
void rank_elsewhere_words(struct buf *out, const struct run *run, const struct event *event,
	const struct run_device *device);
