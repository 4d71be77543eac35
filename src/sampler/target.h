/* The command: forked at once, held until the recorder is ready, then released into exec.
 *
 * Between fork and exec the child restores the signal mask and the SIGCHLD disposition that wattle was started with.
 * If the recorder dies before the release, the child exits without running anything. */
#pragma once

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum { TARGET_RING_SIZE = 256 };
enum { EXIT_OWN_FAILURE = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

struct target {
	pid_t pid;
	int hold_fd; // owned: a text written to it releases the command
	int exec_fd; // owned: carries the errno of a failed exec
	sigset_t original_mask;
	struct sigaction original_sigchld;
};

/* Forks; blocks all signals that the recorder will read from a signalfd. argv: NULL-terminated. environment: NULL-terminated
 * "NAME=VALUE", set for the command on top of what it inherits; a NAME that it inherits is replaced. */
int target_start(struct target *target, char *const *argv, char *const *environment, struct wattle_error *reterr);
// Releases it into exec, with WATTLE_RING set to `ring` if that is not "" (less than TARGET_RING_SIZE bytes). 0, or
// EXIT_NOT_FOUND / EXIT_NOT_EXECUTABLE with a message if exec failed; the child is gone then.
int target_release(struct target *target, const char *command, const char *ring, struct wattle_error *reterr);
// Gives up before release: the child ends without having run anything.
void target_abandon(struct target *target);
void target_signals(sigset_t *ret_set); // signals that the recorder handles: SIGCHLD and all that it passes on
/* Whether the command got the same signal, by its number and si_code: signals typed at a terminal go to the whole
 * foreground group. */
bool target_has_signal(int number, int code);
