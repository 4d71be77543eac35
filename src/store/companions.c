#include "store/sql.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "store/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool companions_may_own(const struct stat *database, const struct stat *companion)
{
	bool by_group = (database->st_mode & S_IWGRP) != 0 && companion->st_gid == database->st_gid;
	return companion->st_uid == geteuid() || companion->st_uid == 0 || companion->st_uid == database->st_uid ||
		by_group || (database->st_mode & S_IWOTH) != 0;
}

// The file is owned by this user or root, and nobody else can write to it.
static bool is_ours_alone(const struct stat *st)
{
	return (st->st_uid == geteuid() || st->st_uid == 0) && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool companions_can_be_cut(const char *path)
{
	char resolved[PATH_MAX], name[PATH_MAX + 16];
	struct stat database, index;
	if (realpath(path, resolved) == NULL || stat(resolved, &database) != 0)
		return false; // opening the file then fails with a message
	snprintf(name, sizeof(name), "%s-shm", resolved);
	return !is_ours_alone(&database) || (lstat(name, &index) == 0 && !is_ours_alone(&index));
}

/* A journal with this ending names the super-journal of a transaction over several databases, which SQLite would open and may
 * remove. wattle has no such transactions. https://www.sqlite.org/tempfiles.html section 2.4, super-journal files */
static bool names_another_file(const char *name, int64_t size)
{
	static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	unsigned char end[sizeof(magic)];
	wattle_cleanup_close int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd >= 0 && size >= (int64_t)sizeof(end) &&
		pread(fd, end, sizeof(end), size - (int64_t)sizeof(end)) == (ssize_t)sizeof(end) &&
		memcmp(end, magic, sizeof(magic)) == 0;
}

static int check(const char *path, const char *ending, const struct stat *database, struct wattle_error *reterr)
{
	char name[PATH_MAX + 16];
	struct stat st;
	snprintf(name, sizeof(name), "%s%s", path, ending);
	if (lstat(name, &st) != 0)
		return 0;
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		return error_set(reterr, -EPERM,
			"%s is %s, and SQLite would write to it as part of the database: remove it", name,
			S_ISLNK(st.st_mode)           ? "a symbolic link"
				: S_ISREG(st.st_mode) ? "a hard link"
						      : "not a regular file");
	if (!companions_may_own(database, &st))
		return error_set(reterr, -EPERM,
			"%s belongs to user %u, who may not write to the database: remove it or choose another folder",
			name, (unsigned)st.st_uid);
	if (strcmp(ending, "-journal") == 0 && names_another_file(name, st.st_size))
		return error_set(reterr, -EPERM,
			"%s refers to another file, which wattle's journals never do: remove it", name);
	return 0;
}

int companions_check(const char *path, struct wattle_error *reterr)
{
	static const char *const endings[] = {"-wal", "-shm", "-journal", "-spans"};
	char resolved[PATH_MAX]; // SQLite follows symbolic links to the database too
	struct stat database;
	const char *real = realpath(path, resolved);
	if (real == NULL || stat(real, &database) != 0)
		return 0; // opening the file then fails with a message
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(endings); i++)
		r = check(real, endings[i], &database, reterr);
	return r;
}

int companions_check_log(const char *path, struct wattle_error *reterr)
{
	static const char *const endings[] = {"-wal", "-shm"};
	char resolved[PATH_MAX];
	const char *real = realpath(path, resolved);
	for (size_t i = 0; real != NULL && i < ARRAY_SIZE(endings); i++) {
		char name[PATH_MAX + 16];
		struct stat st;
		snprintf(name, sizeof(name), "%s%s", real, endings[i]);
		if (lstat(name, &st) != 0)
			return error_set(reterr, -EPERM,
				"%s: another process removed it while wattle opened the database: choose "
				"another folder",
				name);
	}
	return 0;
}

int companions_clear(const char *path, struct wattle_error *reterr)
{
	static const char *const endings[] = {"-wal", "-shm", "-journal", "-spans"};
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		char name[OUTPUT_FILE_PATH_SIZE + 16];
		snprintf(name, sizeof(name), "%s%s", path, endings[i]);
		if (unlink(name) != 0 && errno != ENOENT)
			return error_set(reterr, -EPERM,
				"%s exists and can't be replaced (%s): choose another name or folder",
				name, strerror(errno));
	}
	return 0;
}
