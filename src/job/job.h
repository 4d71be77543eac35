/* Jobs of many ranks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Where in a job this program stands, as its launcher says by environment variables: srun, sbatch, mpirun (Open MPI, MPICH, Intel MPI),
 * torchrun, flux, jsrun, PALS, or whoever sets RANK and WORLD_SIZE. Pure: variables come from a function.
 *
 * The innermost launcher says what the rank is (mpirun inside a Slurm job: SLURM_PROCID is that of mpirun's daemon), the outermost
 * what the job is. In a batch script that no launcher has started again there is a job and no rank. */

enum { JOB_TEXT_SIZE = 128 };

struct job_place {
	bool in_job;       // there is a job id or a rank; false: nothing below is known
	char launcher[24]; // "slurm", "openmpi", "mpich", "torchrun", "environment" …: who gave the rank; "" no rank
	char id[JOB_TEXT_SIZE];      // the same text for all ranks of a job: "4242", "4242_7" (array); "" unknown
	char step[JOB_TEXT_SIZE];    // of Slurm: "0"; of an mpirun in its job: mpirun's own name of it; "" none
	char name[JOB_TEXT_SIZE];    // that its owner gave; "" none
	char user[JOB_TEXT_SIZE];    // who submitted it; "" ask the system who we are
	char cluster[JOB_TEXT_SIZE]; // "" unknown
	char node[JOB_TEXT_SIZE];    // the scheduler's name of this node; "" take the host's
	char group
		[JOB_TEXT_SIZE]; // where id is "": something else that ranks of one launch share and others don't; "" nothing
	int64_t rank, local_rank;       // from 0; VALUE_MISSING unknown
	int64_t world_size, local_size; // ranks of the job (of its step), of them on this node; VALUE_MISSING unknown
	int64_t n_nodes;                // VALUE_MISSING unknown
	int64_t restart; // how often the job or its workers were started again (elastic, requeue); 0: never, or unknown
	char restart_text[48]; // the same for names of files: "2", or "1.0" where both kinds are counted; "" never
};

typedef const char *job_variable(const char *name, void *data); // NULL: not set
// job_place_find(job_from_environment, NULL, …) is the usual call.
const char *job_from_environment(const char *name, void *data);
struct job_environ { // of another process, as base/proc.h reads it
	const char *text;
	size_t size;
};
const char *job_from_environ(const char *name, void *data); // data: a struct job_environ
void job_place_find(job_variable *variable, void *data, struct job_place *ret_place);
/* The variables that have the number of a job which no other job or array task has, scheduler by scheduler, from *at = 0 on; NULL: that
 * were all. Grid Engine's JOB_ID is none of them: anybody may mean something else by it. */
const char *job_id_variable(size_t *at);
// Whether several recorders may measure it side by side: there is an id, or more than one rank.
bool job_place_is_shared(const struct job_place *place);

/* Which of the recorders that measure one job on one machine reads a thing of it (its CPU sensors, one GPU), so that it is read once.
 * No lock file: whoever has bound an abstract socket named after job, user, machine and thing reads it; the others stay connected to
 * it, and when it goes (its owner ended, or was killed) one of them takes over at once. Sockets of somebody else are not believed
 * (SO_PEERCRED): then we read for ourselves, and the report, which counts each joule of a machine once, sorts it out.
 *
 * Abstract sockets belong to a network namespace: recorders in containers with a network each don't see each other and read
 * all of them, which costs time and counts nothing twice.
 *
 * One thread, never blocks; the descriptor of a claim is watched by the caller's epoll. A child that is forked and does not exec
 * must close the descriptors: as long as one copy is open nobody takes over. */

enum { CLAIM_NAME_SIZE = 64 };

struct claim {
	/* Owned: of the listening socket when held, which needs no watching; else of the connection to its owner, which hangs up when
	 * the owner goes. -1: held without a socket, or not settled yet: claim_turn at the next tick. */
	int fd;
	bool held;                  // ours to read
	int64_t owner_pid;          // who reads it, in our pid namespace, when we don't; VALUE_MISSING unknown
	int refusals;               // in a row: its name is taken, and nobody listens
	char name[CLAIM_NAME_SIZE]; // of the socket, without its leading NUL
};

/* key: job, machine and thing as text; the name of the socket has its hash and the user. Never fails: where sockets can't be had it
 * is held. */
void claim_open(struct claim *claim, const char *key);
// Its descriptor hung up, or there is none and it is not held: tries to take over. True if `held` or `fd` changed.
bool claim_turn(struct claim *claim);
// Held for ourselves alone, whoever else has it.
void claim_go_alone(struct claim *claim);
void claim_close(struct claim *claim); // any number of times; the next one takes over

/* Who the recorder is that holds a claim: asked of /proc, so that nothing need be sent. */

// Its rank, by the variables that it was started with; VALUE_MISSING unknown.
int64_t job_owner_rank(pid_t owner);
/* Whether it measures what we measure: it is an ancestor of ours (wattle inside of a program that wattle runs), or was started by
 * our target (two trackers of one program). Such recorders are no two ranks, and each reads for itself. */
bool job_owner_is_kin(pid_t owner, pid_t target);
