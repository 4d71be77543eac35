/* Phrases shared by the text report and the HTML page. */
#pragma once

#include "analysis/findings.h"
#include "analysis/job/job.h"
#include "analysis/metadata_keys.h"
#include "base/buf.h"
#include "base/jsonw.h"

#include <stdbool.h>

void phrase_ending(struct buf *out, const struct run_segment *segment); // "exit 0", "signal 9"; nothing if unknown
void phrase_sources(struct buf *out, const struct findings *f);         // "measured by powercap and nvml"
// "± 2 J" or "± 2 J ?" (human_error_of), with the calibration error of GPUs "± 2 J (reading) ± 12 J (GPU calibration)"; calibration_j NaN or 0: none.
void phrase_energy_error(struct buf *out, double energy_j, double error_j, double calibration_j);
// The same for a part of the energy, whose error is not the reading error alone: "± 2 J ± 12 J (GPU calibration)".
void phrase_part_error(struct buf *out, double energy_j, double error_j, double calibration_j);
// One sentence with the calibration error of each GPU and its source; nothing if no GPU is measured.
void phrase_calibration(struct buf *out, const struct findings *f);
// Readable name of an attribution method: "memory (PSS) above idle power seen in this run" for "pss above …".
void phrase_method(struct buf *out, const char *attribution);
// "Divided by CPU time for package-0, package-1; SM time for gpu-0."; nothing without energy. Requires an empty buffer.
void phrase_attribution(struct buf *out, const struct findings *f);
// Length in bytes of the singular of a unit name: 5 for "tokens" ("token").
size_t phrase_one_of(const char *name);

// Describes a name of invisible characters by its code points: "(U+200B)", "(U+FEFF U+200B U+00AD)"; an empty name is
// "(unnamed)". Returns false and writes nothing if the name is visible. NULL counts as empty.
bool phrase_unseen(struct buf *out, const char *name);

// The block that defines a step (--step); NULL: none was named, or it was never called.
const struct block_finding *step_block(const struct findings *f);
struct gpu_sums { // NaN: unknown, or no GPU
	double energy_j, busy_percent, target_bytes; // busy_percent: mean over the GPUs
};
struct gpu_sums gpu_sums(const struct findings *f);

/* Phrases of a job's report, shared by its formats. */

struct job_sums { // over the ranks of all steps, without ranks that contain other recorders
	size_t n, n_scripts; // ranks; recordings without a rank, such as batch scripts
	double duration_s, waiting_s; // waiting_s: NaN if unknown in all ranks
};
struct job_sums job_sums(const struct job_findings *job);

void job_phrase_title(struct buf *out, const struct job_findings *job); // "Job 4242, solver"
void job_phrase_node(struct buf *out, const struct job_findings *job); // "of ada on atlas, ranks by slurm, from 2026-…"
void job_phrase_ranks(struct buf *out,
	const struct job_findings *job); // "8 ranks on 2 nodes", "6 of 8 ranks on 2 nodes"
void job_phrase_pauses(struct buf *out,
	const struct job_findings *job); // "; 118 s between launches, when …"; nothing without pauses
void job_phrase_clocks(struct buf *out,
	const struct job_findings *job); // "; up to 4.9 s of it may be …"; nothing if the clocks agree
// "MPI_Barrier", "MPI_Barrier and 2 more"
void job_phrase_waiting_blocks(struct buf *out, const struct job_findings *job);
// The cost of the slowest rank, or why it is unknown; nothing for a single rank. Requires an empty buffer.
void job_phrase_slowest(struct buf *out, const struct job_findings *job);

/* Phrases of a single rank's report about its job, and about sensors read by other ranks. */

bool rank_in_job(const struct run *run);
// "3 of 64, on node vn0, step 0", within a line of text. Nothing if all of it is unknown.
void rank_phrase(struct buf *out, const struct run *run);
// One sentence from the recorder's event about another rank that reads a device (energy/slice.h), and where to find that
// energy.
void rank_elsewhere_phrase(struct buf *out, const struct run *run, const struct event *event,
	const struct run_device *device);

// The domains of a run in table order: each domain once, below the one that contains it.

typedef void domain_tree_row(void *data, const struct domain_finding *domain, int depth);
void domain_tree(const struct findings *findings, domain_tree_row *row, void *data);
int domain_depth(const struct findings *findings, const struct domain_finding *domain); // at most 3

/* Warnings about the figures in plain sentences: gaps, losses, estimates. */

typedef void (*warning_writer)(void *data, const char *text);

// Calls `tell` for each warning, most important first. The text is valid during the call.
void report_warnings(const struct findings *findings, warning_writer write, void *data);
// Warnings about the sums over a job's runs, without those about unfinished runs and recorder messages, which job reports
// state separately.
void report_warnings_of_totals(const struct findings *findings, warning_writer write, void *data);

/* Decoding of the stored command line, a JSON array. */

// The strings of a JSON array, each with its NUL. -EINVAL: not such an array.
int command_quoted(const char *json, struct buf *out);
