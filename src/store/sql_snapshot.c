#include "store/sql.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "store/output_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 25, PAGES_A_STEP = 1024 };
static const struct timespec pause_time = {.tv_nsec = 40 * NS_PER_MS};
static const int64_t CLOCK_STEP_NS = 20 * NS_PER_MS; // file systems timestamp changes with the kernel tick, at most 10 ms

// Values that a checkpoint or a restart of the log changes.
struct stamp {
	ino_t inode;
	off_t size, journal_size;
	int64_t changed_ns;
	unsigned char log_header[32]; // contains the restart counter and random salts
};
static_assert(sizeof(struct stamp) == 64, "stamps are compared as bytes");

static int64_t size_beside(const char *path, const char *ending)
{
	char name[OUTPUT_FILE_PATH_SIZE + 16];
	struct stat st;
	snprintf(name, sizeof(name), "%s%s", path, ending);
	return stat(name, &st) == 0 ? st.st_size : 0;
}

static void read_log_header(const char *path, unsigned char out[32])
{
	char name[OUTPUT_FILE_PATH_SIZE + 16];
	snprintf(name, sizeof(name), "%s-wal", path);
	wattle_cleanup_close int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0 || pread(fd, out, 32, 0) != 32)
		memset(out, 0, 32);
}

static struct stamp stamp_of(const char *path)
{
	struct stat st;
	struct stamp stamp;
	memset(&stamp, 0, sizeof(stamp)); // compared as bytes
	if (stat(path, &st) == 0) {
		stamp.inode = st.st_ino;
		stamp.size = st.st_size;
		stamp.changed_ns = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
	}
	stamp.journal_size = size_beside(path, "-journal");
	read_log_header(path, stamp.log_header);
	return stamp;
}

// A recent change may be followed by another one with the same timestamp.
static bool is_old_enough(const struct stamp *stamp)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t age_ns = now.tv_sec * NS_PER_S + now.tv_nsec - stamp->changed_ns;
	return age_ns < 0 || age_ns > CLOCK_STEP_NS; // below 0: from another clock
}

static int refuse_size(const char *path, struct wattle_error *reterr)
{
	return error_set(reterr, -EFBIG,
		"%s: another user's recorder is writing to it, and it is larger than %d MB: wait for the end "
		"of the run, or read a copy of the file and of its -wal",
		path, SQL_SNAPSHOT_BYTES_MAX >> 20);
}

// Copied in steps, because the page count stated by the file may change.
static int copy_pages(sqlite3 *source, const char *path, sqlite3 *copy, struct wattle_error *reterr)
{
	int64_t page_size = sql_read_i64(source, "PRAGMA page_size", 0);
	sqlite3_backup *backup = page_size > 0 ? sqlite3_backup_init(copy, "main", source, "main") : NULL;
	if (backup == NULL)
		return sql_fail(page_size > 0 ? copy : source, path, reterr);
	bool is_too_large = false;
	int r = SQLITE_OK;
	while (r == SQLITE_OK && !is_too_large) {
		r = sqlite3_backup_step(backup, sqlite3_backup_pagecount(backup) > 0 ? PAGES_A_STEP : 1);
		is_too_large = sqlite3_backup_pagecount(backup) > SQL_SNAPSHOT_BYTES_MAX / page_size;
	}
	sqlite3_backup_finish(backup);
	if (is_too_large)
		return refuse_size(path, reterr);
	return r == SQLITE_DONE ? 0 : sql_fail(copy, path, reterr);
}

static int open_copy(sqlite3 *source, const char *path, sqlite3 **ret_db, struct wattle_error *reterr)
{
	sqlite3 *copy = NULL;
	if (sqlite3_open_v2(":memory:", &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX,
		    NULL) != SQLITE_OK) {
		sqlite3_close(copy);
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	}
	int r = sql_guard_set(copy, path, reterr);
	if (r == 0)
		r = copy_pages(source, path, copy, reterr);
	if (r < 0) {
		sqlite3_close(copy);
		return r;
	}
	sql_exec(copy, "PRAGMA query_only=ON");
	*ret_db = copy;
	return 0;
}

// 1: the file changed during the copy.
static int try(const char *path, sql_snapshot_open_source *open_source, sqlite3 **ret_db, struct wattle_error *reterr)
{
	struct stamp before = stamp_of(path);
	sqlite3 *source = NULL, *copy = NULL;
	if (!is_old_enough(&before))
		return 1;
	if (before.size > SQL_SNAPSHOT_BYTES_MAX)
		return refuse_size(path, reterr);
	int r = open_source(path, &source, reterr);
	if (r == 0)
		r = open_copy(source, path, &copy, reterr);
	sqlite3_close(source);
	struct stamp after = stamp_of(path);
	if (r != -EFBIG && memcmp(&before, &after, sizeof(before)) != 0) {
		sqlite3_close(copy);
		return 1;
	}
	if (r == 0)
		*ret_db = copy;
	return r;
}

int sql_snapshot_open(const char *path, sql_snapshot_open_source *open_source, sqlite3 **ret_db,
	struct wattle_error *reterr)
{
	char resolved[PATH_MAX]; // the log is beside the target of a symbolic link
	if (realpath(path, resolved) == NULL)
		return error_set(reterr, -errno, "%s: %s", path, strerror(errno));
	for (int i = 0; i < TRIES; i++) {
		int r = try(resolved, open_source, ret_db, reterr);
		if (r <= 0)
			return r;
		nanosleep(&pause_time, NULL);
	}
	return error_set(reterr, -EBUSY,
		"%s: another user's recorder changes it faster than wattle can read it: wait for the end of "
		"the run", path);
}
