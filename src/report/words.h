/* Phrases that the text report and the page both have. */
#pragma once

#include "analysis/facts.h"
#include "analysis/findings.h"
#include "analysis/job/job.h"
#include "base/buf.h"
#include "base/jsonw.h"

#include <stdbool.h>

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

/* Phrases of a job's report that the text and others share. */

struct job_sums { // over the ranks of all steps, those around other recorders left out
	size_t n, n_scripts; // ranks; recordings without one, as of a batch script
	double duration_s, waiting_s; // waiting: NaN where no rank knows
};
struct job_sums job_sums(const struct job_findings *job);

void job_words_title(struct buf *out, const struct job_findings *job); // "Job 4242, solver"
void job_words_place(struct buf *out, const struct job_findings *job); // "of ada on atlas, ranks by slurm, from 2026-…"
void job_words_ranks(struct buf *out,
	const struct job_findings *job); // "8 ranks on 2 nodes", "6 of 8 ranks on 2 nodes"
void job_words_pauses(struct buf *out,
	const struct job_findings *job); // "; 118 s between launches, when …"; nothing without
void job_words_clocks(struct buf *out,
	const struct job_findings *job); // "; up to 4.9 s of it may be …"; nothing where clocks agree
// "MPI_Barrier", "MPI_Barrier and 2 more"
void job_words_waiting_blocks(struct buf *out, const struct job_findings *job);
// What the slowest rank cost, or why that can't be told; nothing for a single rank. Into an empty buffer.
void job_words_slowest(struct buf *out, const struct job_findings *job);

/* What the report of one rank says of its job, and of sensors that other ranks of it have read. */

bool rank_in_job(const struct run *run);
// "3 of 64, on node vn0, step 0": for a line of text. Empty where nothing of that is known.
void rank_words(struct buf *out, const struct run *run);
// What the recorder said of another rank that reads a device (analysis/readers.h) as a sentence, and where the energy is to be found.
void rank_elsewhere_words(struct buf *out, const struct run *run, const struct event *event,
	const struct run_device *device);

// A run's domains as a table has them: each under the one that contains it, and each once.

typedef void domain_tree_row(void *data, const struct domain_finding *domain, int depth);
void domain_tree(const struct findings *findings, domain_tree_row *row, void *data);
int domain_depth(const struct findings *findings, const struct domain_finding *domain); // at most 3

/* What a reader of the figures must know, in plain sentences: gaps, losses, estimates. */

typedef void (*tell_warning)(void *data, const char *text);

// Calls tell once for each, the most important first. The text is valid during the call.
void report_warnings(const struct findings *findings, tell_warning tell, void *data);
// The same of the sums over a job's runs, which has words of its own for what is not finished and for what the recorders said.
void report_warnings_of_sums(const struct findings *findings, tell_warning tell, void *data);

/* The stored command line, a JSON array, as words. */

// The strings of a JSON array, each with its NUL. -EINVAL: it is none.
int command_words(const char *json, struct buf *out);
