/* A lease: one device, one owner who may die at any moment.
 *
 * What follows if the owner is killed (SIGKILL, out of memory) after each step, in their order; "the guard" stands for
 * the guard, or, where that was killed too, the next start of wattle or of the helper. All of them do the same
 * (recover.c).
 *
 *   lock        The kernel drops it. There is no entry, nothing was changed: nothing is left.
 *   journal     An entry with `previous` alone. Nothing was changed, so nothing is written; the entry is struck.
 *   guard       From here on it waits. Before it is ready nothing is written, so an owner that dies while its guard
 *               still opens the devices leaves what the line above says; and the guard finds the pidfd readable at its
 *               first look.
 *   next        The journal knows `next`. The device may hold previous, next, or, of several registers, some of each.
 *               Each that holds `next` goes back, the others hold `previous` already.
 *   write       The same. A write in flight is over when the guard learns of the death: a task leaves the kernel
 *               before its pidfd or its locks tell. So no write of the owner can follow the guard's.
 *   read back   The same; hardware rounds, and a register that holds what `next` is rounded to counts as ours.
 *   set         The journal knows `set`, and the device holds it. It goes back.
 *   restore     At the end. The device holds `previous`: nothing is written a second time, the entry is struck.
 *   strike      unlink is one step: the entry is there (line above) or not (nothing is left).
 *
 * And if the guard is killed: its socket says so to the owner, which starts another (cap_lease_check). Owner and guard
 * together: the entry stays, its byte of the lock is free, and whoever starts next finds both.
 *
 * Journal files are written beside, synced, and renamed: after a power cut there is one or the other, and after the
 * restart that follows, the limit is gone with the driver's memory of it. The end is restore, verify, strike, in this
 * order: struck first, a death in between would leave a limit of which nobody knows. */
#include "cap/lease.h"

#include "base/util.h"
#include "cap/internal.h"
#include "cap/journal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct cap_lease {
	const struct wattle_env *env; // borrowed
	struct cap_device *device;    // borrowed
	struct cap_guard_program program;
	struct cap_guard *guard; // owned; NULL: none
	struct journal journal;
	struct journal_entry entry; // as it is in the journal
	char stem[JOURNAL_NAME_SIZE];
	int lock_fd; // owned; has the byte entry.token
};

/* ---- begin ---- */

// What can't be read is as wattle's standing limit left it, if there is one.
static int find_previous(struct cap_lease *lease, struct wattle_error *reterr)
{
	struct journal_entry standing;
	if (!cap_reads_back(lease->device) &&
		journal_read(&lease->journal, lease->stem, JOURNAL_STANDING, &standing, NULL) == 0 &&
		standing.set.n > 0 && strcmp(standing.boot_id, lease->entry.boot_id) == 0) {
		lease->entry.previous = standing.set;
		cap_setting_bound(lease->device, &lease->entry.previous);
		return 0;
	}
	return cap_read(lease->device, &lease->entry.previous, reterr);
}

// Under byte 0 of the lock, so that of two who come at once one sees the other's entry.
static int enter(struct cap_lease *lease, struct wattle_error *reterr)
{
	int r = recover_refuse_roots(lease->env, lease->stem, reterr);
	if (r == 0)
		r = recover_device(&lease->journal, lease->stem, lease->device, reterr);
	if (r == 0)
		r = find_previous(lease, reterr);
	if (r < 0)
		return r;
	r = lock_keep(lease->lock_fd, &lease->entry.token);
	if (r < 0)
		return error_set(reterr, r, "can't lock %s/%s.lock: %s", lease->journal.path, lease->stem,
			strerror(-r));
	return journal_write(&lease->journal, JOURNAL_LEASE, &lease->entry, reterr);
}

static void describe(struct cap_lease *lease, const struct cap_owner *owner, bool timed)
{
	struct journal_entry *entry = &lease->entry;
	text_copy(entry->device, sizeof(entry->device), lease->device->name);
	text_copy(entry->id, sizeof(entry->id), lease->device->id);
	entry->what = lease->device->what;
	entry->since_unix_s = env_wall_ns(lease->env) / NS_PER_S;
	entry->owner = *owner;
	entry->timed = timed;
	cap_boot_id(lease->env, entry->boot_id);
	cap_keeper_self(&entry->keeper);
	journal_stem(entry->id, entry->what, lease->stem);
}

static void release(struct cap_lease *lease)
{
	guard_end(&lease->program, lease->guard);
	if (lease->lock_fd >= 0)
		close(lease->lock_fd);
	journal_close(&lease->journal);
	free(lease);
}

