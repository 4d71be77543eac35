// Opens run files. Existing files are untrusted.
#include "store/sql.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "store/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { BUSY_MS = 100, OPEN_BUSY_MS = 1000 };

/* A write-ahead log needs memory shared by all processes that have the file open. Machines do not share memory: a reader on
 * another host of one of these file systems would see a torn file. */
static bool is_shared_between_machines(const char *path)
{
	static const uint32_t magics[] = {
		0x6969,     // NFS
		0xff534d42, // CIFS
		0xfe534d42, // SMB2
		0x0bd00bd0, // Lustre
		0x47504653, // GPFS
		0x19830326, // BeeGFS
		0x00c36400, // Ceph
		0x5346414f, // AFS
		0x01021997, // 9P: folders shared with a virtual machine
		0x65735546, // FUSE: sshfs and many others
	};
	struct statfs fs;
	if (statfs(path, &fs) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		if ((uint32_t)fs.f_type == magics[i])
			return true;
	return false;
}

static bool set_journal(sqlite3 *db, const char *sql, const char *wanted)
{
	sqlite3_stmt *statement = NULL;
	bool done = false;
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW) {
		const unsigned char *mode = sqlite3_column_text(statement, 0);
		done = mode != NULL && strcmp((const char *)mode, wanted) == 0;
	}
	return sqlite3_finalize(statement) == SQLITE_OK && done;
}

// `file`: the path without URI parameters; NULL: this process has just created the file.
static int open_database(const char *path, const char *file, int flags, sqlite3 **ret_db, struct wattle_error *reterr)
{
	sqlite3 *db = NULL;
	char plain[OUTPUT_FILE_PATH_SIZE + 4];
	// SQLite treats ":memory:" and "file:…" specially; the prefix "./" makes them plain file names.
	if ((flags & SQLITE_OPEN_URI) == 0 && (path[0] == ':' || strncmp(path, "file:", 5) == 0)) {
		snprintf(plain, sizeof(plain), "./%s", path);
		path = plain;
	}
	// Used by one thread: no mutexes. SQLite opens files close-on-exec, so the command inherits none.
	int r = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	if (r == SQLITE_OK) {
		sqlite3_busy_timeout(db, BUSY_MS);
		r = file != NULL ? sql_guard_set(db, file, reterr) : 0;
		if (r < 0)
			sqlite3_close(db);
		else
			*ret_db = db;
		return r;
	}
	int code = db != NULL ? sql_fail(db, path, reterr) : error_set(reterr, -ENOMEM, "%s: out of memory", path);
	sqlite3_close(db);
	return code;
}

/* Checks a file that others may have written or placed companions beside. `db` is open and has read, so SQLite's companion
 * files exist and cannot have been exchanged since. Closes `db` on failure. */
static int check_opened(const char *path, bool is_writer, bool has_wal, sqlite3 **db, struct wattle_error *reterr)
{
	int r = sql_guard_check(*db, path, is_writer, reterr);
	if (r == 0)
		r = companions_check(path, reterr);
	if (r == 0 && has_wal)
		r = companions_check_log(path, reterr);
	if (r < 0) {
		sqlite3_close(*db);
		*db = NULL;
	}
	return r;
}

int sql_open_writer(const char *path, sqlite3 **ret_db, struct wattle_error *reterr)
{
	int r = companions_check(path, reterr);
	if (r == 0)
		r = open_database(path, path, SQLITE_OPEN_READWRITE, ret_db, reterr);
	if (r < 0)
		return r;
	sqlite3 *db = *ret_db;
	sqlite3_busy_timeout(db, OPEN_BUSY_MS); // sampling has not started, so waiting is harmless
	/* 512 KB of cache, and a checkpoint per 16 MB of log: a checkpoint flushes to the disk and delays the sampler, so it
	 * should be rare; a kill loses nothing in either place. */
	sql_exec(db, "PRAGMA cache_size=-512; PRAGMA temp_store=MEMORY; PRAGMA wal_autocheckpoint=4096");
	sql_exec(db,
		"PRAGMA synchronous=OFF"); // the mode change of a new file need not reach the disk
	bool has_wal = !is_shared_between_machines(path) && set_journal(db, "PRAGMA journal_mode=WAL", "wal");
	if (!has_wal)
		set_journal(db, "PRAGMA journal_mode=TRUNCATE", "truncate");
	sql_exec(db, "PRAGMA synchronous=NORMAL");
	sqlite3_busy_timeout(db, BUSY_MS);
	return check_opened(path, true, has_wal, ret_db, reterr);
}

int sql_open_builder(const char *path, sqlite3 **ret_db, struct wattle_error *reterr)
{
	int r = open_database(path, NULL, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ret_db, reterr);
	if (r < 0)
		return r;
	sql_exec(*ret_db,
		"PRAGMA cache_size=-512; PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF; "
		"PRAGMA locking_mode=EXCLUSIVE");
	return 0;
}

