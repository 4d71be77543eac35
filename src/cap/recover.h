/* Puts back what dead owners left: the part that is shared by the next start, the guard, and who wants the device
 * next. */
#pragma once

#include "cap/lock.h"

struct recovery {
	const struct wattle_env *env;  // borrowed
	const struct journal *journal; // borrowed
	struct cap_devices *devices;   // borrowed; opened at need if `is_open` is false, and the caller's to close
	bool is_open;
	const struct cap_keeper *of; // the entries of this keeper only; NULL: of all
	bool is_dead;                // it surely is; else the lock is asked
	enum lock_patience patience;
	void (*tell)(void *data, const char *text); // NULL allowed
	void *data;
	size_t n_restored, n_left; // n_left: those of `of` that could not be put back
};

// All entries of the journal.
int recover_all(struct recovery *recovery);
// These, where the journal's folder has been removed, and they with it; else nothing.
void recover_told(struct recovery *recovery, const struct journal_entry *leases, size_t n);
/* One device, under byte 0 of its lock: 0: nobody has it now. -EBUSY with a sentence that names the owner who lives;
 * else why what a dead one left can't be put back. */
int recover_device(const struct journal *journal, const char *stem, struct cap_device *device,
	struct wattle_error *reterr);
// A user who may set limits has a journal of their own, and root's to look at: -EBUSY while a lease of root's is on the
// device.
int recover_refuse_roots(const struct wattle_env *env, const char *stem, struct wattle_error *reterr);
// -EBUSY with the sentence that names the owner of a lease.
int recover_refuse(const struct journal_entry *lease, struct wattle_error *reterr);
