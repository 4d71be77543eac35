/* What the files of the plugin share. */
#pragma once

#include "base/error.h"
#include "lib/tracker_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A NULL-terminated list of NAME=VALUE. */

// Where NAME stands, or the end of the list.
char **environment_find(const char *name, char **environment);
// A job_variable of it: its value, or NULL. `environment` may be NULL.
const char *environment_variable(const char *name, void *environment);

/* What is to be measured of a job step and how: what the site wrote behind the plugin's name in plugstack.conf, and above that
 * what a user said to srun, sbatch or salloc. */

enum { SETTING_SIZE = 1024 };

struct settings {
	bool wanted;                   // this step is measured
	bool comment;                  // the energy goes into the job's comment
	char interval[32];             // of samples, as wattle takes it
	char folder[SETTING_SIZE];     // of the run files; %j is the job's id; relative to the step's working folder
	char program[SETTING_SIZE];    // wattle itself
	char scontrol[SETTING_SIZE];   // a path, or a name to be found in PATH
	char site_words[SETTING_SIZE]; // further options of `wattle attach`, blanks between them …
	char user_words[SETTING_SIZE]; // … and the user's, which come later and win
	int64_t ready_ns, wait_ns;     // the longest that a task waits for its recorder, and its node for their ends
};

void settings_init(struct settings *settings, const char *program);
// One argument of plugstack.conf: KEY=VALUE. -EINVAL with a sentence; *settings is untouched then.
int settings_take_site(struct settings *settings, const char *argument, struct wattle_error *reterr);

enum settings_option { SETTINGS_INTERVAL, SETTINGS_FOLDER, SETTINGS_WORDS };
/* One option of srun. value: NULL, "" or "(null)" if it has none: as the latter, Slurm hands on an option that sbatch was given
 * without a value. -EINVAL with a sentence; *settings is untouched then. */
int settings_take_user(struct settings *settings, enum settings_option option, const char *value,
	struct wattle_error *reterr);

// `pattern` with the job's id for %j; %% is a %. -EINVAL with a sentence: another letter; or too long.
int settings_folder(const struct settings *settings, const char *job_id, char *ret_folder, size_t size,
	struct wattle_error *reterr);

/* Where Slurm constrains a job's devices, a task counts from 0 what it may see, and CUDA_VISIBLE_DEVICES means those numbers. A
 * recorder stands outside of that constraint: for it, the same numbers are other GPUs. SLURM_STEP_GPUS, or SLURM_JOB_GPUS in a batch
 * script, names the step's GPUs as the node counts them. Those of the whole step are more than one task's, when each has its own; that
 * does no harm, for each is read once, and whose use it is the processes on it tell. */

enum { VISIBLE_ROOM = 2 }; // variables that may be added

/* Rewrites the variables in a NULL-terminated environment that has room. What names GPUs by UUID means the same everywhere and
 * stays. New texts are not freed: an exec follows. */
void visible_of_node(char **environment);

/* The recorder's environment. The recorder runs outside of the job's limits, so variables of the job must not choose code that it loads
 * (LD_PRELOAD, WATTLE_NVML, GCONV_PATH …). Only listed variables pass: facts of the job (rank, visible GPUs, locale, paths of files, a
 * store), and the site's paths of the machine. None of them names a library. */

/* job: the environment of the task; site: of slurmd. Both and the result are NULL-terminated. The strings are borrowed; the list is
 * malloc'ed and has VISIBLE_ROOM. Returns NULL if out of memory. */
char **recorder_environment(char **job, char **site);

/* A control group (cgroup v2) below that of this process. The kernel kills all its members at once, however fast they fork. */

struct own_cgroup {
	int fd; // owned: its folder; -1: none
	char path[512];
};

// Sets fd to -1 if there is no cgroup v2 or this process may not create a group.
void own_cgroup_make(struct own_cgroup *ret_cgroup);
// Moves the calling process. A failure is harmless: the keeper also kills by descent.
void own_cgroup_join(const struct own_cgroup *cgroup);
void own_cgroup_kill(const struct own_cgroup *cgroup);
// Removes an empty group. Negative errno: it has members.
int own_cgroup_remove(struct own_cgroup *cgroup);

/* The line between a task that is to be measured, slurmstepd that starts and awaits it, and its recorder.
 *
 * All of it is made before Slurm forks the tasks. Then, for each task:
 *
 *   slurmstepd, when tasks are forked and held back    task_line_start: forks what will be the recorder and its keeper, outside of
 *                                                      the task and of what Slurm gives it (binding, limits, control groups)
 *   the task, just before it executes its program      task_line_join: tells the recorder its environment, and waits until that has
 *                                                      taken the first sample
 *   slurmstepd, when the task has ended                task_line_ended, and when all have: task_lines_finish, which also ends
 *                                                      all that recorders have started
 *
 * The recorder is `wattle attach`, as the job's user; it sees what every recorder of a task in that job sees. */

