/* Findings to text. Pure: nothing is printed, everything goes to a buffer. */
#pragma once

#include "analysis/findings.h"
#include "analysis/job/job.h"
#include "base/buf.h"

void report_json(const struct findings *findings, struct buf *out); // schema wattle-report/1
// Everything a person may want to read, the few first things first. At most 80 columns wide.
void report_text(const struct findings *findings, struct buf *out, bool colour);
// The first things only, and what went wrong: what `wattle run` prints when the command has ended.
void report_summary(const struct findings *findings, struct buf *out, bool colour);
void report_line(const struct findings *findings, struct buf *out); // the energy and the time, in one line

// "1.23 kJ", "512 MB", "1 min 02.3 s" …: three significant digits, units chosen for people; NaN gives "n/a".
void human_energy(struct buf *out, double energy_j);
void human_power(struct buf *out, double power_w);
void human_grams(struct buf *out, double grams);
void human_bytes(struct buf *out, double bytes); // decimal, as gpu_tracker
void human_time(struct buf *out, double seconds);
// Narrower, for tables of many columns: 62.3 s, 12.3 min, 14.2 h.
void human_short_time(struct buf *out, double seconds);
void human_percent(struct buf *out, double percent);
struct human_unit {
	const char *quantity; // "w", "j", "bytes", "g", "s", "mhz", "cores", "percent", "c" or "processes"
	double size;
	const char *name;
};
// The largest unit that the value, rounded to so many digits, has one of; the smallest one there is for what is less.
const struct human_unit *human_unit(const char *quantity, double value, int digits);
// A number with n significant digits and no unit: 0.0123, 1.23, 12.3, 123, 1230.
void human_number(struct buf *out, double value, int digits);
void human_whole(struct buf *out, double value);    // 1230
void human_celsius(struct buf *out, double value);  // 45 °C
void human_megahertz(struct buf *out, double value); // 1410 MHz
// Whole numbers below a limit as they are, others with four digits: 40 tokens, not 40.00.
void human_exact(struct buf *out, double value, double below);
void human_cap(struct buf *out, double value, const char *unit); // "250 W", "250.5 W"; NaN gives "n/a"
void human_error(struct buf *out, double error_j); // "± 1.2 J": an error is not known to more than two digits

/* A job's findings as text and JSON. Pure. */

void job_report_json(const struct job_findings *job, struct buf *out); // wattle-report/1 and `job`, `nodes`, `ranks`, `imbalance`
void job_report_text(const struct job_findings *job, struct buf *out, bool colour); // at most 80 columns
void job_report_line(const struct job_findings *job, struct buf *out); // energy, time, ranks and nodes, in one line

/* Stacks for flame graphs: a line for each, "process;outer;inner weight", weighted by what the innermost block had for itself. */

enum folded_weight {
	FOLDED_ENERGY, // joules of the target; what lies outside of blocks is "[outside]", and all adds up to the target's
	FOLDED_TIME, // seconds, those of threads that ran side by side added up
};

/* Names may hold anything but ";" and control characters, which are written as in C ("\x3b", "\n"), as is "\" itself.
 * `more` is called after each line, so that `out` may be passed on. */
void folded_text(const struct findings *findings, enum folded_weight weight, struct buf *out, void (*more)(void *data),
	void *data);
