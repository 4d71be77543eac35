/* Shared by the files of the plugin. */
#pragma once

#include "base/error.h"
#include "lib/tracker_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A NULL-terminated list of NAME=VALUE. */

// Pointer to the entry of NAME, or to the end of the list.
char **environment_find(const char *name, char **environment);
// A job_variable function for such a list: the value, or NULL. `environment` may be NULL.
const char *environment_variable(const char *name, void *environment);

/* Settings for measuring a job step: the site's arguments of the plugin in plugstack.conf, overridden by the user's
 * options of srun, sbatch or salloc. */

enum { SETTING_SIZE = 1024 };

struct settings {
	bool wanted;                   // measure this step
	bool comment;                  // store the energy in the job's comment
	char interval[32];             // sampling interval, in wattle's syntax
	char folder[SETTING_SIZE];     // folder of the run files; %j is the job's id; relative to the step's working folder
	char program[SETTING_SIZE];    // path of wattle
	char scontrol[SETTING_SIZE];   // path, or a name to be searched in PATH
	char site_words[SETTING_SIZE]; // further options of `wattle attach`, separated by blanks
	char user_words[SETTING_SIZE]; // the user's options, which follow site_words and override them
	int64_t ready_ns, wait_ns;     // maximum waits: of a task for its recorder to be ready, and of a node for its
	                               // recorders to end
};

void settings_init(struct settings *settings, const char *program);
// Parses one argument of plugstack.conf: KEY=VALUE. -EINVAL with a message; *settings is unchanged then.
int settings_take_site(struct settings *settings, const char *argument, struct wattle_error *reterr);

enum settings_option { SETTINGS_INTERVAL, SETTINGS_FOLDER, SETTINGS_WORDS };
/* Parses one option of srun. value: NULL, "" or "(null)" if it has none (Slurm passes on the last for an option given
 * to sbatch without a value). -EINVAL with a message; *settings is unchanged then. */
int settings_take_user(struct settings *settings, enum settings_option option, const char *value,
	struct wattle_error *reterr);

// Expands settings->folder: %j is the job's id, %% is a %. -EINVAL with a message: another letter, or too long.
int settings_folder(const struct settings *settings, const char *job_id, char *ret_folder, size_t size,
	struct wattle_error *reterr);

/* GPU numbers. If Slurm constrains a job's devices, a task numbers its visible GPUs from 0, and CUDA_VISIBLE_DEVICES
 * uses these numbers. A recorder is outside of that constraint, so for it the same numbers are other GPUs.
 * SLURM_STEP_GPUS, or SLURM_JOB_GPUS in a batch script, has the node's numbers of the step's GPUs. If each task has its
 * own, these are more than one task's. That is harmless: each GPU is read once, and the processes on it show which task
 * uses it. */

enum { VISIBLE_CAPACITY = 2 }; // maximum number of added variables

/* Rewrites the variables in a NULL-terminated environment that has room. GPUs named by UUID stay, because UUIDs are
 * unambiguous. New texts are not freed: an exec follows. */
void visible_of_node(char **environment);

/* Environment of the recorder. The recorder runs outside of the job's limits, so variables of the job must not choose
 * code that it loads (LD_PRELOAD, WATTLE_NVML, GCONV_PATH …). Only listed variables pass: information about the job
 * (rank, visible GPUs, locale, paths of files, a store), and the site's paths of the machine. None of them names a
 * library. */

/* job: environment of the task; site: of slurmd. Both and the result are NULL-terminated. The strings are borrowed; the
 * list is allocated with malloc and has VISIBLE_CAPACITY. Returns NULL if out of memory. */
char **recorder_environment(char **job, char **site);

/* A control group (cgroup v2) below that of this process. The kernel kills all its members at once, however fast they
 * fork. */

struct own_cgroup {
	int fd; // owned descriptor of its folder; -1: none
	char path[512];
};

// Sets fd to -1 if there is no cgroup v2 or this process may not create a group.
void own_cgroup_make(struct own_cgroup *ret_cgroup);
// Moves the calling process into it. A failure is harmless: the keeper also kills by descent.
void own_cgroup_join(const struct own_cgroup *cgroup);
void own_cgroup_kill(const struct own_cgroup *cgroup);
// Removes the group if it is empty. Negative errno: it has members.
int own_cgroup_remove(struct own_cgroup *cgroup);

/* Connection between a task to be measured, slurmstepd, which starts its recorder and waits for it, and the recorder.
 *
 * Everything is created before Slurm forks the tasks. Then, for each task:
 *
 *   slurmstepd, when tasks are forked and held back    task_line_start: forks the recorder and its keeper, outside of
 *                                                      the task and its constraints (binding, limits, control groups)
 *   the task, just before it executes its program      task_line_join: sends the recorder its environment, and waits
 *                                                      for the first sample
 *   slurmstepd, when the task has ended                task_line_ended, and after the last one task_lines_finish,
 *                                                      which also kills all processes started by recorders
 *
 * The recorder is `wattle attach`, run as the job's user; it has the same view as any recorder of a task in that job. */

