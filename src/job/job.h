/* Jobs with several ranks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Position of this program in a job, from its launcher's environment variables: srun, sbatch, mpirun (Open MPI, MPICH,
 * Intel MPI), torchrun, flux, jsrun, PALS, or any launcher that sets RANK and WORLD_SIZE. Variables are read through a
 * function.
 *
 * The innermost launcher determines the rank (with mpirun inside a Slurm job, SLURM_PROCID is that of mpirun's daemon),
 * the outermost the job. In a batch script outside of any launcher there is a job but no rank. */

enum { JOB_TEXT_SIZE = 128 };

struct job_env {
	bool in_job;       // there is a job id or a rank; false: all members below are unknown
	char launcher[24]; // source of the rank: "slurm", "openmpi", "mpich", "torchrun", "environment" …; "" no rank
	char id[JOB_TEXT_SIZE];      // job id, the same for all ranks of a job: "4242", "4242_7" (array); "" unknown
	char step[JOB_TEXT_SIZE];    // Slurm: step id such as "0"; mpirun within a job: mpirun's own id; "" none
	char name[JOB_TEXT_SIZE];    // job name given by its owner; "" none
	char user[JOB_TEXT_SIZE];    // submitting user; "" unknown: use the process's user
	char cluster[JOB_TEXT_SIZE]; // cluster name; "" unknown
	char node[JOB_TEXT_SIZE];    // the scheduler's name of this node; "" unknown: use the host name
	char group
		[JOB_TEXT_SIZE]; // if id is "": another text that the ranks of one launch share and other launches do
		                 // not; "" none
	int64_t rank, local_rank;       // from 0; VALUE_MISSING: unknown
	int64_t world_size, local_size; // number of ranks in the job (or its step), and of those on this node;
	                                // VALUE_MISSING: unknown
	int64_t n_nodes;                // VALUE_MISSING: unknown
	int64_t restart; // number of restarts of the job or its workers (elastic, requeue); 0: none or unknown
	char restart_text[48]; // the same for file names: "2", or "1.0" if both kinds are counted; "" none
};

typedef const char *job_variable(const char *name, void *data); // value of a variable; NULL: not set
// For the usual call job_env_find(job_from_environment, NULL, …).
const char *job_from_environment(const char *name, void *data);
struct job_environ { // environment of another process, as read by base/proc.h
	const char *text;
	size_t size;
};
const char *job_from_environ(const char *name, void *data); // data: a struct job_environ
void job_env_find(job_variable *variable, void *data, struct job_env *ret_env);
/* Iterates over the variables of all schedulers that hold a number unique to a job or array task, starting with *at =
 * 0; NULL: end. Grid Engine's JOB_ID is excluded: other programs may use the name. */
const char *job_id_variable(size_t *at);
// Whether several recorders may measure the job side by side: there is an id, or more than one rank.
bool job_env_is_shared(const struct job_env *env);

/* Selects which of the recorders of one job on one machine reads a sensor (the CPU sensors, or one GPU), so that it is
 * read once. There is no lock file: the recorder that has bound an abstract socket named after job, user, machine and
 * sensor reads it. The others stay connected to it, and when it closes (its owner ended or was killed) one of them
 * takes over at once. Sockets of other users are not trusted (SO_PEERCRED): each recorder then reads for itself, and
 * the report, which counts each joule of a machine once, removes the duplicates.
 *
 * Abstract sockets belong to a network namespace: recorders in containers with separate networks do not see each other
 * and all read every sensor, which costs time but counts nothing twice.
 *
 * For use in one thread; never blocks; the caller's epoll watches the descriptor of a claim. A forked child that does
 * not exec must close the descriptors: while a copy is open nobody takes over. */

enum { CLAIM_NAME_SIZE = 64 };

struct claim {
	/* Owned: the listening socket if held, which needs no watching; otherwise the connection to the owner, which
	 * hangs up when the owner exits. -1: held without a socket, or undecided: call claim_turn at the next tick. */
	int fd;
	bool held;                  // this process reads the sensor
	int64_t owner_pid;          // if not held: pid of the owner in our pid namespace; VALUE_MISSING: unknown
	int refusals;               // consecutive refusals: the name is taken and nobody listens
	char name[CLAIM_NAME_SIZE]; // name of the socket without its leading NUL
};

/* key: job, machine and sensor as text; the socket's name consists of its hash and the user. Never fails: if sockets
 * are not available the claim is held. */
void claim_open(struct claim *claim, const char *key);
// Call when its descriptor hung up, or if it has none and is not held: tries to take over. True if `held` or `fd`
// changed.
bool claim_turn(struct claim *claim);
// Holds the claim for this process alone, even if another process has it.
void claim_hold_alone(struct claim *claim);
void claim_close(struct claim *claim); // idempotent; another recorder takes over

/* Properties of the recorder that holds a claim, read from /proc, so that no message is needed. */

// Its rank, from its initial environment variables; VALUE_MISSING: unknown.
int64_t job_owner_rank(pid_t owner);
/* Whether it measures the same processes as this recorder: it is an ancestor (wattle inside of a program measured by
 * wattle), or was started by our target (two trackers of one program). Such recorders are not two ranks, and each reads
 * for itself. */
bool job_owner_is_related(pid_t owner, pid_t target);
