/* The line between a tracker (src/lib/tracker.c) and the recorder that it spawned: `wattle attach --control-fd N …`, for
 * libraries and not in --help. N is a connected stream socket; what the recorder would say on stderr before it records
 * goes there. What is said: lib/tracker_wire.h. With `… PID CMD ARG…` the process has not executed CMD yet and does so after
 * "ready": so the plugin for Slurm (src/spank) starts it. */
#pragma once

#include "base/error.h"
#include "lib/tracker_wire.h"

#include <stdbool.h>
#include <stddef.h>

struct control {
	int fd;                     // owned: the socket
	int peer_fd;                // owned: pidfd of the library's process
	int watch_fd;               // owned: an epoll of both, readable when control_read is to be called
	bool has_ended;             // the process was waited for …
	struct tracker_ended ended; // … and this is what is known of it
};

// Takes the descriptor; `text` is what stood after --control-fd. -EINVAL: no connected socket of that number.
int control_open(struct control *control, const char *text, struct wattle_error *reterr);
void control_close(struct control *control);
// True: the recording is to end.
bool control_read(struct control *control);
// Where nobody listens any more, nothing happens.
void control_say(const struct control *control, const char *word, int code, const char *bytes, size_t size);
// The error goes to the library, or to stderr where control is NULL. Returns status.
int control_refuse(const struct control *control, int status, const struct wattle_error *error);
