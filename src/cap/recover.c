#include "cap/journal.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "cap/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { EXITING_MS = 1000, EXITING_POLL_MS = 5 };

static void report(const struct recovery *recovery, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void report(const struct recovery *recovery, const char *format, ...)
{
	if (recovery->report == NULL)
		return;
	char text[900];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	recovery->report(recovery->data, text);
}

/* ---- one lease of a dead owner ---- */

// A standing limit with the lease's token: the lease was made persistent, and its owner died before removing its entry.
static bool was_kept(const struct journal *journal, const char *stem, const struct journal_entry *lease)
{
	struct journal_entry persistent;
	return journal_read(journal, stem, JOURNAL_PERSISTENT, &persistent, NULL) == 0 &&
		persistent.token == lease->token;
}

static bool has_changed_nothing(const struct journal_entry *lease)
{
	return lease->set.n == 0 && lease->next.n == 0;
}

static bool is_of_this_boot(const struct wattle_env *env, const struct journal_entry *entry)
{
	char boot_id[BOOT_ID_SIZE];
	cap_boot_id(env, boot_id);
	return strcmp(boot_id, entry->boot_id) == 0;
}

static int put_aside(const struct recovery *recovery, const char *stem, enum journal_kind kind, const char *why)
{
	int r = journal_put_aside(recovery->journal, stem, kind);
	if (r == 0)
		report(recovery, "%s; it was renamed to .broken; `wattle cap list` shows the limits in force", why);
	else
		report(recovery, "%s; it can't be renamed: %s", why, strerror(-r));
	return 0;
}

static int open_devices(struct recovery *recovery)
{
	if (recovery->is_open)
		return 0;
	int r = cap_devices_open(recovery->devices, recovery->env, NULL);
	if (r < 0)
		cap_devices_close(recovery->devices);
	recovery->is_open = r == 0;
	return r;
}

static int find_device(struct recovery *recovery, const struct journal_entry *entry, struct cap_device **ret_device)
{
	int r = open_devices(recovery);
	if (r < 0)
		return r;
	for (size_t i = 0; i < recovery->devices->n; i++) {
		struct cap_device *device = &recovery->devices->devices[i];
		if (device->what != entry->what || strcmp(device->id, entry->id) != 0)
			continue;
		*ret_device = device;
		return 0;
	}
	return -ENODEV;
}

// A sleeping GPU still has its limit, but its id is unknown until it wakes. Its name may belong to another GPU by now.
static int find_awake(struct recovery *recovery, const struct journal_entry *lease, struct cap_device **ret_device)
{
	struct cap_device *woken;
	int r = find_device(recovery, lease, ret_device);
	if (!recovery->is_open || (r == 0 && !(*ret_device)->asleep))
		return r;
	if (cap_devices_find(recovery->devices, lease->id, lease->what, &woken, NULL) < 0)
		cap_devices_find(recovery->devices, lease->device, lease->what, &woken, NULL);
	return find_device(recovery, lease, ret_device);
}

static void report_failure(const struct recovery *recovery, const struct journal_entry *lease, int code,
	const char *why)
{
	char owner[160], remedy[800] = "";
	cap_owner_describe(&lease->owner, owner, sizeof(owner));
	if ((code == -EACCES || code == -EPERM) && geteuid() != 0)
		snprintf(remedy, sizeof(remedy), "; `sudo wattle cap reset %s --default` sets the default",
			lease->device);
	report(recovery, "%s still has the limit of an owner that died (%s): %s%s", lease->device, owner, why, remedy);
}

static void report_restored(const struct recovery *recovery, const struct journal_entry *lease,
	const struct cap_device *device)
{
	char owner[160], back[AMOUNT_SIZE], had[AMOUNT_SIZE];
	const struct cap_setting *ours = lease->next.n > 0 ? &lease->next : &lease->set;
	cap_owner_describe(&lease->owner, owner, sizeof(owner));
	report(recovery, "%s: restored to %s from %s, which an owner that died had set (%s)", device->name,
		change_amount(device, &lease->previous, back), change_amount(device, ours, had), owner);
}

/* A limit does not survive a restart: a register with another value got it at power-on, and nothing is reported. If the
 * register does hold the value set (kept through kexec, or set again from a file), it is restored. */
static int undo(struct recovery *recovery, const struct journal_entry *written, struct cap_device *device,
	struct wattle_error *reterr)
{
	struct journal_entry bounded = *written;
	const struct journal_entry *lease = &bounded;
	bool same_boot = is_of_this_boot(recovery->env, lease);
	bool is_out_of_range = cap_setting_bound(device, &bounded.previous);
	if (!same_boot && !cap_reads_back(device))
		return 0;
	struct cap_outcome outcome;
	int r = change_undo(lease, device, &outcome, reterr);
	if (r < 0)
		return r;
	if (r > 0 && is_out_of_range)
		report(recovery,
			"%s: the previous limit in the journal is out of the device's range; setting the nearest valid one",
			device->name);
	if (r > 0) {
		recovery->n_restored++;
		report_restored(recovery, lease, device);
	}
	if (same_boot && outcome.was_foreign)
		report(recovery, "%s", outcome.text);
	return 0;
}

static int undo_lease(struct recovery *recovery, const char *stem, const struct journal_entry *lease)
{
	struct cap_device *device;
	struct wattle_error why = {0};
	int r = 0;
	if (!has_changed_nothing(lease) && !was_kept(recovery->journal, stem, lease)) {
		r = find_awake(recovery, lease, &device);
		if (r == 0)
			r = undo(recovery, lease, device, &why);
		else if (!is_of_this_boot(recovery->env, lease))
			r = 0;
		else
			error_set(&why, r, "the device does not exist");
	}
	if (r == 0)
		r = journal_remove(recovery->journal, JOURNAL_LEASE, lease);
	if (r < 0)
		report_failure(recovery, lease, r, why.text[0] != '\0' ? why.text : strerror(-r));
	return r;
}

/* ---- all entries ---- */

/* Directly after a kill, the kernel may not have released the locks of the dead process yet. If it counted as alive,
 * its limit would stay until the next start. */
static bool is_dead(const struct journal *journal, const char *stem, const struct journal_entry *lease)
{
	static const struct timespec poll_interval = {.tv_nsec = EXITING_POLL_MS * NS_PER_MS};
	int n_signs = 1; // between the signal and the exit, one check may show neither
	for (int waited_ms = 0; lock_is_kept(journal, stem, lease); waited_ms += EXITING_POLL_MS) {
		n_signs -= !cap_keeper_is_exiting(&lease->keeper);
		if (waited_ms >= EXITING_MS || n_signs < 0)
			return !lock_is_kept(journal, stem, lease); // the owner may have ended between the two checks
		nanosleep(&poll_interval, NULL);
	}
	return true;
}

static bool concerns(const struct recovery *recovery, const char *stem, const struct journal_entry *lease)
{
	if (recovery->of != NULL && !cap_keeper_is(recovery->of, &lease->keeper))
		return false;
	return recovery->is_dead || is_dead(recovery->journal, stem, lease);
}

static int recover_lease_locked(struct recovery *recovery, const char *stem)
{
	struct wattle_error why = {0};
	struct journal_entry lease;
	int r = journal_read(recovery->journal, stem, JOURNAL_LEASE, &lease, &why);
	if (r == -EBADMSG)
		return put_aside(recovery, stem, JOURNAL_LEASE, why.text);
	if (r < 0 || !concerns(recovery, stem, &lease))
		return 0; // another process was faster
	if (undo_lease(recovery, stem, &lease) < 0)
		recovery->n_left++;
	return 0;
}

// Reads the entry without the lock first: most leases have a living owner, and a reader may not be able to lock.
static int recover_lease(void *data, const char *stem)
{
	struct recovery *recovery = data;
	struct wattle_error why = {0};
	struct journal_entry lease;
	int r = journal_read(recovery->journal, stem, JOURNAL_LEASE, &lease, &why);
	if (r == -ENOENT || (r == 0 && !concerns(recovery, stem, &lease)) || (r < 0 && recovery->of != NULL))
		return 0;
	wattle_cleanup_close int lock_fd = -1;
	int taken = lock_take(recovery->journal, stem, recovery->wait_mode, &lock_fd, r == 0 ? &why : NULL);
	if (taken == 0) {
		recover_lease_locked(recovery, stem);
		lock_drop(lock_fd);
	} else if (r == 0 && taken != -EBUSY && !has_changed_nothing(&lease)) {
		report_failure(recovery, &lease, taken, why.text);
	} else if (r != 0 && taken != -EBUSY) {
		report(recovery, "%s", why.text);
	}
	return 0;
}

// A standing limit ends with a restart of the machine. This is expected, so nothing is reported.
static int forget_locked(struct recovery *recovery, const char *stem)
{
	struct wattle_error why = {0};
	struct journal_entry persistent;
	struct cap_setting now;
	struct cap_device *device;
	int r = journal_read(recovery->journal, stem, JOURNAL_PERSISTENT, &persistent, &why);
	if (r == -EBADMSG)
		return put_aside(recovery, stem, JOURNAL_PERSISTENT, why.text);
	if (r < 0 || is_of_this_boot(recovery->env, &persistent))
		return 0;
	r = find_device(recovery, &persistent, &device);
	if (r == 0 && cap_reads_back(device) && cap_read(device, &now, NULL) == 0 &&
		change_is_same(&persistent.set, &now) && !change_is_same(&persistent.previous, &now)) {
		// The limit survived the restart: keep the entry for `cap reset`.
		cap_boot_id(recovery->env, persistent.boot_id);
		return journal_write(recovery->journal, JOURNAL_PERSISTENT, &persistent, NULL);
	}
	return journal_remove(recovery->journal, JOURNAL_PERSISTENT, &persistent);
}

static int remove_persistent(void *data, const char *stem)
{
	struct recovery *recovery = data;
	struct journal_entry persistent;
	int r = journal_read(recovery->journal, stem, JOURNAL_PERSISTENT, &persistent, NULL);
	if (r != -EBADMSG && (r < 0 || is_of_this_boot(recovery->env, &persistent)))
		return 0;
	wattle_cleanup_close int lock_fd = -1;
	if (lock_take(recovery->journal, stem, LOCK_TRY, &lock_fd, NULL) < 0)
		return 0;
	forget_locked(recovery, stem);
	lock_drop(lock_fd);
	return 0;
}

int recover_all(struct recovery *recovery)
{
	int r = journal_each(recovery->journal, JOURNAL_LEASE, recover_lease, recovery);
	if (r == 0 && recovery->of == NULL)
		r = journal_each(recovery->journal, JOURNAL_PERSISTENT, remove_persistent, recovery);
	return r;
}

void recover_entries(struct recovery *recovery, const struct journal_entry *leases, size_t n)
{
	struct stat folder;
	if (fstat(recovery->journal->fd, &folder) < 0 || folder.st_nlink > 0)
		return;
	for (size_t i = 0; i < n; i++) {
		char stem[JOURNAL_NAME_SIZE];
		journal_stem(leases[i].id, leases[i].what, stem);
		if (undo_lease(recovery, stem, &leases[i]) < 0)
			recovery->n_left++;
	}
}

int cap_recover(const struct wattle_env *env, void (*report_to_user)(void *data, const char *text), void *data)
{
	struct wattle_error error = {0};
	struct journal journal;
	int r = journal_open(env, false, &journal, &error);
	if (r == -EPERM && report_to_user != NULL)
		report_to_user(data, error.text);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct cap_devices devices;
	struct recovery recovery = {.env = env,
		.journal = &journal,
		.devices = &devices,
		.wait_mode = LOCK_WAIT,
		.report = report_to_user,
		.data = data};
	r = recover_all(&recovery);
	if (recovery.is_open)
		cap_devices_close(&devices);
	journal_close(&journal);
	return r < 0 ? r : (int)recovery.n_restored;
}

/* ---- one device, before a new lease ---- */

int recover_refuse(const struct journal_entry *lease, struct wattle_error *reterr)
{
	char owner[160];
	cap_owner_describe(&lease->owner, owner, sizeof(owner));
	if (lease->timed)
		return error_set(reterr, -EBUSY,
			"%s has a limit with a duration, set by %s; `wattle cap reset %s` ends it", lease->device,
			owner, lease->device);
	return error_set(reterr, -EBUSY, "%s is limited by %s; the limit ends with it", lease->device, owner);
}

int recover_refuse_roots(const struct wattle_env *env, const char *stem, struct wattle_error *reterr)
{
	struct journal journal;
	struct journal_entry lease;
	if (journal_open_of_root(env, &journal) < 0)
		return 0;
	int r = 0;
	if (journal_read(&journal, stem, JOURNAL_LEASE, &lease, NULL) == 0 && lock_is_kept(&journal, stem, &lease))
		r = recover_refuse(&lease, reterr);
	journal_close(&journal);
	return r;
}

int recover_device(const struct journal *journal, const char *stem, struct cap_device *device,
	struct wattle_error *reterr)
{
	struct journal_entry lease;
	struct cap_outcome outcome;
	int r = journal_read(journal, stem, JOURNAL_LEASE, &lease, reterr);
	if (r == -ENOENT)
		return 0;
	if (r == -EBADMSG)
		return journal_put_aside(journal, stem, JOURNAL_LEASE);
	if (r < 0)
		return r;
	if (!is_dead(journal, stem, &lease))
		return recover_refuse(&lease, reterr);
	cap_setting_bound(device, &lease.previous);
	if (!has_changed_nothing(&lease) && !was_kept(journal, stem, &lease))
		r = change_undo(&lease, device, &outcome, reterr);
	return r < 0 ? r : journal_remove(journal, JOURNAL_LEASE, &lease);
}
