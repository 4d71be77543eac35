/* Protocol between a tracker and the recorder it spawned, over a stream socket: a struct tracker_message, then `size`
 * bytes.
 *
 *   recorder -> library   file    PATH of the run file, once created
 *                         ready   RING: the first sample is taken; value for WATTLE_RING, "" if there is no ring
 *                         report  JSON: the run file is complete and this is its report; the recorder then exits
 *                         error   `code` and TEXT: nothing is recorded or the run can't be read back; it then exits
 *   library -> recorder   stop
 *                         ended   struct tracker_ended: the process was waited for; holds the kernel's accounting of it
 *                                 (sent by the parent of the process: the Slurm plugin)
 *
 * If the library's process closes its end and lives on (exec, closefrom), the recording continues until the tracked
 * process ends. When the library's own process ends, the recording ends as well, whichever process is tracked. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tracker_message {
	char word[8]; // NUL-padded
	int32_t code; // for "error": negative errno; else 0
	uint32_t reserved;
	uint64_t size;
};
static_assert(sizeof(struct tracker_message) == 24, "fixed size: library and recorder may have different versions");

struct tracker_ended {
	int32_t wait_status; // as returned by wait()
	uint32_t reserved;
	// Sums over the process and all descendants that were waited for, since its fork.
	int64_t user_us, system_us, minor_faults, major_faults, blocks_in, blocks_out, voluntary_switches,
		involuntary_switches;
};

// `word` has at most 7 bytes.
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

/* The library's end of the socket to its recorder: lib/tracker_wire.h. */

struct tracker_reply {
	struct tracker_message message;
	char *text; // owned by the caller of tracker_receive: message.size bytes and a NUL
};

// 0; -EPIPE: the recorder is gone.
int tracker_send(int fd, const char *word);
enum { TRACKER_TEXT_MAX = 1 << 30 };
/* Waits for the next message. A text longer than `most` is read and dropped: ret_word->text is "" then. 0; -EPIPE: the
 * recorder is gone; -ETIMEDOUT; -EPROTO: protocol mismatch; -ENOMEM. */
int tracker_receive(int fd, int64_t deadline_ns, size_t most, struct tracker_reply *ret_word);