static int begin(struct cap_lease *lease, struct wattle_error *reterr)
{
	int r = journal_open(lease->env, true, &lease->journal, reterr);
	if (r == 0)
		r = lock_take(&lease->journal, lease->stem, LOCK_WAIT, &lease->lock_fd, reterr);
	if (r < 0)
		return r;
	r = enter(lease, reterr);
	lock_drop(lease->lock_fd);
	if (r < 0 || lease->program.argv == NULL)
		return r;
	r = guard_start(&lease->program, &lease->journal, &lease->guard, reterr);
	if (r < 0)
		journal_strike(&lease->journal, JOURNAL_LEASE, &lease->entry);
	return r;
}

int lease_open_as(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner, bool timed,
	const struct cap_guard_program *guard, struct cap_lease **ret_lease, struct wattle_error *reterr)
{
	struct cap_lease *lease = calloc(1, sizeof(*lease));
	if (lease == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	*lease = (struct cap_lease){.env = env, .device = device, .journal = {.fd = -1}, .lock_fd = -1};
	if (guard != NULL)
		lease->program = *guard;
	describe(lease, owner, timed);
	int r = begin(lease, reterr);
	if (r < 0)
		release(lease);
	else
		*ret_lease = lease;
	return r;
}

int cap_lease_open(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner,
	const struct cap_guard_program *guard, struct cap_lease **ret_lease, struct wattle_error *reterr)
{
	return lease_open_as(env, device, owner, false, guard, ret_lease, reterr);
}

/* ---- meanwhile ---- */

static int renew_guard(struct cap_lease *lease, struct wattle_error *reterr)
{
	if (lease->program.argv == NULL || (lease->guard != NULL && !guard_is_dead(lease->guard)))
		return 0;
	guard_end(&lease->program, lease->guard);
	lease->guard = NULL;
	int r = guard_start(&lease->program, &lease->journal, &lease->guard, reterr);
	guard_tell(lease->guard, &lease->entry);
	return r;
}

static int refuse_foreign(const struct cap_lease *lease, const struct cap_setting *now, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	char has[AMOUNT_SIZE];
	*ret_outcome = (struct cap_outcome){
		.previous = cap_value_of(lease->device, &lease->entry.previous),
		.set = cap_value_of(lease->device, now),
		.was_foreign = true,
		.foreign = cap_value_of(lease->device, now),
	};
	snprintf(ret_outcome->text, sizeof(ret_outcome->text),
		"%s: somebody else has changed the limit meanwhile, to %s; it is left alone", lease->device->name,
		change_amount(lease->device, now, has));
	return error_set(reterr, -ESTALE, "%s", ret_outcome->text);
}

static const struct cap_setting *blind_now(const struct journal_entry *entry)
{
	return entry->set.n > 0 ? &entry->set : &entry->previous;
}

int cap_lease_set(struct cap_lease *lease, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct journal_entry *entry = &lease->entry;
	struct cap_setting now = *blind_now(entry), next;
	int r = renew_guard(lease, reterr);
	if (r == 0 && cap_reads_back(lease->device))
		r = cap_read(lease->device, &now, reterr);
	if (r < 0)
		return r;
	if (entry->set.n == 0 && entry->next.n == 0)
		entry->previous =
			now; // changed since the lease was opened, and not by us: this is what was there before
	if (change_is_foreign(entry, lease->device, &now))
		return refuse_foreign(lease, &now, ret_outcome, reterr);
	r = cap_plan(lease->device, &entry->previous, value, &next, reterr);
	if (r < 0)
		return r;
	entry->next = next;
	guard_tell(lease->guard, entry);
	r = change_apply(&lease->journal, JOURNAL_LEASE, entry, lease->device, &now, &next, ret_outcome, reterr);
	guard_tell(lease->guard, entry);
	return r;
}

int cap_lease_check(struct cap_lease *lease, struct cap_outcome *ret_outcome)
{
	const struct journal_entry *entry = &lease->entry;
	struct cap_setting now = *blind_now(entry);
	struct wattle_error error = {0};
	struct cap_outcome outcome = {.previous = cap_value_of(lease->device, &entry->previous),
		.foreign = (double)NAN};
	int r = 0;
	renew_guard(lease, &error); // without one the lease goes on, and that is told
	if (cap_reads_back(lease->device))
		r = cap_read(lease->device, &now, &error);
	outcome.set = cap_value_of(lease->device, &now);
	text_copy(outcome.text, sizeof(outcome.text), error.text);
	if (r == 0 && !change_is_same(blind_now(entry), &now)) {
		refuse_foreign(lease, &now, &outcome, NULL);
		r = 1;
	}
	*ret_outcome = outcome;
	return r;
}

int cap_lease_guard_fd(const struct cap_lease *lease)
{
	return lease->guard != NULL ? guard_fd(lease->guard) : -1;
}

void cap_lease_disown(struct cap_lease *lease)
{
	if (lease == NULL)
		return;
	guard_disown(lease->guard);
	close(lease->lock_fd);
	journal_close(&lease->journal);
	free(lease);
}

/* ---- end ---- */

static int strike(struct cap_lease *lease)
{
	lease->entry.set.n = lease->entry.next.n = 0;
	guard_tell(lease->guard, &lease->entry);
	return journal_strike(&lease->journal, JOURNAL_LEASE, &lease->entry);
}

// To what was there before: then there is nothing to undo. Of a dead owner's lease it could have been a guard.
static void tell_put_back(const struct cap_lease *lease, struct cap_outcome *outcome)
{
	const struct journal_entry *entry = &lease->entry;
	char has[AMOUNT_SIZE];
	if (!cap_reads_back(lease->device) || outcome->was_foreign ||
		change_is_same(blind_now(entry), &entry->previous))
		return;
	outcome->was_foreign = true;
	outcome->foreign = outcome->set;
	snprintf(outcome->text, sizeof(outcome->text),
		"%s: somebody else has changed the limit meanwhile, back to the %s that were there before",
		lease->device->name, change_amount(lease->device, &entry->previous, has));
}

int cap_lease_end(struct cap_lease *lease, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	int r = change_undo(&lease->entry, lease->device, ret_outcome, reterr);
	if (r == 0)
		tell_put_back(lease, ret_outcome);
	if (r >= 0) {
		r = 0;
		int struck = strike(lease);
		if (struck < 0)
			snprintf(ret_outcome->text, sizeof(ret_outcome->text),
				"%s has its limit back, but its entry in the journal can't be removed: %s",
				lease->device->name, strerror(-struck));
	}
	release(lease);
	return r;
}

/* The standing entry comes first, with the lease's token: found beside a lease of a dead owner it says that this one
 * was to be kept, and only its own entry is to be struck. */
static int keep(struct cap_lease *lease, struct wattle_error *reterr)
{
	struct journal_entry standing = lease->entry;
	struct cap_setting stood;
	if (lease->entry.set.n == 0)
		return 0; // nothing was set: nothing to keep
	int r = standing_inherit(&lease->journal, lease->stem, lease->device, &lease->entry.previous, &standing, &stood,
		reterr);
	return r < 0 ? r : journal_write(&lease->journal, JOURNAL_STANDING, &standing, reterr);
}

int cap_lease_keep(struct cap_lease *lease, struct wattle_error *reterr)
{
	int r = lock_retake(lease->lock_fd, LOCK_WAIT);
	if (r < 0)
		error_set(reterr, r, "can't lock %s/%s.lock: %s", lease->journal.path, lease->stem, strerror(-r));
	else
		r = keep(lease, reterr);
	lock_drop(lease->lock_fd);
	if (r < 0) {
		struct cap_outcome outcome;
		cap_lease_end(lease, &outcome, NULL);
		return r;
	}
	strike(lease);
	release(lease);
	return 0;
}

static bool find_holder(const struct journal *journal, const char *stem, struct journal_entry *ret_lease)
{
	return journal_read(journal, stem, JOURNAL_LEASE, ret_lease, NULL) == 0 &&
		lock_is_kept(journal, stem, ret_lease);
}

bool cap_lease_holder(const struct wattle_env *env, const struct cap_device *device, struct cap_owner *ret_owner,
	char *ret_text, size_t size)
{
	struct journal journal;
	struct journal_entry lease;
	char stem[JOURNAL_NAME_SIZE];
	bool is_held = false;
	journal_stem(device->id, device->what, stem);
	if (journal_open(env, false, &journal, NULL) == 0) {
		is_held = find_holder(&journal, stem, &lease);
		journal_close(&journal);
	}
	if (!is_held && journal_open_of_root(env, &journal) == 0) {
		is_held = find_holder(&journal, stem, &lease);
		journal_close(&journal);
	}
	if (!is_held)
		return false;
	*ret_owner = lease.owner;
	cap_owner_describe(&lease.owner, ret_text, size);
	return true;
}
