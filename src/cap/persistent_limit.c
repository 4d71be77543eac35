/* Persistent limits. They have no living owner and so no guard. The journal keeps the value from before the first of
 * them for `wattle cap reset`. The steps are those of a lease (lease.c), and a death between them leaves the same
 * state: an entry with both the previous and the planned value. */
#include "base/cleanup.h"
#include "base/util.h"
#include "cap/internal.h"
#include "cap/journal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GOING_MS = 10000 }; // restoring takes milliseconds, but seconds if NVML sleeps

struct locked_entry { // a device's journal entry, with byte 0 of its lock held
	struct journal journal;
	char stem[JOURNAL_NAME_SIZE];
	int lock_fd;
};

static void leave(struct locked_entry *locked_entry)
{
	if (locked_entry->lock_fd >= 0) {
		lock_drop(locked_entry->lock_fd);
		close(locked_entry->lock_fd);
	}
	journal_close(&locked_entry->journal);
}

static int enter(struct locked_entry *locked_entry, const struct wattle_env *env, struct cap_device *device,
	struct wattle_error *reterr)
{
	*locked_entry = (struct locked_entry){.journal = {.fd = -1}, .lock_fd = -1};
	journal_stem(device->id, device->what, locked_entry->stem);
	int r = recover_refuse_roots(env, locked_entry->stem, reterr);
	if (r == 0)
		r = journal_open(env, true, &locked_entry->journal, reterr);
	if (r == 0)
		r = lock_take(&locked_entry->journal, locked_entry->stem, LOCK_WAIT, &locked_entry->lock_fd, reterr);
	if (r == 0)
		r = recover_device(&locked_entry->journal, locked_entry->stem, device, reterr);
	return r;
}

/* ---- set ---- */

static void describe(const struct wattle_env *env, const struct cap_device *device, const struct cap_owner *owner,
	const struct cap_setting *now, struct journal_entry *entry)
{
	*entry = (struct journal_entry){.what = device->what,
		.owner = *owner,
		.since_unix_s = env_wall_ns(env) / NS_PER_S,
		.previous = *now};
	text_copy(entry->device, sizeof(entry->device), device->name);
	text_copy(entry->id, sizeof(entry->id), device->id);
	cap_boot_id(env, entry->boot_id);
	cap_keeper_self(&entry->keeper);
}

/* The value before wattle's first change: taken from the standing entry, unless that is from another boot or another
 * program has set a limit since, which then is the previous value. */
int persistent_inherit(const struct journal *journal, const char *stem, const struct cap_device *device,
	const struct cap_setting *now, struct journal_entry *entry, struct cap_setting *ret_set,
	struct wattle_error *reterr)
{
	struct journal_entry before;
	*ret_set = (struct cap_setting){0};
	int r = journal_read(journal, stem, JOURNAL_PERSISTENT, &before, reterr);
	if (r == -EBADMSG)
		r = journal_put_aside(journal, stem, JOURNAL_PERSISTENT) < 0 ? r : -ENOENT;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (strcmp(before.boot_id, entry->boot_id) != 0 || change_is_foreign(&before, device, now))
		return 0;
	entry->previous = before.previous;
	cap_setting_bound(device, &entry->previous);
	if (entry->owner.uid != 0) // the user who may reset to it: the first owner, or root
		entry->owner = before.owner;
	*ret_set = before.set;
	return 0;
}

static int write_persistent(const struct wattle_env *env, const struct locked_entry *locked_entry,
	struct cap_device *device, const struct cap_owner *owner, double value, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct journal_entry entry;
	struct cap_setting now, next;
	int r = cap_read(device, &now, reterr);
	if (r < 0)
		return r;
	describe(env, device, owner, &now, &entry);
	r = persistent_inherit(&locked_entry->journal, locked_entry->stem, device, &now, &entry, &entry.set, reterr);
	if (!cap_reads_back(device) && entry.set.n > 0)
		now = entry.set;
	if (r == 0)
		r = cap_plan(device, &entry.previous, value, &next, reterr);
	if (r == 0)
		r = change_apply(&locked_entry->journal, JOURNAL_PERSISTENT, &entry, device, &now, &next, ret_outcome,
			reterr);
	bool is_as_before = entry.next.n == 0 &&
		(entry.set.n == 0 || (cap_reads_back(device) && change_is_same(&entry.previous, &entry.set)));
	if (is_as_before) // a reset would change nothing
		journal_remove(&locked_entry->journal, JOURNAL_PERSISTENT, &entry);
	return r;
}

int cap_set_persistent(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner,
	double value, int64_t for_ns, const struct cap_guard_program *guard, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct locked_entry locked_entry;
	int r;
	if (for_ns > 0) {
		struct journal journal;
		r = journal_open(env, true, &journal, reterr);
		if (r < 0)
			return r;
		r = guard_hold_for(guard, &journal, device, owner, value, for_ns, ret_outcome, reterr);
		journal_close(&journal);
		return r;
	}
	r = enter(&locked_entry, env, device, reterr);
	if (r == 0)
		r = write_persistent(env, &locked_entry, device, owner, value, ret_outcome, reterr);
	leave(&locked_entry);
	return r;
}

