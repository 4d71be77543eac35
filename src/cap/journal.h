/* The owner and the keeper of a limit. The owner is shown to users and named in the journal. The keeper is the process
 * that has the lock and restores the limit. Both are the same process, except for clients of the helper. */
#pragma once

#include "base/error.h"
#include "cap/lease.h"

#include <stdbool.h>

enum { BOOT_ID_SIZE = 40 };

struct cap_keeper {
	pid_t pid;
	uint64_t start_ticks; // 0: unknown
	uint64_t pid_ns;      // inode of its pid namespace: in another namespace the pid has no meaning
};
void cap_keeper_self(struct cap_keeper *ret_keeper);
bool cap_keeper_is(const struct cap_keeper *a, const struct cap_keeper *b);
/* True if the keeper has certainly ended; false if unknown. The lock also shows this, unless the keeper forked a child
 * without exec: the child has a copy of the lock and may outlive it. */
bool cap_keeper_is_gone(const struct cap_keeper *keeper);
// Killed or exiting, but not gone yet: its lock is about to be released.
bool cap_keeper_is_exiting(const struct cap_keeper *keeper);

// "wattle cap set, pid 4242, user alice"
void cap_owner_describe(const struct cap_owner *owner, char *out, size_t size);
// "" if the kernel does not report it.
void cap_boot_id(const struct wattle_env *env, char out[BOOT_ID_SIZE]);

/* Journal of previous values on disk: the files of STATE/caps that lease.h describes.
 *
 * A file is written under a temporary name, synced, renamed, and the folder synced: after a kill or a power failure
 * either the old or the new file exists. Its last line is a checksum of the rest. A file with a wrong checksum or an
 * untrusted owner is ignored but not deleted: it is renamed. */

enum journal_kind { JOURNAL_LEASE, JOURNAL_PERSISTENT };
enum { JOURNAL_TEXT_MAX = 8192, JOURNAL_NAME_SIZE = CAP_ID_SIZE + 32 };

struct journal_entry {
	char device[48]; // for messages; devices are matched by id
	char id[CAP_ID_SIZE];
	enum cap_kind what;
	char boot_id[BOOT_ID_SIZE];
	int64_t since_unix_s;
	/* Lease: index of the byte of the lock file that the keeper has locked. Standing limit: token of the lease that
	 * it comes from; 0: none. */
	int64_t token;
	bool timed; // the keeper only waits until the time is over, and exits on SIGTERM
	struct cap_owner owner;
	struct cap_keeper keeper;
	struct cap_setting previous;  // values before the first change
	struct cap_setting set, next; // set: as read back after the last change; next: about to be written. n == 0: none
};

struct journal {
	int fd;         // owned; -1: not open
	char path[600]; // for messages
};

// -ENOENT without a message if there is no journal and `make` is false.
int journal_open(const struct wattle_env *env, bool make, struct journal *ret_journal, struct wattle_error *reterr);
// Opens root's journal for reading. -ENOENT: it does not exist, or it is this process's own.
int journal_open_of_root(const struct wattle_env *env, struct journal *ret_journal);
int journal_open_fd(int fd, const char *path, struct journal *ret_journal); // takes ownership of fd
void journal_close(struct journal *journal);

// "ID" or "ID+clocks": base of the file names
void journal_stem(const char *id, enum cap_kind what, char out[JOURNAL_NAME_SIZE]);
// -ENOENT: no such entry; -EBADMSG with a message: the entry is invalid.
int journal_read(const struct journal *journal, const char *stem, enum journal_kind kind,
	struct journal_entry *ret_entry, struct wattle_error *reterr);
int journal_write(const struct journal *journal, enum journal_kind kind, const struct journal_entry *entry,
	struct wattle_error *reterr);
int journal_remove(const struct journal *journal, enum journal_kind kind, const struct journal_entry *entry);
// Renames STEM.lease to STEM.lease.broken, replacing an older one.
int journal_put_aside(const struct journal *journal, const char *stem, enum journal_kind kind);
// Calls `call` with the stem of each file of that kind. Stops at a result other than 0 and returns it.
int journal_each(const struct journal *journal, enum journal_kind kind, int (*call)(void *data, const char *stem),
	void *data);

struct buf;
void journal_entry_print(const struct journal_entry *entry, struct buf *out);
// -EBADMSG with a message.
int journal_entry_parse(const char *text, size_t size, struct journal_entry *ret_entry, struct wattle_error *reterr);

/* Locks on STEM.lock. Both are OFD locks, which the kernel releases with the last descriptor of a dead process.
 *
 * Byte 0 is held briefly to read a device's journal and change the device. Byte `token` is held by the keeper for the
 * life of a lease. Each lease has its own byte, because a child forked without exec shares its parent's locks and may
 * outlive it: its lock then does not affect the next lease. */

enum lock_wait_mode {
	LOCK_TRY,   // do not wait
	LOCK_WAIT,  // wait some seconds: the lock is held while hardware is accessed
	LOCK_SLEEP, // wait until free: for the guard, which has nothing else to do
};

// Opens STEM.lock and locks byte 0. The caller owns *ret_fd. -EBUSY with a message.
int lock_take(const struct journal *journal, const char *stem, enum lock_wait_mode wait_mode, int *ret_fd,
	struct wattle_error *reterr);
int lock_retake(int fd, enum lock_wait_mode wait_mode); // locks byte 0 again, on a descriptor of lock_take
void lock_drop(int fd); // unlocks byte 0; the descriptor stays open
// Locks the byte of a new lease, on a descriptor of lock_take.
int lock_keep(int fd, int64_t *ret_token);
// Whether the keeper of a lease is alive: its byte is locked and it has not certainly ended.
bool lock_is_kept(const struct journal *journal, const char *stem, const struct journal_entry *lease);

/* Opens the folder; with `make`, creates it and its parents if necessary. Returns a descriptor; -ENOENT without a
 * message if it does not exist and `make` is false; -EPERM if this is root and another user could change the journal;
 * other negative errnos with a message. */
int journal_folder_open(const char *path, bool make, struct wattle_error *reterr);

/* Restores limits that dead owners left. Used at the next start, by the guard, and before a new lease on the device. */

struct recovery {
	const struct wattle_env *env;  // borrowed
	const struct journal *journal; // borrowed
	struct cap_devices *devices;   // borrowed; opened when needed if `is_open` is false; closed by the caller
	bool is_open;
	const struct cap_keeper *of; // entries of this keeper only; NULL: of all
	bool is_dead;                // the keeper is known to be dead; otherwise its lock is checked
	enum lock_wait_mode wait_mode;
	void (*report)(void *data, const char *text); // NULL allowed
	void *data;
	size_t n_restored, n_left; // n_left: entries of `of` that could not be restored
};

// Processes all entries of the journal.
int recover_all(struct recovery *recovery);
// Processes these entries if the journal's folder has been removed together with them; otherwise does nothing.
void recover_entries(struct recovery *recovery, const struct journal_entry *leases, size_t n);
/* Recovers one device; the caller holds byte 0 of its lock. 0: no lease is left. -EBUSY with a message that names the
 * living owner; other errors: the limit of a dead owner can't be restored. */
int recover_device(const struct journal *journal, const char *stem, struct cap_device *device,
	struct wattle_error *reterr);
// A user who may set limits has a journal of their own, but must respect root's: -EBUSY while root has a lease on the
// device.
int recover_refuse_roots(const struct wattle_env *env, const char *stem, struct wattle_error *reterr);
// Returns -EBUSY with a message that names the owner of the lease.
int recover_refuse(const struct journal_entry *lease, struct wattle_error *reterr);
