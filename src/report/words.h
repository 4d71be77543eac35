/* Phrases that the text report and the page both have. */
#pragma once

#include "analysis/findings.h"
#include "base/buf.h"

void words_ending(struct buf *out, const struct run_segment *segment); // "exit 0", "signal 9"; nothing where unknown
void words_sources(struct buf *out, const struct findings *f);         // "measured by powercap and nvml"
// "± 2 J", with the calibration of GPUs "± 2 J (reading) ± 12 J (GPU calibration)"; calibration_j NaN or 0: none.
void words_energy_error(struct buf *out, double error_j, double calibration_j);
// The same of a part of it, whose error is not that of the reading alone: "± 2 J ± 12 J (GPU calibration)".
void words_part_error(struct buf *out, double error_j, double calibration_j);
bool words_has_calibration(const struct findings *f); // of any domain
// What the calibration error is of each GPU, and from where, in one sentence; nothing where no GPU is measured.
void words_calibration(struct buf *out, const struct findings *f);
// The method of an attribution as people say it: "memory (PSS) above idle power seen in this run" for "pss above …".
void words_method(struct buf *out, const char *attribution);
// "Divided by CPU time for package-0, package-1; SM time for gpu-0."; nothing without energy. Into an empty buffer.
void words_attribution(struct buf *out, const struct findings *f);
// "tokens" are counted, and one of them is a "token": how many bytes of the name that is.
size_t words_one_of(const char *name);

// A name of which nothing is seen says what it is made of: "(U+200B)", "(U+FEFF U+200B U+00AD)"; one of nothing is "(unnamed)".
// false, and nothing is written: it is seen. NULL is nothing.
bool words_unseen(struct buf *out, const char *name);

// The block that counts as a step, --step; NULL: none was named, or it was never called.
const struct block_finding *step_block(const struct findings *f);
struct gpu_sums { // NaN unknown, as of no GPU
	double energy_j, busy_percent, target_bytes; // busy: their mean
};
struct gpu_sums gpu_sums(const struct findings *f);
