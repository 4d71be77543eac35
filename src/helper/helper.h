/* The process around the server. */
#pragma once

#include "base/env.h"
#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What wattled has to say: one line an event on stderr, with the priority in front where systemd reads it. The only
 * place in this module that writes for people. */

enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARNING = 4, LOG_LEVEL_NOTICE = 5, LOG_LEVEL_INFO = 6 }; // of syslog

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// How many lines there were of each level: warnings, which anybody can cause, must not keep a changed limit out of the log.
struct log_shares {
	pthread_mutex_t mutex;
	struct log_share {
		int64_t period_s;
		int n, left_out;
	} of[LOG_LEVEL_INFO + 1];
};
/* A line about what clients can cause at will: so many, then one that says how many were left out, or a client could fill the disk.
 * Zeroed shares are valid. */
void log_client(struct log_shares *shares, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* wattled's command line. */

struct helper_options {
	const char *socket, *sysfs, *procfs, *nvml, *state, *policy; // borrowed from argv; NULL: the default
	bool help, version, manual;
};

int helper_options_parse(int argc, char **argv, struct helper_options *ret_options, struct wattle_error *reterr);

struct buf;
void helper_help(struct buf *out);
void helper_manual(struct buf *out); // a manual page, from the same table

/* The socket that clients come to: made here, or handed over by systemd. */

struct listener {
	int fd;         // owned; listening, not blocking
	int lock_fd;    // owned; PATH.lock: held as long as this program lives; -1: the socket is systemd's
	char path[104]; // with ".new" it fits a socket address; "": the socket is systemd's
	dev_t st_dev;   // of the socket as it was made
	ino_t st_ino;
};

// How many sockets systemd hands to this process, by sd_listen_fds(3).
size_t listener_handed_over(void);
/* The socket that was handed over if n_handed_over is 1, else one at `path`: a dead wattled's is replaced, a living
 * one's is -EADDRINUSE. Everybody may connect; what they may do is the policy's business. */
int listener_open(struct listener *ret_listener, size_t n_handed_over, const char *path, struct wattle_error *reterr);
// Removes the socket if it is still the one that was made.
void listener_close(struct listener *listener);

/* What systemd is told, by sd_notify(3): nothing where NOTIFY_SOCKET is not set. */

// "READY=1\nSTATUS=…": lines of VARIABLE=VALUE.
void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Two processes, each of which restores all limits when the other dies.
 *
 * The one that was started is the guard: it forks the one that serves before either has opened a device (NVML does
 * not survive a fork) and waits. When the serving one ends, however it ends, the guard restores what it left behind,
 * as every start does (cap_recover). When the guard is killed, the pipe between them breaks: the serving one restores
 * what clients hold, and ends; systemd starts both again. So neither has to start programs, and both can do without that
 * right. */

struct guard {
	pid_t pid;   // of the process that serves; 0: this is it
	int pipe_fd; // owned; the serving process writes once, when it is ready; the end of either closes its end
	int stop_fd; // owned; a signalfd: SIGTERM, SIGINT, SIGHUP, SIGQUIT
};

// Returns in both processes.
int guard_split(struct guard *ret_guard, struct wattle_error *reterr);
// In the serving process. `status` is what systemd shows.
void guard_tell_ready(struct guard *guard, const char *status);
// In the guard: returns the exit status of both, after the serving process's death and the restoring.
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
	int fd;  // owned: the ruleset; -1: the kernel has no Landlock
	int abi; // its version; negative errno
	/* The first rule that could not be added, for an existing path. Without its rule a path is closed; an allowed path that is
	 * closed can leave a power limit set that nobody can restore. */
	int error; // positive errno; 0: there is none
	char failed_path[128];
};

void landlock_begin(struct landlock *ret_landlock);
// Adds a rule; ignores a missing file and records any other failure. at_fd: folder that `path` is relative to and cannot leave; AT_FDCWD: as in open(2).
void landlock_allow(struct landlock *landlock, int at_fd, const char *path, enum file_use use);
/* Enforces the rules and closes *landlock. Returns 0 or a positive errno; ENOSYS, EOPNOTSUPP: the kernel has no Landlock. Enforces nothing
 * and returns landlock->error if a rule could not be added. */
int landlock_enforce(struct landlock *landlock);

/* What wattled gives away once it has opened what it needs, so that a fault in it is worth little: capabilities, new
 * programs, most system calls, all files but those it works with. If the kernel or a container refuses one of these, the report names
 * it and wattled runs without it. Rules for files that are only partly accepted are an error: they could close the journal of limits. */

struct cap_devices;
struct wattle_env;

struct sandbox_report {
	char text[400]; // what was given away and what could not be, for the log
	bool is_whole;
};

// Room for so many descriptors, no core dumps, files that others can't write to. At start, while it is still allowed.
void sandbox_limit_resources(size_t n_descriptors);
struct sandbox_needs {
	const struct wattle_env *env;
	const struct cap_devices *devices; // their registers stay writable
	/* The devices include an NVIDIA GPU: keep CAP_SYS_ADMIN, which its driver requires for setting a limit, and access to the driver's
	 * device files. Nothing else needs a capability: root owns the files that wattled reads and writes. */
	bool has_nvidia;
	const char *socket; // removed at the end by this process; "": none
};
/* Create the folder of the journal first: Landlock needs existing files. Negative errno with a sentence: a path that exists got no Landlock
 * rule; the process is not sandboxed and must not serve. */
int sandbox_enter(const struct sandbox_needs *needs, struct sandbox_report *ret_report, struct wattle_error *reterr);