// Opens "file:PATH?PARAMETERS", with URI metacharacters in the path escaped.
static int open_uri(const char *path, const char *parameters, sqlite3 **ret_db, struct wattle_error *reterr)
{
	struct buf uri;
	buf_init(&uri, 16384);
	buf_str(&uri, "file:");
	for (const char *c = path; *c != '\0'; c++) {
		if (strchr("?#%", *c) != NULL)
			buf_printf(&uri, "%%%02X", (unsigned char)*c);
		else
			buf_char(&uri, *c);
	}
	buf_printf(&uri, "?%s", parameters);
	int r = uri.failed != 0 ? error_set(reterr, uri.failed, "%s: path too long", path)
				: open_database(uri.data, path, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, ret_db, reterr);
	buf_finish(&uri);
	return r;
}

static bool has_log(const char *path)
{
	char name[OUTPUT_FILE_PATH_SIZE + 16];
	struct stat st;
	snprintf(name, sizeof(name), "%s-wal", path);
	return stat(name, &st) == 0 && st.st_size > 0;
}

// Reads the file header: https://www.sqlite.org/fileformat.html section 1.3.3
static bool is_in_wal_mode(const char *path)
{
	unsigned char version[2] = {0};
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd >= 0 && pread(fd, version, sizeof(version), 18) == (ssize_t)sizeof(version) && version[1] == 2;
}

// Whether this process can write or create the index of the log, which every reader updates.
static bool can_index_log(const char *path)
{
	char name[OUTPUT_FILE_PATH_SIZE + 16];
	snprintf(name, sizeof(name), "%s-shm", path);
	if (faccessat(AT_FDCWD, name, W_OK, AT_EACCESS) == 0)
		return true;
	return errno == ENOENT && faccessat(AT_FDCWD, dirname(name), W_OK, AT_EACCESS) == 0;
}

/* Opens the log of a dead recorder in a folder without write permission. SQLite would need the index that the recorder left,
 * and fails with "locking protocol" if the kill came during an update of the index. Without locks, which no process can hold
 * any more, SQLite builds the index in memory. Seen with 3.40.1: one kill in fifteen. */
static int open_orphan(const char *path, sqlite3 **ret_db, struct wattle_error *reterr)
{
	int r = open_uri(path, "vfs=unix-none", ret_db, reterr);
	if (r < 0)
		return r;
	sql_exec(*ret_db, "PRAGMA locking_mode=EXCLUSIVE");
	// Without locks, a close by root would delete the log of a running recorder.
	sqlite3_db_config(*ret_db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	return 0;
}

static int open_for_reading(const char *path, sqlite3 **ret_db, struct wattle_error *reterr)
{
	bool is_foreign = companions_can_be_cut(path);
	bool wants_own_index = is_foreign ? has_log(path) || is_in_wal_mode(path)
					  : has_log(path) && !can_index_log(path);
	bool has_recorder = wants_own_index && output_file_recorder(path) != OUTPUT_FILE_RECORDER_NONE;
	if (is_foreign && has_recorder)
		return sql_snapshot_open(path, open_orphan, ret_db, reterr);
	int r = wants_own_index && !has_recorder ? open_orphan(path, ret_db, reterr)
						 : open_database(path, path, SQLITE_OPEN_READONLY, ret_db, reterr);
	if (r == 0 && is_foreign) // never maps an index, even if the file is switched to WAL mode now
		sql_exec(*ret_db, "PRAGMA locking_mode=EXCLUSIVE");
	if (r < 0 || sql_exec(*ret_db, "SELECT 1 FROM sqlite_master LIMIT 1") == SQLITE_OK)
		return r;
	int result = sqlite3_errcode(*ret_db) & 0xff;
	r = sql_fail(*ret_db, path, reterr);
	sqlite3_close(*ret_db);
	*ret_db = NULL;
	if (has_log(path) || (result != SQLITE_CANTOPEN && result != SQLITE_READONLY))
		return r;
	// WAL mode would create a log, but the folder is not writable; without a log the file is complete.
	return open_uri(path, "immutable=1", ret_db, reterr);
}

int sql_open_reader(const char *path, sqlite3 **ret_db, struct wattle_error *reterr)
{
	int r = companions_check(path, reterr);
	if (r == 0)
		r = open_for_reading(path, ret_db, reterr);
	return r == 0 ? check_opened(path, false, false, ret_db, reterr) : r;
}

void sql_merge_log(sqlite3 *db)
{
	// Column 1 is 1 if another connection prevents the checkpoint; the log then stays until the last connection closes.
	if (sql_read_i64(db, "PRAGMA wal_checkpoint(TRUNCATE)", 1) != 0)
		return;
	// All rows are on the disk. The mode in the file header need not be: after a power failure either mode is correct.
	sql_exec(db, "PRAGMA synchronous=OFF");
	set_journal(db, "PRAGMA journal_mode=DELETE", "delete");
	sql_exec(db, "PRAGMA synchronous=NORMAL");
}
