/* Process-level parts of wattled, around the server. */
#pragma once

#include "base/env.h"
#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Log messages of wattled: one line per event on stderr, with a priority prefix if systemd reads it. The only place in
 * this module that prints. */

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_NOTICE = 5, LOG_LEVEL_INFO = 6 }; // as in syslog

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Number of lines per level. Counted separately, so that warnings, which any client can cause, do not suppress messages
// about changed limits.
struct log_shares {
	pthread_mutex_t mutex;
	struct log_share {
		int64_t period_s;
		int n, left_out;
	} of[LOG_LEVEL_INFO + 1];
};
/* Logs an event that clients can trigger at will. The number of lines is limited and followed by one with the number of
 * omitted lines, so that a client can't fill the disk. Zeroed shares are valid. */
void log_client(struct log_shares *shares, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Command line of wattled. */

struct helper_options {
	const char *socket, *sysfs, *procfs, *nvml, *state, *policy, *check_policy; // borrowed from argv; NULL: the default
	bool help, version, manual;
};

int helper_options_parse(int argc, char **argv, struct helper_options *ret_options, struct wattle_error *reterr);

struct buf;
void helper_help(struct buf *out);
void helper_manual(struct buf *out); // the manual page, from the same table

/* Listening socket for clients: created here, or passed by systemd. */

struct listener {
	int fd;         // owned; listening, non-blocking
	int lock_fd;    // owned; PATH.lock, held for the life of this program; -1: the socket belongs to systemd
	char path[104]; // fits a socket address even with ".new"; "": the socket belongs to systemd
	dev_t st_dev;   // identity of the created socket
	ino_t st_ino;
};

// Number of sockets that systemd passed to this process (sd_listen_fds(3)).
size_t listener_handed_over(void);
/* Uses the passed socket if n_handed_over is 1, else creates one at `path`. Replaces the socket of a dead wattled;
 * -EADDRINUSE if that is alive. Everybody may connect; the policy limits what they may do. */
int listener_open(struct listener *ret_listener, size_t n_handed_over, const char *path, struct wattle_error *reterr);
// Removes the socket if it is still the one created here.
void listener_close(struct listener *listener);

/* Notifications to systemd (sd_notify(3)); no effect if NOTIFY_SOCKET is not set. */

// "READY=1\nSTATUS=…": lines of VARIABLE=VALUE.
void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Two processes, each of which restores all limits when the other dies.
 *
 * The initial process becomes the guard: it forks the serving process before either has opened a device (NVML does not
 * survive a fork) and waits. When the serving process ends for any reason, the guard restores the limits it left, as
 * every start does (cap_recover). When the guard is killed, the pipe between them breaks: the serving process restores
 * its clients' limits and exits, and systemd restarts both. So neither has to start programs, and both can drop that
 * right. */

struct guard {
	pid_t pid;   // of the serving process; 0: in the serving process itself
	int pipe_fd; // owned; the serving process writes once when it is ready; the exit of either process closes its end
	int stop_fd; // owned; a signalfd: SIGTERM, SIGINT, SIGQUIT: end; SIGHUP: read the policy again
};

// Returns in both processes.
int guard_split(struct guard *ret_guard, struct wattle_error *reterr);
// Call in the serving process. `status` is shown by systemd.
void guard_send_ready(struct guard *guard, const char *status);
// Call in the guard: waits for the end of the serving process, restores limits and returns the exit status of both.
int guard_wait(struct guard *guard, const struct wattle_env *env);
void guard_close(struct guard *guard);

/* Restricts the files that the calling thread and its future threads can open (Landlock, Linux 5.13). Open files stay usable. */

enum file_use {
	FILES_READ,   // read a file, or all files below a folder
	FILES_WRITE,  // read and write existing files: registers, device files
	FILES_OWN,    // a folder: create, write, rename and remove files and folders in it
	FILES_REMOVE, // a folder: remove files from it
};

struct landlock {
	int fd;  // owned ruleset; -1: the kernel has no Landlock
	int abi; // version; negative errno
	/* errno of the first rule for an existing path that could not be added. A path without a rule is inaccessible,
	 * and then a power limit might never be restored. */
	int error; // positive errno; 0: none
	char failed_path[128];
};

void landlock_begin(struct landlock *ret_landlock);
// Adds a rule; ignores a missing file and records any other failure. at_fd: folder that `path` is relative to and
// cannot leave; AT_FDCWD: as in open(2).
void landlock_allow(struct landlock *landlock, int at_fd, const char *path, enum file_use use);
/* Enforces the rules and closes *landlock. Returns 0 or a positive errno; ENOSYS, EOPNOTSUPP: the kernel has no
 * Landlock. Enforces nothing and returns landlock->error if a rule could not be added. */
int landlock_enforce(struct landlock *landlock);

/* Privileges that wattled drops after opening what it needs, to limit the damage of a bug: capabilities, starting
 * programs, most system calls, and all files except those it uses. If the kernel or a container refuses one of these,
 * the report names it and wattled runs without it. Rules for files that are only partly accepted are an error: they
 * could make the journal of limits inaccessible. */

struct cap_devices;
struct wattle_env;

struct sandbox_report {
	char text[400]; // dropped privileges and failures, for the log
	bool is_whole;
};

// Sets limits: room for this many descriptors, no core dumps, created files not writable by others. Call at start,
// while it is still permitted.
void sandbox_limit_resources(size_t n_descriptors);
// No capabilities and no new privileges, for a process that only reads root's own files. A refusal is not reported.
void sandbox_drop_capabilities(void);
struct sandbox_needs {
	const struct wattle_env *env;
	const struct cap_devices *devices; // registers of these devices stay writable
	/* The devices include an NVIDIA GPU: keep CAP_SYS_ADMIN, which its driver requires for setting a limit, and
	 * access to the driver's device files. Nothing else needs a capability: root owns the files that wattled reads
	 * and writes. */
	bool has_nvidia;
	const char *socket; // removed by this process at exit; "": none
};
/* Create the folder of the journal first: Landlock needs existing files. Negative errno with a message: a path that
 * exists got no Landlock rule; the process is not sandboxed and must not serve. */
int sandbox_enter(const struct sandbox_needs *needs, struct sandbox_report *ret_report, struct wattle_error *reterr);