/* ---- reset ---- */

/* Asks a guard that only waits for the end of its time to exit, which restores the previous limit. The pidfd is opened
 * before the identity is compared, so the signal reaches the guard named in the journal or no process. */
int persistent_end_timed(const struct wattle_env *env, const struct cap_device *device, struct wattle_error *reterr)
{
	struct journal journal;
	struct journal_entry lease;
	char stem[JOURNAL_NAME_SIZE];
	if (journal_open(env, false, &journal, NULL) < 0)
		return 0;
	journal_stem(device->id, device->what, stem);
	int r = journal_read(&journal, stem, JOURNAL_LEASE, &lease, NULL);
	bool is_kept = r == 0 && lease.timed && lock_is_kept(&journal, stem, &lease);
	journal_close(&journal);
	if (!is_kept)
		return 0;
	wattle_cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, lease.keeper.pid, 0);
	if (pidfd < 0 || cap_keeper_is_gone(&lease.keeper))
		return 0;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
		return errno == ESRCH ? 0
				      : error_set(reterr, -errno, "%s: can't end its limit (pid %d): %s", device->name,
						(int)lease.keeper.pid, strerror(errno));
	while (poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, GOING_MS) < 0 && errno == EINTR)
		continue;
	return 1;
}

static int to_default_setting(const struct locked_entry *locked_entry, struct cap_device *device,
	struct journal_entry *persistent, bool is_persistent, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct cap_setting now, usual;
	int r = cap_read(device, &now, reterr);
	if (r == 0)
		r = cap_default_setting(device, &now, &usual, reterr);
	if (r < 0)
		return r;
	if (!is_persistent)
		persistent->previous = now;
	r = change_apply(&locked_entry->journal, JOURNAL_PERSISTENT, persistent, device, &now, &usual, ret_outcome,
		reterr);
	if (r < 0 && !is_persistent && persistent->next.n == 0)
		journal_remove(&locked_entry->journal, JOURNAL_PERSISTENT, persistent); // nothing was changed
	if (r < 0)
		return r;
	ret_outcome->previous = cap_value_of(device, &now);
	return journal_remove(&locked_entry->journal, JOURNAL_PERSISTENT, persistent);
}

static int to_previous(const struct locked_entry *locked_entry, struct cap_device *device,
	const struct journal_entry *persistent, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	char back[AMOUNT_SIZE];
	int r = change_undo(persistent, device, ret_outcome, reterr);
	if (r < 0)
		return r;
	if (!ret_outcome->was_foreign)
		snprintf(ret_outcome->text, sizeof(ret_outcome->text), "%s: restored to %s", device->name,
			change_amount(device, &persistent->previous, back));
	return journal_remove(&locked_entry->journal, JOURNAL_PERSISTENT, persistent);
}

static void ignore_message(struct cap_device *device, bool was_timed, struct cap_outcome *ret_outcome)
{
	struct cap_setting now = {0};
	char has[AMOUNT_SIZE];
	cap_read(device, &now, NULL);
	*ret_outcome = (struct cap_outcome){.previous = (double)NAN,
		.set = cap_value_of(device, &now),
		.foreign = (double)NAN,
		.was_nothing = !was_timed};
	if (was_timed)
		snprintf(ret_outcome->text, sizeof(ret_outcome->text), "%s: restored to %s", device->name,
			change_amount(device, &now, has));
	else
		snprintf(ret_outcome->text, sizeof(ret_outcome->text),
			"%s: wattle has set no limit on it, nothing to reset; --default sets its default limit",
			device->name);
}

static int reset(const struct wattle_env *env, const struct locked_entry *locked_entry, struct cap_device *device,
	bool to_default, bool was_timed, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct journal_entry persistent;
	struct cap_owner self;
	int r = journal_read(&locked_entry->journal, locked_entry->stem, JOURNAL_PERSISTENT, &persistent, reterr);
	bool is_persistent = r == 0;
	if (r < 0 && r != -ENOENT && !to_default)
		return r;
	if (to_default && !is_persistent) {
		cap_owner_self("wattle cap reset", &self);
		describe(env, device, &self, &(struct cap_setting){0}, &persistent);
	}
	if (to_default)
		return to_default_setting(locked_entry, device, &persistent, is_persistent, ret_outcome, reterr);
	if (is_persistent)
		cap_setting_bound(device, &persistent.previous);
	if (is_persistent)
		return to_previous(locked_entry, device, &persistent, ret_outcome, reterr);
	ignore_message(device, was_timed, ret_outcome);
	return 0;
}

int cap_reset(const struct wattle_env *env, struct cap_device *device, bool to_default, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct locked_entry locked_entry;
	int was_timed = persistent_end_timed(env, device, reterr);
	if (was_timed < 0)
		return was_timed;
	int r = enter(&locked_entry, env, device, reterr);
	if (r == 0)
		r = reset(env, &locked_entry, device, to_default, was_timed > 0, ret_outcome, reterr);
	leave(&locked_entry);
	return r;
}
