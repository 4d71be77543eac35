/* Phrases of a job's report that the text and others share. */
#pragma once

#include "analysis/job/job.h"
#include "base/buf.h"

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
