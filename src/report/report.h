/* Findings to text. Pure: nothing is printed, everything goes to a buffer. */
#pragma once

#include "analysis/findings.h"
#include "base/buf.h"

void report_json(const struct findings *findings, struct buf *out); // contract.md section 2
void report_text(const struct findings *findings, struct buf *out, bool colour);

// "1.23 kJ", "512 MB", "1 h 02 min" …: four significant characters, units chosen for people; NaN gives "n/a".
void human_energy(struct buf *out, double energy_j);
void human_power(struct buf *out, double power_w);
void human_bytes(struct buf *out, double bytes); // decimal, as gpu_tracker
void human_time(struct buf *out, double seconds);