struct task_line {
	int fd;                 // owned: our end; the task's and slurmstepd's. -1: this task is not measured
	int recorder_fd;        // owned: the recorder's end; -1 handed over
	int said_fd, saying_fd; // owned: a pipe that is the recorder's standard error; -1 closed
	int keeper_fd;  // owned: to the keeper, whose end is its end; our end of it is an order to end
	int keeping_fd; // owned: the keeper's end; -1 handed over
};

struct task_owner { // who the recorder is to be
	uid_t uid;
	gid_t gid;
	const gid_t *groups; // n_groups; borrowed
	size_t n_groups;
	int folder_fd; // where it works; borrowed; -1 where we are
};

int task_line_open(struct task_line *line); // negative errno; *line is closed then
void task_line_close(struct task_line *line);

// step: "0", "batch". The line is closed where nothing could be started.
int task_line_start(struct task_line *line, const struct settings *settings, const struct task_owner *owner, pid_t task,
	const char *step, struct wattle_error *reterr);

/* In the task `index` of n. environment, command: NULL-terminated. ret_ring: what WATTLE_RING is to be, "" if there is none.
 * A negative errno with a sentence: it is not measured. */
int task_line_join(struct task_line *lines, size_t n, size_t index, char **environment, char **command,
	int64_t ready_ns, char *ret_ring, size_t size, struct wattle_error *reterr);

/* The task is no more; what is known of its end, NULL nothing. Without this a recorder that was never joined would wait on, and any
 * other one not know how its task has ended. */
void task_line_ended(struct task_line *line, const struct tracker_ended *ended);
/* Waits until all recorders have ended, at most so long, and ends those that have not. told: one line of what a recorder has to
 * say. Returns how many were still at it; all lines are closed. */
size_t task_lines_finish(struct task_line *lines, size_t n, int64_t wait_ns, void (*told)(const char *text));

/* The recorder of a task, from its fork out of slurmstepd to its exec as the job's user. */

// What the task sends: this, its environment and its command, each text with its NUL.
struct task_greeting {
	uint32_t umask, n_variables, n_words, reserved;
	uint64_t size; // of all texts
};

struct recorder_start {
	const struct settings *settings;
	const struct task_owner *owner;
	pid_t task;
	const char *step;
	int control_fd, error_fd;
	pid_t keeper; // set by the keeper: the parent of the recorder
};

_Noreturn void recorder_start(const struct recorder_start *start);

// user.c: from root to the job's user for good, in its folder, in a session of its own, signals as after an exec. Negative errno.
int become_owner(const struct task_owner *owner);

/* The keeper starts a recorder and kills it with all its descendants. The job's user controls the recorder and can make it start other
 * processes, and Slurm does not end them with the step, since they are not in the step's container.
 *
 * The keeper runs as root. With cgroup v2 it kills the recorder's own control group, a child of slurmstepd's. Without it, it kills its
 * own children until none is left: as a subreaper (PR_SET_CHILD_SUBREAPER) it becomes the parent of every orphaned descendant.
 *
 * The keeper is two processes, a parent and its child, and the child starts the recorder. Both are subreapers: whichever is killed, the
 * other one kills all descendants. Only the death of both at once, without cgroup v2, leaves descendants of the recorder. The recorder
 * itself dies with its keeper (PR_SET_PDEATHSIG). The kernel's out-of-memory killer takes other processes first (oom_score_adj -999).
 *
 * The keeper does this, and then exits, when the recorder has exited or when the other end of its line is closed: the step has ended, or
 * slurmstepd was killed. */

// Call it in a fork of slurmstepd. line_fd: a stream socket; closing one end means the end of that side.
_Noreturn void keeper_run(const struct recorder_start *start, int line_fd);

/* What is told of a step once it is over: the last of its nodes to end sums up what lies in the folder, as `wattle report` does, for
 * the job's comment and for whoever waits for the step. In a program of its own, as the job's user, and not for longer than
 * settings.wait_ns: reading the runs of many ranks takes its time, and folders of users have their ways. */

struct step_end {
	const struct settings *settings;
	const struct task_owner *owner;
	const char *job_id;     // as wattle has it: "4242_7"
	uint32_t slurm_job;     // as scontrol does
	const char *step;       // "0", "batch"
	uint32_t restart;       // of the job
	uint32_t node, n_nodes; // which one of how many of the step's
};

// told: one line for whoever waits, or what went wrong.
void step_end(const struct step_end *end, void (*told)(const char *text));
/* Where the step was started from, when it is over: whether some of its nodes have not met the others in the folder. settings, job_id,
 * step and restart are looked at. */
bool step_end_is_apart(const struct step_end *end);

/* comment.c: what is to become of a job's comment: `old` without what an earlier step of the job said, and `line` behind it.
 * -EMSGSIZE: it is too long for that. */
int comment_make(const char *old, const char *line, char *ret_comment, size_t size);
// The comment as `scontrol show job` shows it; "" none. -EILSEQ: it has further lines; -EMSGSIZE.
int comment_find(const char *shown, char *ret_comment, size_t size);
// Whether the job that `scontrol show job` shows is over, cancelled or out of time: Slurm takes no comment of it any more.
bool comment_is_too_late(const char *shown);
