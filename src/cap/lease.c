/* A lease: one device with one owner, which may die at any moment.
 *
 * State after the owner is killed (SIGKILL, out of memory) in or after each step, in order. "The guard" stands for the
 * guard or, if it was killed as well, for the next start of wattle or of the helper. All of them do the same
 * (recover.c).
 *
 *   lock        The kernel releases the lock. There is no entry and nothing was changed.
 *   journal     The entry has only `previous`. Nothing was changed, so nothing is written; the entry is removed.
 *   guard       From here on the guard waits. Nothing is written before it is ready. If the owner dies while the guard
 *               still opens the devices, the state is as above, and the guard finds the pidfd readable at once.
 *   next        The journal has `next`. The device may hold previous, next, or a mix over several registers. Registers
 *               that hold `next` are restored; the others already hold `previous`.
 *   write       As above. A write in progress is complete when the guard learns of the death: a task leaves the kernel
 *               before its pidfd or its locks show the exit. So no write of the owner can follow the guard's.
 *   read back   As above; a register that holds the rounded value of `next` counts as set by wattle.
 *   set         The journal has `set` and the device holds it. It is restored.
 *   restore     At the end. The device holds `previous`: nothing is written again, the entry is removed.
 *   strike      unlink is atomic: the entry is there (as above) or not (nothing is left).
 *
 * If the guard is killed, its socket closes and the owner starts another (cap_lease_check). If owner and guard are
 * killed, the entry stays with its lock byte free, and the next start of wattle finds both.
 *
 * Journal files are written under a temporary name, synced and renamed: after a power failure the old or the new file
 * exists, and the limit is gone because the driver lost it in the restart. The end is restore, verify, remove, in this
 * order: removing the entry first could leave an unknown limit after a death in between. */
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
	struct journal_entry entry; // as written to the journal
	char stem[JOURNAL_NAME_SIZE];
	int lock_fd; // owned; holds the lock on byte entry.token
};

/* ---- taking the lease ---- */

// A value that can't be read is assumed to be that of wattle's standing limit, if there is one.
static int find_previous(struct cap_lease *lease, struct wattle_error *reterr)
{
	struct journal_entry persistent;
	if (!cap_reads_back(lease->device) &&
		journal_read(&lease->journal, lease->stem, JOURNAL_PERSISTENT, &persistent, NULL) == 0 &&
		persistent.set.n > 0 && strcmp(persistent.boot_id, lease->entry.boot_id) == 0) {
		lease->entry.previous = persistent.set;
		cap_setting_bound(lease->device, &lease->entry.previous);
		return 0;
	}
	return cap_read(lease->device, &lease->entry.previous, reterr);
}

// Under byte 0 of the lock: of two concurrent callers one sees the other's entry.
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
		journal_remove(&lease->journal, JOURNAL_LEASE, &lease->entry);
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

/* ---- changing and checking ---- */

static int renew_guard(struct cap_lease *lease, struct wattle_error *reterr)
{
	if (lease->program.argv == NULL || (lease->guard != NULL && !guard_is_dead(lease->guard)))
		return 0;
	guard_end(&lease->program, lease->guard);
	lease->guard = NULL;
	int r = guard_start(&lease->program, &lease->journal, &lease->guard, reterr);
	guard_send(lease->guard, &lease->entry);
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
		"%s: another program changed the limit to %s meanwhile; it is left unchanged", lease->device->name,
		change_amount(lease->device, now, has));
	return error_set(reterr, -ESTALE, "%s", ret_outcome->text);
}

static const struct cap_setting *no_setting(const struct journal_entry *entry)
{
	return entry->set.n > 0 ? &entry->set : &entry->previous;
}

int cap_lease_set(struct cap_lease *lease, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct journal_entry *entry = &lease->entry;
	struct cap_setting now = *no_setting(entry), next;
	int r = renew_guard(lease, reterr);
	if (r == 0 && cap_reads_back(lease->device))
		r = cap_read(lease->device, &now, reterr);
	if (r < 0)
		return r;
	if (entry->set.n == 0 && entry->next.n == 0)
		entry->previous =
			now; // changed by another program since the lease was opened: this is the new previous value
	if (change_is_foreign(entry, lease->device, &now))
		return refuse_foreign(lease, &now, ret_outcome, reterr);
	r = cap_plan(lease->device, &entry->previous, value, &next, reterr);
	if (r < 0)
		return r;
	entry->next = next;
	guard_send(lease->guard, entry);
	r = change_apply(&lease->journal, JOURNAL_LEASE, entry, lease->device, &now, &next, ret_outcome, reterr);
	guard_send(lease->guard, entry);
	return r;
}

int cap_lease_check(struct cap_lease *lease, struct cap_outcome *ret_outcome)
{
	const struct journal_entry *entry = &lease->entry;
	struct cap_setting now = *no_setting(entry);
	struct wattle_error error = {0};
	struct cap_outcome outcome = {.previous = cap_value_of(lease->device, &entry->previous),
		.foreign = (double)NAN};
	int r = 0;
	renew_guard(lease, &error); // on failure the lease continues without a guard, and the outcome reports it
	if (cap_reads_back(lease->device))
		r = cap_read(lease->device, &now, &error);
	outcome.set = cap_value_of(lease->device, &now);
	text_copy(outcome.text, sizeof(outcome.text), error.text);
	if (r == 0 && !change_is_same(no_setting(entry), &now)) {
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

/* ---- ending the lease ---- */

static int remove_entry(struct cap_lease *lease)
{
	lease->entry.set.n = lease->entry.next.n = 0;
	guard_send(lease->guard, &lease->entry);
	return journal_remove(&lease->journal, JOURNAL_LEASE, &lease->entry);
}

// Reports that another process has already restored the previous value: for a dead owner's lease this may have been a
// guard.
static void describe_restored(const struct cap_lease *lease, struct cap_outcome *outcome)
{
	const struct journal_entry *entry = &lease->entry;
	char has[AMOUNT_SIZE];
	if (!cap_reads_back(lease->device) || outcome->was_foreign ||
		change_is_same(no_setting(entry), &entry->previous))
		return;
	outcome->was_foreign = true;
	outcome->foreign = outcome->set;
	snprintf(outcome->text, sizeof(outcome->text),
		"%s: another program changed the limit meanwhile, back to the previous %s",
		lease->device->name, change_amount(lease->device, &entry->previous, has));
}

int cap_lease_end(struct cap_lease *lease, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	int r = change_undo(&lease->entry, lease->device, ret_outcome, reterr);
	if (r == 0)
		describe_restored(lease, ret_outcome);
	if (r >= 0) {
		r = 0;
		int struck = remove_entry(lease);
		if (struck < 0)
			snprintf(ret_outcome->text, sizeof(ret_outcome->text),
				"%s: its limit was restored, but its journal entry can't be removed: %s",
				lease->device->name, strerror(-struck));
	}
	release(lease);
	return r;
}

/* The standing entry is written first, with the lease's token. If the owner dies in between, recovery sees from the
 * token that the limit was to be kept and removes only the lease entry. */
static int keep(struct cap_lease *lease, struct wattle_error *reterr)
{
	struct journal_entry persistent = lease->entry;
	struct cap_setting earlier;
	if (lease->entry.set.n == 0)
		return 0; // nothing was set: nothing to keep
	int r = persistent_inherit(&lease->journal, lease->stem, lease->device, &lease->entry.previous, &persistent,
		&earlier, reterr);
	return r < 0 ? r : journal_write(&lease->journal, JOURNAL_PERSISTENT, &persistent, reterr);
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
	remove_entry(lease);
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
