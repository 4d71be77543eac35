/* Converts findings to text. Pure: writes to a buffer. */
#pragma once

#include "analysis/findings.h"
#include "analysis/job/job.h"
#include "base/buf.h"

void report_json(const struct findings *findings, struct buf *out); // schema wattle-report/1
// Text reports of at most 80 columns, most important sections first: all of them, or those of readable length.
void report_text(const struct findings *findings, struct buf *out, bool colour);
void report_text_brief(const struct findings *findings, struct buf *out, bool colour);
struct section_choice { // sections of section/sections.def
	bool all; // else those of report_text_brief
	const char *const *names; // n of them: only these, whole
	size_t n;
};
// job: NULL for a run; else the findings are NULL.
void report_text_sections(const struct findings *findings, const struct job_findings *job,
	const struct section_choice *choice, struct buf *out, bool colour);
// Printed by `wattle run` at the end of the command: at most 19 lines of 80 columns.
void report_summary(const struct findings *findings, struct buf *out, bool colour);
void report_line(const struct findings *findings, struct buf *out); // energy and time on one line

// "1.23 kJ", "512 MB", "1 min 02.3 s" …: three significant digits with a suitable unit; NaN gives "n/a".
void human_energy(struct buf *out, double energy_j);
void human_power(struct buf *out, double power_w);
void human_grams(struct buf *out, double grams);
void human_bytes(struct buf *out, double bytes); // decimal units, as gpu_tracker
void human_time(struct buf *out, double seconds);
// Shorter form for wide tables: 62.3 s, 12.3 min, 14.2 h.
void human_short_time(struct buf *out, double seconds);
void human_percent(struct buf *out, double percent);
struct human_unit {
	const char *quantity; // "w", "j", "bytes", "g", "s", "mhz", "cores", "percent", "c" or "processes"
	double size;
	const char *name;
};
// The largest unit of which the value, rounded to that many digits, is at least one; the smallest unit for smaller values.
const struct human_unit *human_unit(const char *quantity, double value, int digits);
// A number with n significant digits, without a unit: 0.0123, 1.23, 12.3, 123, 1230.
void human_number(struct buf *out, double value, int digits);
void human_whole(struct buf *out, double value);    // 1230
void human_celsius(struct buf *out, double value);  // 45 °C
void human_megahertz(struct buf *out, double value); // 1410 MHz
// Whole numbers below the limit are written exactly, others with four digits: 40 tokens, not 40.00.
void human_exact(struct buf *out, double value, double below);
void human_cap(struct buf *out, double value, const char *unit); // "250 W", "250.5 W"; NaN gives "n/a"
void human_error(struct buf *out, double error_j); // "± 1.2 J": two digits, because errors are not known more precisely
// The same of a value, with unresolved_mark.
void human_error_of(struct buf *out, double value, double error_j);
// " ?" if the error is as large as the value, else "". A report that prints the mark explains it by unresolved_note.
const char *unresolved_mark(double value, double error);
extern const char unresolved_note[];

/* Reports of a job as text and JSON. Pure. */

void job_report_json(const struct job_findings *job, struct buf *out); // wattle-report/1 and `job`, `nodes`, `ranks`, `imbalance`
void job_report_line(const struct job_findings *job, struct buf *out); // energy, time, ranks and nodes on one line

/* Folded stacks for flame graphs: one line per stack, "process;outer;inner weight". The weight excludes inner blocks. */

enum folded_weight {
	FOLDED_ENERGY, // energy of the target, J; "[outside]" is the part outside all blocks, so the sum is the target's energy
	FOLDED_TIME, // s; times of parallel threads are added
};

/* ";", control characters and "\" in names are escaped as in C ("\x3b", "\n"). `more` is called after each line, so that
 * the caller can flush `out`. */
void folded_text(const struct findings *findings, enum folded_weight weight, struct buf *out, void (*more)(void *data),
	void *data);
