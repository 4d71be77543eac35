/* Who holds a limit, in the two senses there are: the owner, whom people know and the journal names; and the keeper,
 * the process that has the lock and puts the limit back (the same one, but for the clients of the helper). */
#pragma once

#include "cap/lease.h"

enum { BOOT_ID_SIZE = 40 };

struct cap_keeper {
	pid_t pid;
	uint64_t start_ticks; // 0: could not be told
	uint64_t pid_ns;      // inode of its namespace: in another one the pid says nothing
};
void cap_keeper_self(struct cap_keeper *ret_keeper);
bool cap_keeper_is_self(const struct cap_keeper *keeper);
bool cap_keeper_is(const struct cap_keeper *a, const struct cap_keeper *b);
/* Whether it has ended for sure; false where that can't be told. The lock says so too, but for one case: a child that
 * it forked without exec has a copy of the lock, and may outlive it. */
bool cap_keeper_is_gone(const struct cap_keeper *keeper);
// Killed, or on its way out, and not there yet: its lock is about to go.
bool cap_keeper_is_dying(const struct cap_keeper *keeper);

// "wattle cap set, pid 4242, user alice"
void cap_owner_describe(const struct cap_owner *owner, char *out, size_t size);
// "" where the kernel does not tell.
void cap_boot_id(const struct wattle_env *env, char out[BOOT_ID_SIZE]);
