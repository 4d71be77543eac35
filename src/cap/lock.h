/* The two things that STEM.lock locks, both as OFD locks, which the kernel drops with the last descriptor of whoever
 * died.
 *
 * Byte 0, for moments: who reads the journal of a device and changes it. Byte `token`, for a lease's life: its keeper
 * has it. Each lease has a byte of its own, because a child that was forked without exec shares its parent's locks and
 * may outlive it: what it still has locked then says nothing of the next lease. */
#pragma once

#include "cap/journal.h"

enum lock_patience {
	LOCK_TRY,   // not at all
	LOCK_WAIT,  // some seconds; it is held for as long as hardware takes
	LOCK_SLEEP, // until it is free: for the guard, which has nothing else to do
};

// Opens STEM.lock and takes byte 0. *ret_fd is the caller's. -EBUSY with a sentence.
int lock_take(const struct journal *journal, const char *stem, enum lock_patience patience, int *ret_fd,
	struct wattle_error *reterr);
int lock_retake(int fd, enum lock_patience patience); // byte 0 again, with an open descriptor of lock_take
void lock_drop(int fd); // byte 0; the descriptor stays open
// Takes the byte of a new lease, with an open descriptor of lock_take.
int lock_keep(int fd, int64_t *ret_token);
// Whether the keeper of a lease lives: its byte is locked, and it has not ended for sure.
bool lock_is_kept(const struct journal *journal, const char *stem, const struct journal_entry *lease);
