/* Who holds a limit, in the two senses there are: the owner, whom people know and the journal names; and the keeper,
 * the process that has the lock and puts the limit back (the same one, but for the clients of the helper). */
#pragma once

#include "base/error.h"
#include "cap/lease.h"

#include <stdbool.h>

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

/* What was there before, on disk: the files of STATE/caps that lease.h describes.
 *
 * A file is written beside its name, synced, renamed over it, and the folder synced: whoever is killed, and where the
 * power goes, there is the old one or the new one. Its last line is a checksum of all before it. What does not hold
 * that, or belongs to somebody who has no say here, is not believed and not thrown away: it is put aside. */

enum journal_kind { JOURNAL_LEASE, JOURNAL_STANDING };
enum { JOURNAL_TEXT_MAX = 8192, JOURNAL_NAME_SIZE = CAP_ID_SIZE + 32 };

struct journal_entry {
	char device[48]; // for people; the id counts
	char id[CAP_ID_SIZE];
	enum cap_what what;
	char boot_id[BOOT_ID_SIZE];
	int64_t since_unix_s;
	/* Of a lease: the byte of the lock file that its keeper has locked. Of a standing limit: that of the lease that
	 * it comes from; 0: none. */
	int64_t token;
	bool timed; // the keeper waits for its hour only, and goes when asked (SIGTERM)
	struct cap_owner owner;
	struct cap_keeper keeper;
	struct cap_setting previous;  // before the first change
	struct cap_setting set, next; // as read back after the last change; as about to be written. n == 0: none
};

struct journal {
	int fd;         // owned; -1: not open
	char path[600]; // for messages
};

// -ENOENT without a sentence where there is none and `make` is false.
int journal_open(const struct wattle_env *env, bool make, struct journal *ret_journal, struct wattle_error *reterr);
// To look at. -ENOENT: there is no other than ours.
int journal_open_of_root(const struct wattle_env *env, struct journal *ret_journal);
int journal_open_fd(int fd, const char *path, struct journal *ret_journal); // takes fd
void journal_close(struct journal *journal);

// "ID" or "ID+clocks", of which the files' names are made
void journal_stem(const char *id, enum cap_what what, char out[JOURNAL_NAME_SIZE]);
// -ENOENT: there is none; -EBADMSG with a sentence: there is one that can't be believed.
int journal_read(const struct journal *journal, const char *stem, enum journal_kind kind,
	struct journal_entry *ret_entry, struct wattle_error *reterr);
int journal_write(const struct journal *journal, enum journal_kind kind, const struct journal_entry *entry,
	struct wattle_error *reterr);
int journal_strike(const struct journal *journal, enum journal_kind kind, const struct journal_entry *entry);
// STEM.lease becomes STEM.lease.broken, an older one of that name is lost.
int journal_put_aside(const struct journal *journal, const char *stem, enum journal_kind kind);
// Calls for each file of that kind, with its stem; stops when told so by something other than 0, and returns that.
int journal_each(const struct journal *journal, enum journal_kind kind, int (*call)(void *data, const char *stem),
	void *data);

struct buf;
void journal_entry_print(const struct journal_entry *entry, struct buf *out);
// -EBADMSG with what is wrong, in words.
int journal_entry_parse(const char *text, size_t size, struct journal_entry *ret_entry, struct wattle_error *reterr);

/* The two things that STEM.lock locks, both as OFD locks, which the kernel drops with the last descriptor of whoever
 * died.
 *
 * Byte 0, for moments: who reads the journal of a device and changes it. Byte `token`, for a lease's life: its keeper
 * has it. Each lease has a byte of its own, because a child that was forked without exec shares its parent's locks and
 * may outlive it: what it still has locked then says nothing of the next lease. */

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

/* Opens the folder; with `make`, creates it and its parents if necessary. Returns a descriptor; -ENOENT without a message if it does
 * not exist and `make` is false; -EPERM if this is root and another user could change the journal; other negative errnos with a
 * message. */
int journal_folder_open(const char *path, bool make, struct wattle_error *reterr);

/* Puts back what dead owners left: the part that is shared by the next start, the guard, and who wants the device
 * next. */

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
