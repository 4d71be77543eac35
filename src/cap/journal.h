/* What was there before, on disk: the files of STATE/caps that lease.h describes.
 *
 * A file is written beside its name, synced, renamed over it, and the folder synced: whoever is killed, and where the
 * power goes, there is the old one or the new one. Its last line is a checksum of all before it. What does not hold
 * that, or belongs to somebody who has no say here, is not believed and not thrown away: it is put aside. */
#pragma once

#include "cap/owner.h"

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
