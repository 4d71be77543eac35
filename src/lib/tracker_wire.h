/* What a tracker and the recorder that it spawned say to each other over a stream socket: a struct tracker_message, then
 * `size` bytes.
 *
 *   recorder -> library   file    PATH of the run file, as it was made
 *                         ready   RING: the first sample is taken; what WATTLE_RING is to be, "" if there is no ring
 *                         report  JSON: the run file is whole, and this is its report; then the recorder ends
 *                         error   `code` and TEXT: nothing is recorded, or what was recorded can't be read back; likewise
 *   library -> recorder   stop
 *                         ended   struct tracker_ended: the process was waited for, and this is what the kernel said of it (from
 *                                 who is its parent: the plugin for Slurm)
 *
 * The library's process may close its end and live on (exec, closefrom): the recording then goes on until the process
 * that is tracked has ended. When the library's own process ends, so does the recording, whatever is tracked. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tracker_message {
	char word[8]; // NUL-padded
	int32_t code; // of "error": negative errno; else 0
	uint32_t reserved;
	uint64_t size;
};
static_assert(sizeof(struct tracker_message) == 24, "a library may meet a recorder of another version");

struct tracker_ended {
	int32_t wait_status; // as of wait()
	uint32_t reserved;
	// Of the process and of all descendants that were waited for, since its fork.
	int64_t user_us, system_us, minor_faults, major_faults, blocks_in, blocks_out, voluntary_switches,
		involuntary_switches;
};

// word: at most 7 bytes.
static inline struct tracker_message tracker_message(const char *word, int code, size_t size)
{
	struct tracker_message message = {.code = code, .size = size};
	strncpy(message.word, word, sizeof(message.word) - 1);
	return message;
}

static inline int tracker_message_is(const struct tracker_message *message, const char *word)
{
	return strncmp(message->word, word, sizeof(message->word)) == 0;
}

/* The library's end of the line to its recorder: lib/tracker_wire.h. */

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
