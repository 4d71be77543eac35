/* Figures of a job by node, rank and block, from its runs, one per rank. Pure, as findings.h.
 *
 * A machine's energy counts once. The fact `machine` (boot and sensor tree) identifies the runs of one machine, not the
 * host name. Each domain of a machine has one energy curve, joined from the readings of its ranks one after the other;
 * where two ranks read at the same time, one of them counts. Between two ranks' readings (one died, another took over)
 * the counter's raw value (energy_raw_uj) gives the energy. Each rank is then attributed its share of that curve by the
 * same code as a single run. */
#pragma once

#include "analysis/findings.h"
#include "store/job_runs.h"

struct job_work;

struct spread {                            // statistics over ranks
	double min, mean, max, std, total; // std: of the population; NaN unknown
	int64_t count;                     // number of ranks with a known value
	int64_t max_at;                    // index of the rank with the largest value; -1 none
	double imbalance_percent; // (max - mean) / max: saving if all ranks took the mean; NaN unknown
};

struct rank_domain {
	const char *name;
	double target_j; // energy attributed to the rank, over all of its recordings; NaN unknown
};

struct job_rank {
	const struct job_run *run;         // latest recording
	const struct findings *findings;   // findings of that recording, with its machine's sensors and its own GPUs;
					   // without times
	const char *step;                  // Slurm step; NULL none
	int64_t rank, local_rank, restart; // VALUE_MISSING unknown
	size_t node;                       // index
	int64_t runs;                      // number of recordings of this rank: 1 plus the number of restarts
	double duration_s;                 // over all recordings
	bool complete;                     // false: the latest recording is still running, or its recorder died
	int64_t cut_off;                   // number of earlier recordings whose recorder died
	int64_t exit_code;                 // VALUE_MISSING unknown
	double start_s, end_s;             // seconds since the job's start, by the hosts' wall clocks
	double cpu_s;
	double energy_j, error_j;    // attributed to this rank, over all domains of its node
	struct rank_domain *domains; // n_domains
	size_t n_domains;
	double waiting_s, waiting_j; // in waiting blocks (job_options.waiting); NaN without any
	double waiting_w;            // mean power in waiting blocks; NaN unknown
	double end_wait_s;           // from its end to the end of the last rank
	double work_s;               // duration_s minus waiting_s
	bool ended_early;            // the rank failed or was cut off while other ranks continued; not compared with
				     // them
	/* Another recorder of this job measured its processes too (`wattle run mpirun … wattle run …`): the energy
	 * counts there, and this row is excluded from sums and spreads. */
	bool nested;
};

struct job_node {
	const char *name, *host, *machine;
	int64_t same_machine_as; // index of the node whose row has this machine's energy; -1: this row
	const struct findings
		*findings; // of this machine: all its ranks as one target, with times for its curves; NULL if
			   // same_machine_as is set
	size_t n_ranks;
	double energy_j, error_j, mean_w; // the machine's, while any of its ranks ran
	enum provenance provenance;
	struct ledger ledger;                 // target_j: sum over the ranks of this machine
	const struct domain_finding *domains; // n_domains, in `findings`; each is named after its device
	size_t n_domains;
	double from_s, to_s;    // measured interval, seconds since the job's start
	double paused_s;        // part of that interval in which no rank of the machine ran; excluded from all sums
	double unmeasured_s;    // part of the rest in which no rank read the sensors; its energy is unknown
	const char *unmeasured; // the domain that was unread for so long; NULL: most domains
	double cpu_s;           // sum over its ranks
};

struct job_block {
	const char *name;
	int64_t calls;
	struct value_stats compute_time_s; // over all calls of all ranks
	struct spread time_s, energy_j;    // spread of the ranks' totals
	const double *rank_time_s;         // total of each rank; NaN: no call
	double total_j, error_j;           // NaN if unknown for any rank that called the block
	bool waits;                        // whether it is a waiting block (job_options.waiting)
};

struct slowest {            // the rank that worked longest, and its cost to the others
	int64_t rank;       // index; -1: unknown (one rank, or no comparable ranks)
	double over_mean_s; // work_s of this rank minus the mean
	double over_percent;
	double waited_s; // waiting time of the other ranks: sum of (its work_s - theirs)
	double waited_j; // energy at each rank's power in waiting blocks, else at its mean power; estimated
};

struct job_options {
	const char *const *
		waiting; // name patterns (fnmatch) of blocks in which a rank waits for others; NULL: job_waiting_names
	const char *step; // NULL: the step in the runs' metadata
};

struct job_findings {
	const struct job_runs *runs;
	const char *id, *name, *user, *cluster, *launcher; // NULL unknown
	const char *step;                                  // NULL: no step, or several
	size_t n_steps;                                    // number of steps with ranks; 0: none
	int64_t start_wall_ns;                             // Unix time of the job's start; VALUE_MISSING unknown
	int64_t world_size;                                // VALUE_MISSING unknown
	int64_t missing_ranks;                             // ranks of world_size without a run; VALUE_MISSING unknown
	int64_t n_nodes_expected; // number of nodes according to the launcher; VALUE_MISSING unknown
	double clocks_apart_s;                             // difference between the start times of one launch's nodes
							   // by their own clocks; 0: none
	size_t n_nodes_unknown;                            // machines whose energy is unknown and excluded from the total
	struct findings
		total; // sums in the form of one run: domains of all nodes, CPU, memory, GPUs, blocks; with a synthetic run
	size_t *domain_node;    // per domain of total.domains: index of the node
	size_t *gpu_node;       // per GPU of total.gpus: index of the node
	struct job_node *nodes; // in order of their first rank
	size_t n_nodes;
	struct job_rank *ranks; // in order of rank
	size_t n_ranks;
	struct job_block *blocks; // by name; same index as total.blocks
	size_t n_blocks;
	bool block_energy_left_out; // too many spans to read: blocks of ranks that did not read sensors have no energy
	// Spreads over the ranks of one step that did not end early; of several steps the one with the longest working
	// time.
	const char *compared_step; // NULL: no step, or a single one
	struct spread duration_s, work_s, cpu_s, energy_j, waiting_s, end_wait_s;
	size_t n_ended_early; // number of that step's ranks excluded from the spreads
	struct slowest slowest;
	double waiting_j;      // energy attributed to the ranks in waiting blocks; NaN unknown
	const char **warnings; // sentences, for example on machines counted once, take-overs, missing or incomplete
			       // ranks, and clocks
	size_t n_warnings;
	struct job_work *work; // the data that the above points to
	struct arena *arena;
};

// -ENOMEM only. `runs` must outlive *ret_job; it has device samples if the job's energy is joined.
int job_make(const struct job_runs *runs, const struct job_options *options, struct job_findings *ret_job);
void job_finish(struct job_findings *job);
// Sum of the mean powers of the nodes, each over its measured time; NaN: unknown.
double job_mean_w(const struct job_findings *job);
// For a run (an index in runs): an instant in seconds since the job's start, by its machine's clock; and the index of
// its rank.
double job_time_s(const struct job_findings *job, size_t run, int64_t t_ns);
size_t job_rank_of(const struct job_findings *job, size_t run);
extern const char
	*const job_waiting_names[]; // default waiting blocks, NULL-terminated: MPI_Barrier, MPI_Wait*, *allreduce*, *barrier* …