struct task_line {
	int fd;                 // owned: the end of the task and slurmstepd; -1: this task is not measured
	int recorder_fd;        // owned: the recorder's end; -1: passed on
	int keeper_socket_fd, task_socket_fd; // owned: pipe connected to the recorder's standard error; -1: closed
	int keeper_fd;  // owned: socket to the keeper, closed when the keeper exits; closing our end makes the keeper exit
	int keeping_fd; // owned: the keeper's end; -1: passed on
};

struct task_owner { // identity of the recorder
	uid_t uid;
	gid_t gid;
	const gid_t *groups; // n_groups entries; borrowed
	size_t n_groups;
	int folder_fd; // working folder; borrowed; -1: the current one
};

int task_line_open(struct task_line *line); // negative errno; *line is closed then
void task_line_close(struct task_line *line);

// step: "0", "batch". On failure the line is closed.
int task_line_start(struct task_line *line, const struct settings *settings, const struct task_owner *owner, pid_t task,
	const char *step, struct wattle_error *reterr);

/* Call in task `index` of n. environment, command: NULL-terminated. ret_ring: value for WATTLE_RING, "" if there is
 * none. Negative errno with a message: the task is not measured. */
int task_line_join(struct task_line *lines, size_t n, size_t index, char **environment, char **command,
	int64_t ready_ns, char *ret_ring, size_t size, struct wattle_error *reterr);

/* Call when the task has ended; `ended`: the kernel's accounting, or NULL. Otherwise a recorder that was never joined
 * would wait forever, and any other would not know how its task ended. */
void task_line_ended(struct task_line *line, const struct tracker_ended *ended);
/* Waits until all recorders have ended, at most wait_ns, and kills those that have not. told: receives a recorder's
 * messages, one line at a time. Returns the number of killed recorders; all lines are closed. */
size_t task_lines_finish(struct task_line *lines, size_t n, int64_t wait_ns, void (*on_message)(const char *text));

/* The recorder of a task, from its fork in slurmstepd to its exec as the job's user. */

// Header of the task's message; its environment and its command follow, each text with its NUL.
struct task_greeting {
	uint32_t umask, n_variables, n_words, reserved;
	uint64_t size; // size of all texts, bytes
};

struct recorder_start {
	const struct settings *settings;
	const struct task_owner *owner;
	pid_t task;
	const char *step;
	int control_fd, error_fd;
	pid_t keeper; // set by the keeper: parent of the recorder
};

_Noreturn void recorder_start(const struct recorder_start *start);

// Implemented in user.c: changes permanently from root to the job's user, in its folder, with its own session and
// default signals. Negative errno.
int become_owner(const struct task_owner *owner);

/* The keeper starts a recorder and kills it with all its descendants. The job's user controls the recorder and can make
 * it start other processes. Slurm does not end them with the step, because they are not in the step's container.
 *
 * The keeper runs as root. With cgroup v2 it kills the recorder's own control group, a child of slurmstepd's. Without
 * it, it kills its own children until none is left: as a subreaper (PR_SET_CHILD_SUBREAPER) it becomes the parent of
 * every orphaned descendant.
 *
 * The keeper is two processes, a parent and its child, and the child starts the recorder. Both are subreapers:
 * whichever is killed, the other one kills all descendants. Only the death of both at once, without cgroup v2, leaves
 * descendants of the recorder. The recorder itself dies with its keeper (PR_SET_PDEATHSIG). The kernel's out-of-memory
 * killer prefers other processes (oom_score_adj -999).
 *
 * The keeper kills and then exits when the recorder has exited, or when the other end of its socket is closed: the step
 * has ended, or slurmstepd was killed. */

// Call in a fork of slurmstepd. line_fd: a stream socket; closing one end means that this side has ended.
_Noreturn void keeper_run(const struct recorder_start *start, int line_fd);

/* Summary of a finished step. The last node to finish sums up the run files in the folder, as `wattle report` does, for
 * the job's comment and for the user's terminal. This runs in a separate process as the job's user and for at most
 * settings.wait_ns: reading the runs of many ranks is slow, and the user's folder may be slow or fail. */

struct step_end {
	const struct settings *settings;
	const struct task_owner *owner;
	const char *job_id;     // in wattle's form: "4242_7"
	uint32_t slurm_job;     // in scontrol's form
	const char *step;       // "0", "batch"
	uint32_t restart;       // restart count of the job
	uint32_t node, n_nodes; // index of this node in the step, and number of nodes
};

// told: receives one line for the user, or an error.
void step_end(const struct step_end *end, void (*on_message)(const char *text));
/* For srun, after the step: whether some of its nodes did not meet the others in the folder. Uses settings, job_id,
 * step and restart only. */
bool step_end_is_apart(const struct step_end *end);

/* Implemented in comment.c. Builds a job's new comment: `old` without the text of an earlier step of the job, followed
 * by `line`. -EMSGSIZE: too long. */
int comment_make(const char *old, const char *line, char *ret_comment, size_t size);
// Extracts the comment from the output of `scontrol show job`; "" none. -EILSEQ: it has several lines; -EMSGSIZE.
int comment_find(const char *shown, char *ret_comment, size_t size);
// Whether the job in the output of `scontrol show job` is completed, cancelled or out of time: Slurm then rejects a
// comment.
bool comment_is_too_late(const char *shown);
