/* The command: forked at once, held until the recorder is ready, then let go into exec.
 *
 * Between fork and exec the child restores the signal mask and the SIGCHLD disposition that wattle was started with.
 * If the recorder dies before it lets go, the child ends without running anything. */
#pragma once

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum { TARGET_RING_SIZE = 256 };
enum { EXIT_OWN_FAILURE = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

struct target {
	pid_t pid;
	int hold_fd; // owned: a text written to it lets the command go
	int exec_fd; // owned: errno of a failed exec comes back here
	sigset_t original_mask;
	struct sigaction original_sigchld;
};

/* Forks; blocks all signals that the recorder will read from a signalfd. argv: NULL-terminated. environment: NULL-terminated
 * "NAME=VALUE", set for the command on top of what it inherits; a NAME that it inherits is replaced. */
int target_start(struct target *target, char *const *argv, char *const *environment, struct wattle_error *reterr);
// Lets it exec, with WATTLE_RING as `ring` says if that is not "" (less than TARGET_RING_SIZE bytes). 0, or EXIT_NOT_FOUND / EXIT_NOT_EXECUTABLE with a sentence if exec failed; the child is gone then.
int target_release(struct target *target, const char *command, const char *ring, struct wattle_error *reterr);
// Gives up before release: the child ends without having run anything.
void target_abandon(struct target *target);
void target_signals(sigset_t *ret_set); // what the recorder takes: SIGCHLD and all that it passes on
/* Whether the command got it as we did, by its number and si_code: what is typed at a terminal goes to the whole
 * foreground group. */
bool target_has_signal(int number, int code);
