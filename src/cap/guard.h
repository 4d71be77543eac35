/* The guard of lease.h, from its owner's side. */
#pragma once

#include "cap/journal.h"

struct cap_guard;

/* Started and ready: it has the owner's pidfd, the journal and the devices open. The owner is this process. With
 * program->shared it may be one that runs already. */
int guard_start(const struct cap_guard_program *program, const struct journal *journal, struct cap_guard **ret_guard,
	struct wattle_error *reterr);
int guard_fd(const struct cap_guard *guard); // readable: it died
/* What the journal has of a lease, or (neither set nor next) that it has ended: the guard's memory of it, for where
 * somebody has removed the journal's folder meanwhile. NULL allowed. */
void guard_tell(const struct cap_guard *guard, const struct journal_entry *lease);
bool guard_is_dead(const struct cap_guard *guard);
// One lease less; with its last one the guard is told that all is well, and goes. NULL allowed.
void guard_end(const struct cap_guard_program *program, struct cap_guard *guard);
// In a forked child: closes the copy of its descriptor.
void guard_disown(struct cap_guard *guard);

/* A guard that is the owner of a limit for some time. */
int guard_hold_for(const struct cap_guard_program *program, const struct journal *journal,
	const struct cap_device *device, const struct cap_owner *owner, double value, int64_t for_ns,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);
