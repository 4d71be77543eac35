/* What all readers of a run file that grows have in common: one look at it in one transaction, its last segment, its spool. Between
 * store/live.c (steps) and store/watch.c (open spans). */
#pragma once

#include "base/error.h"
#include "store/spool.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct follow_segment {
	int64_t id;                  // 0: there is none yet
	int64_t start_ns, shift_ns;  // times in the file are later than on this machine by shift_ns
	int64_t pid;                 // of the root process; VALUE_MISSING: a cgroup, or unknown
	bool is_merging;             // its spool becomes rows
	bool is_over;                // that, or complete
	char boot_id[40], host[128]; // "" unknown
};

// An SQLite result; `data` is the caller's.
typedef int follow_reader(void *data, sqlite3 *db);

// Calls the reader in a transaction. -ENOENT, -EINVAL …: what keeps the file from being read, with a sentence; -EBUSY: look again.
int follow_look(const char *path, follow_reader *read, void *data, struct wattle_error *reterr);
int follow_last_segment(sqlite3 *db, struct follow_segment *ret_segment); // an SQLite result
// What the spool of this segment has from *at on. An SQLite result: SQLITE_OK where there is no spool, as usual.
int follow_spool(const char *path, sqlite3 *db, int64_t segment, int64_t *at, const struct spool_visitor *visitor);
