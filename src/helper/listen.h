/* The socket that clients come to: made here, or handed over by systemd. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

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
