/* What a job has to say: its runs, one a rank, into figures by node, rank and block. Pure, as findings.h.
 *
 * A machine's energy counts once. Which runs lie on one machine their facts `machine` say (start of the machine and the tree it was
 * read from), not their host names. On a machine each domain has one curve of energy, made of the pieces that its ranks have read, one
 * after the other; where two ranks have read at once, one of them counts. Between pieces (a rank died, another took over) the
 * counter's own value (energy_raw_uj) tells what was used. Then every rank is attributed its share of that curve by the same code as
 * a run alone. */
#pragma once

#include "analysis/findings.h"
#include "store/job_runs.h"

struct job_work;

struct spread {                            // over ranks
	double min, mean, max, std, total; // std: of the population; NaN unknown
	int64_t count;                     // ranks that know it
	int64_t max_at;                    // index of the rank that has the largest; -1 none
	double imbalance_percent; // (max - mean) / max: what would be saved if all were as the mean; NaN unknown
};

struct rank_domain {
	const char *name;
	double target_j; // what the rank was attributed of it, over all of its recordings; NaN unknown
};

struct job_rank {
	const struct job_run *run;         // the last one of its restarts
	const struct findings *findings;   // of that one, with its machine's sensors and its own GPUs; without times
	const char *step;                  // of Slurm; NULL none
	int64_t rank, local_rank, restart; // VALUE_MISSING unknown
	size_t node;                       // index
	int64_t runs;                      // recordings of this rank: 1, and one more each restart
	double duration_s;                 // of all of them
	bool complete;                     // false: its last recording is still going on, or its recorder died
	int64_t cut_off;                   // of its earlier ones, those whose recorder died
	int64_t exit_code;                 // VALUE_MISSING unknown
	double start_s, end_s;             // since the job's start, by the hosts' own wall clocks
	double cpu_s;
	double energy_j, error_j;    // attributed to this rank, over all domains of its node
	struct rank_domain *domains; // n_domains
	size_t n_domains;
	double waiting_s, waiting_j; // in blocks that wait (job_options.waiting); NaN without any
	double waiting_w;            // meanwhile, on average; NaN unknown
	double end_wait_s;           // between its end and the end of the last rank
	double work_s;               // duration_s less waiting_s
	bool ended_early;            // it failed or was cut off while others went on: it is not compared with them
	/* Its processes were measured by another recorder of this job too (`wattle run mpirun … wattle run …`): its energy is theirs, and
	 * it enters no sum and no spread. */
	bool nested;
};

struct job_node {
	const char *name, *host, *machine;
	int64_t same_machine_as; // index of the node on whose row this machine's energy stands; -1: on this one
	const struct findings
		*findings; // of this machine: all its ranks as one target, with times for its curves; else NULL
	size_t n_ranks;
	double energy_j, error_j, mean_w; // of the machine while any of its ranks ran
	enum provenance provenance;
	struct ledger ledger;                 // target_j: of all ranks of this machine
	const struct domain_finding *domains; // n_domains, of findings; their device's name is the domain's
	size_t n_domains;
	double from_s, to_s;    // since the job's start: what was measured of it
	double paused_s;        // of that, time in which none of its ranks ran; no sum has anything of it
	double unmeasured_s;    // of the rest, time in which no rank read the sensors; its energy is not known
	const char *unmeasured; // the domain that was not read for so long; NULL: most of them
	double cpu_s;           // of its ranks
};

struct job_block {
	const char *name;
	int64_t calls;
	struct value_stats compute_time_s; // over all calls of all ranks
	struct spread time_s, energy_j;    // each rank's total
	const double *rank_time_s;         // that of each rank; NaN: it has not called it
	double total_j, error_j;           // NaN where any rank that has called it does not know
	bool waits;                        // by job_options.waiting
};

struct slowest {            // the rank that worked longest, and what it cost the others
	int64_t rank;       // index; -1: unknown (one rank, or nothing to compare)
	double over_mean_s; // its work_s less the mean of all
	double over_percent;
	double waited_s; // what the other ranks would have saved: sum of (its work_s - theirs)
	double waited_j; // at the power that each has in its waiting blocks, else at its mean power; estimated
};

struct job_options {
	const char *const *
		waiting; // patterns (fnmatch) of names of blocks in which a rank waits for others; NULL: the usual ones
	const char *step; // NULL: as the runs say
};

struct job_findings {
	const struct job_runs *runs;
	const char *id, *name, *user, *cluster, *launcher; // NULL unknown
	const char *step;                                  // NULL: none, or several
	size_t n_steps;                                    // in which there are ranks; 0: there are none
	int64_t start_wall_ns;                             // Unix time of the job's start; VALUE_MISSING unknown
	int64_t world_size;                                // VALUE_MISSING unknown
	int64_t missing_ranks;                             // of world_size, those without a run; VALUE_MISSING unknown
	int64_t n_nodes_said;                              // by the launcher; VALUE_MISSING unknown
	double clocks_apart_s;                             // nodes of one launch began so far apart by their own clocks; 0: no
	size_t n_nodes_unknown;                            // machines whose energy is not known, and not in the total
	struct findings
		total; // the sums, as one run's: domains of all nodes, CPU, memory, GPUs, blocks; its run is made for it
	size_t *domain_node;    // of total.domains: index of the node
	size_t *gpu_node;       // of total.gpus
	struct job_node *nodes; // in order of their first rank
	size_t n_nodes;
	struct job_rank *ranks; // in order of rank
	size_t n_ranks;
	struct job_block *blocks; // by name; with total.blocks[i]
	size_t n_blocks;
	bool block_energy_left_out; // there were too many spans to read: blocks of ranks that did not read sensors have no energy
	// Over the ranks of one step that did not end early: of several steps that in which they worked longest.
	const char *compared_step; // NULL: there are none, or one
	struct spread duration_s, work_s, cpu_s, energy_j, waiting_s, end_wait_s;
	size_t n_ended_early; // ranks of that step that are left out
	struct slowest slowest;
	double waiting_j;      // attributed to the ranks in blocks that wait; NaN unknown
	const char **warnings; // sentences: counted once, taken over, missing, incomplete, clocks
	size_t n_warnings;
	struct job_work *work; // what all this points to
	struct arena *arena;
};

// -ENOMEM only. `runs` must outlive it, and has its device samples where the job's energy is joined.
int job_make(const struct job_runs *runs, const struct job_options *options, struct job_findings *ret_job);
void job_finish(struct job_findings *job);
// Of one of its runs (an index in runs): an instant in seconds since the job's start, by its machine's clock; and its rank's row.
double job_time_s(const struct job_findings *job, size_t run, int64_t t_ns);
size_t job_rank_of(const struct job_findings *job, size_t run);
extern const char
	*const job_waiting_names[]; // the usual ones, NULL-terminated: MPI_Barrier, MPI_Wait*, *allreduce*, *barrier* …
