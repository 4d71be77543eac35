/* Data of the reports of a run and of a job: findings, and further values that their field tables need. The tables are in
 * run_fields.c, energy_fields.c, usage_fields.c, block_fields.c and job_fields.c. */
#pragma once

#include "analysis/job/job.h"
#include "base/arena.h"
#include "base/fields.h"

struct document_label { // from --label or --meta
	const char *name, *value;
};

struct document {
	const struct findings *findings; // of a job: its totals
	const struct job_findings *job;  // NULL: report of one run
	const struct run *run;           // of findings
	const char *const *command;      // n_command words
	size_t n_command;
	int64_t start_wall_ns; // Unix time; VALUE_MISSING: unknown
	const struct document_label *labels;
	size_t n_labels;
	const char *const *warnings;
	size_t n_warnings;
	/* Only for jobs, whose nodes have domains with equal names: domains and GPUs sorted by node, the start of each
	 * node's domains (n_nodes + 1 entries), and the first domain of each name. */
	const size_t *domains, *node_domains, *gpus, *names;
	size_t n_names;
	const struct charts *charts; // only for HTML pages: block colours and the job's time axis; else NULL
	struct arena *arena; // owns the lists
};

// -ENOMEM only. The findings must outlive it.
int document_make(const struct findings *findings, const struct job_findings *job, struct document *ret_document);
void document_finish(struct document *document);

// Data: struct document.
extern const struct object_type report_type, job_report_type, blocks_document_type;
extern const struct object_type run_type, energy_type, cpu_type, memory_type, self_type, resource_usage_type,
	static_data_type;
// Data: a struct of the findings, nested in a document.
extern const struct object_type ledger_type;   // struct ledger
extern const struct object_type domain_type;   // struct domain_finding
extern const struct object_type gpu_type;      // struct gpu_finding
extern const struct object_type block_type;    // struct block_finding
extern const struct object_type stats_type;    // struct value_stats, without the total
extern const struct object_type totals_type;   // struct value_stats
extern const struct object_type node_type;     // struct job_node
extern const struct object_type rank_type;     // struct job_rank
extern const struct object_type spread_type;   // struct spread
extern const struct object_type job_type, imbalance_type; // struct job_findings

// The document that contains an object, and its findings.
const struct document *document_of(const struct object_at *at);
const struct findings *findings_of(const struct object_at *at);
bool is_of_job(const struct object_at *at);
// Getters of fields whose value is in the run file's metadata; the field's argument is its key.
const char *document_metadata(const struct object_at *at, struct buf *scratch);
int64_t document_metadata_number(const struct object_at *at);
