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

struct place { // a device's journal entry, with byte 0 of its lock held
	struct journal journal;
	char stem[JOURNAL_NAME_SIZE];
	int lock_fd;
};

static void leave(struct place *place)
{
	if (place->lock_fd >= 0) {
		lock_drop(place->lock_fd);
		close(place->lock_fd);
	}
	journal_close(&place->journal);
}

static int enter(struct place *place, const struct wattle_env *env, struct cap_device *device,
	struct wattle_error *reterr)
{
	*place = (struct place){.journal = {.fd = -1}, .lock_fd = -1};
	journal_stem(device->id, device->what, place->stem);
	int r = recover_refuse_roots(env, place->stem, reterr);
	if (r == 0)
		r = journal_open(env, true, &place->journal, reterr);
	if (r == 0)
		r = lock_take(&place->journal, place->stem, LOCK_WAIT, &place->lock_fd, reterr);
	if (r == 0)
		r = recover_device(&place->journal, place->stem, device, reterr);
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
int standing_inherit(const struct journal *journal, const char *stem, const struct cap_device *device,
	const struct cap_setting *now, struct journal_entry *entry, struct cap_setting *ret_set,
	struct wattle_error *reterr)
{
	struct journal_entry before;
	*ret_set = (struct cap_setting){0};
	int r = journal_read(journal, stem, JOURNAL_STANDING, &before, reterr);
	if (r == -EBADMSG)
		r = journal_put_aside(journal, stem, JOURNAL_STANDING) < 0 ? r : -ENOENT;
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

static int stand(const struct wattle_env *env, const struct place *place, struct cap_device *device,
	const struct cap_owner *owner, double value, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct journal_entry entry;
	struct cap_setting now, next;
	int r = cap_read(device, &now, reterr);
	if (r < 0)
		return r;
	describe(env, device, owner, &now, &entry);
	r = standing_inherit(&place->journal, place->stem, device, &now, &entry, &entry.set, reterr);
	if (!cap_reads_back(device) && entry.set.n > 0)
		now = entry.set;
	if (r == 0)
		r = cap_plan(device, &entry.previous, value, &next, reterr);
	if (r == 0)
		r = change_apply(&place->journal, JOURNAL_STANDING, &entry, device, &now, &next, ret_outcome, reterr);
	bool is_as_before = entry.next.n == 0 &&
		(entry.set.n == 0 || (cap_reads_back(device) && change_is_same(&entry.previous, &entry.set)));
	if (is_as_before) // a reset would change nothing
		journal_strike(&place->journal, JOURNAL_STANDING, &entry);
	return r;
}

int cap_stand(const struct wattle_env *env, struct cap_device *device, const struct cap_owner *owner, double value,
	int64_t for_ns, const struct cap_guard_program *guard, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct place place;
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
	r = enter(&place, env, device, reterr);
	if (r == 0)
		r = stand(env, &place, device, owner, value, ret_outcome, reterr);
	leave(&place);
	return r;
}

/* ---- reset ---- */

/* Asks a guard that only waits for the end of its time to exit, which restores the previous limit. The pidfd is opened
 * before the identity is compared, so the signal reaches the guard named in the journal or no process. */
int standing_end_timed(const struct wattle_env *env, const struct cap_device *device, struct wattle_error *reterr)
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

static int to_default_setting(const struct place *place, struct cap_device *device, struct journal_entry *standing,
	bool is_standing, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct cap_setting now, usual;
	int r = cap_read(device, &now, reterr);
	if (r == 0)
		r = cap_default_setting(device, &now, &usual, reterr);
	if (r < 0)
		return r;
	if (!is_standing)
		standing->previous = now;
	r = change_apply(&place->journal, JOURNAL_STANDING, standing, device, &now, &usual, ret_outcome, reterr);
	if (r < 0 && !is_standing && standing->next.n == 0)
		journal_strike(&place->journal, JOURNAL_STANDING, standing); // nothing was changed
	if (r < 0)
		return r;
	ret_outcome->previous = cap_value_of(device, &now);
	return journal_strike(&place->journal, JOURNAL_STANDING, standing);
}

static int to_previous(const struct place *place, struct cap_device *device, const struct journal_entry *standing,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	char back[AMOUNT_SIZE];
	int r = change_undo(standing, device, ret_outcome, reterr);
	if (r < 0)
		return r;
	if (!ret_outcome->was_foreign)
		snprintf(ret_outcome->text, sizeof(ret_outcome->text), "%s: restored to %s", device->name,
			change_amount(device, &standing->previous, back));
	return journal_strike(&place->journal, JOURNAL_STANDING, standing);
}

static void tell_nothing(struct cap_device *device, bool was_timed, struct cap_outcome *ret_outcome)
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

static int reset(const struct wattle_env *env, const struct place *place, struct cap_device *device, bool to_default,
	bool was_timed, struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct journal_entry standing;
	struct cap_owner self;
	int r = journal_read(&place->journal, place->stem, JOURNAL_STANDING, &standing, reterr);
	bool is_standing = r == 0;
	if (r < 0 && r != -ENOENT && !to_default)
		return r;
	if (to_default && !is_standing) {
		cap_owner_self("wattle cap reset", &self);
		describe(env, device, &self, &(struct cap_setting){0}, &standing);
	}
	if (to_default)
		return to_default_setting(place, device, &standing, is_standing, ret_outcome, reterr);
	if (is_standing)
		cap_setting_bound(device, &standing.previous);
	if (is_standing)
		return to_previous(place, device, &standing, ret_outcome, reterr);
	tell_nothing(device, was_timed, ret_outcome);
	return 0;
}

int cap_reset(const struct wattle_env *env, struct cap_device *device, bool to_default, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct place place;
	int was_timed = standing_end_timed(env, device, reterr);
	if (was_timed < 0)
		return was_timed;
	int r = enter(&place, env, device, reterr);
	if (r == 0)
		r = reset(env, &place, device, to_default, was_timed > 0, ret_outcome, reterr);
	leave(&place);
	return r;
}
