/* The library's end of the line to its recorder: lib/tracker_wire.h. */
#pragma once

#include "lib/tracker_wire.h"

#include <stddef.h>
#include <stdint.h>

struct tracker_word {
	struct tracker_message message;
	char *text; // owned by the caller of tracker_hear: message.size bytes and a NUL
};

// 0; -EPIPE: the recorder is gone.
int tracker_say(int fd, const char *word);
enum { TRACKER_TEXT_MOST = 1 << 30 };
/* Waits for the next message. A text longer than `most` is read and dropped: it is "" then. 0; -EPIPE: the recorder is gone;
 * -ETIMEDOUT; -EPROTO: it speaks another language; -ENOMEM. */
int tracker_hear(int fd, int64_t deadline_ns, size_t most, struct tracker_word *ret_word);
