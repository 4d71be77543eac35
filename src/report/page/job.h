/* The parts of a job's page. Each writes nothing at all where it has nothing to say. */
#pragma once

#include "analysis/chart/job.h"
#include "report/job_words.h"
#include "report/page/part.h"

struct job_page {
	struct part part; // of the job's total: what its pieces are written with
	const struct job_findings *job;
	const struct job_charts *time;
};

void job_head(const struct job_page *page);    // what ran, the headline figures, what to know of them
void job_balance(const struct job_page *page); // how evenly the ranks worked, what waiting and the slowest one cost
void job_time(const struct job_page *page);    // power of the nodes and blocks of the ranks over time
void job_heat(const struct job_page *page);    // power of each node over time, as a picture of rows
void job_nodes(const struct job_page *page);   // energy by node: where it went, by part of the machine
void job_ranks(const struct job_page *page);
void job_blocks(const struct job_page *page);  // code blocks over all ranks
void job_domains(const struct job_page *page); // energy by domain of each node, and GPUs
void job_about(const struct job_page *page);   // the job's facts, its files

/* ---- pieces ---- */

void job_rank_name(struct buf *out, const struct job_page *page,
	size_t rank); // "rank 3"; of one without a number its file
void job_node_name(struct buf *out, const struct job_page *page, size_t node);
// How many rows of a long table are printed; the page has all.
void job_paper(const struct job_page *page, size_t n_rows, size_t most);

struct job_strip { // a small picture: a line for each rank along a scale from 0, the mean, and one that stands out
	const double *values; // n of them, NaN unknown
	size_t n;
	double mean, highest; // of the scale; NaN or 0: nothing is drawn
	int64_t chosen;       // index; -1 none
};
void job_strip(struct buf *out, const struct job_strip *strip);
