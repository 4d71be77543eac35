#include "base/lock_file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 20 };

static int refuse_foreign(int folder_fd, const char *path, struct wattle_error *reterr)
{
	struct stat st;
	char owner[40] = "belongs to another user";
	if (fstatat(folder_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		snprintf(owner, sizeof(owner), "is not a regular file");
	else if (fstatat(folder_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
		snprintf(owner, sizeof(owner), "belongs to user %u", (unsigned)st.st_uid);
	return error_set(reterr, -EPERM, "%s: %s; remove it, or use a folder of your own", path, owner);
}

static bool exists_as_file(int folder_fd, const char *path, const struct stat *ours)
{
	struct stat there;
	return fstatat(folder_fd, path, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_dev == ours->st_dev &&
		there.st_ino == ours->st_ino;
}

/* O_EXCL first: a file that this process created is its own, whatever owner and mode the file system reports (vfat, CIFS,
 * root_squash of NFS). */
static int open_lock(int folder_fd, const char *path, bool *ret_is_made)
{
	enum { FLAGS = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };
	int fd = openat(folder_fd, path, FLAGS | O_CREAT | O_EXCL, 0600);
	*ret_is_made = fd >= 0;
	if (fd >= 0 || errno != EEXIST)
		return fd;
	fd = openat(folder_fd, path, FLAGS);
	if (fd < 0 && errno == ENOENT)
		errno = EAGAIN; // removed between the two calls
	return fd;
}

bool lock_file_may_own(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == 0);
}

// Returns 1 if the file was removed between two calls.
static int open_own(int folder_fd, const char *path, bool *ret_is_made, int *ret_fd, struct wattle_error *reterr)
{
	struct stat st;
	wattle_cleanup_close int fd = open_lock(folder_fd, path, ret_is_made);
	int code = fd < 0 ? errno : 0;
	if (code == EAGAIN)
		return 1;
	if ((code == ELOOP || code == EACCES || code == EISDIR || code == ENXIO) &&
		faccessat(folder_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return refuse_foreign(folder_fd, path, reterr);
	if (code == 0 && fstat(fd, &st) < 0)
		code = errno;
	if (code != 0)
		return error_set(reterr, -code, "%s: %s", path, strerror(code));
	if (!*ret_is_made && !lock_file_may_own(&st))
		return refuse_foreign(folder_fd, path, reterr);
	*ret_fd = take_fd(&fd);
	return 0;
}

int lock_file_open(int folder_fd, const char *path, int *ret_fd, struct wattle_error *reterr)
{
	bool is_made;
	for (int i = 0; i < TRIES; i++) {
		int r = open_own(folder_fd, path, &is_made, ret_fd, reterr);
		if (r <= 0)
			return r;
	}
	return error_set(reterr, -EBUSY, "%s: other processes keep replacing this lock file; try again", path);
}

// Returns 1 if the file was removed or replaced in the meantime.
static int try(int folder_fd, const char *path, int *ret_fd, struct wattle_error *reterr)
{
	struct stat st;
	bool is_made;
	wattle_cleanup_close int fd = -1;
	int r = open_own(folder_fd, path, &is_made, &fd, reterr);
	if (r != 0)
		return r;
	if (fstat(fd, &st) < 0)
		return error_set(reterr, -errno, "%s: %s", path, strerror(errno));
	if (!is_made && st.st_uid != geteuid()) // root's, which this user cannot replace
		return refuse_foreign(folder_fd, path, reterr);
	bool others_can_lock = !is_made && (st.st_mode & 0077) != 0; // made by an earlier version
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return error_set(reterr, -EBUSY,
			others_can_lock
				? "%s: another process holds this lock file of an earlier version; remove the file if no wattle process uses it"
				: "%s: another wattle process holds this lock",
			path);
	if (!exists_as_file(folder_fd, path, &st))
		return 1;
	if (others_can_lock) { // another user may have it open and would hold the lock after us
		unlinkat(folder_fd, path, 0);
		return 1;
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

int lock_file_take(int folder_fd, const char *path, int *ret_fd, struct wattle_error *reterr)
{
	for (int i = 0; i < TRIES; i++) {
		int r = try(folder_fd, path, ret_fd, reterr);
		if (r <= 0)
			return r;
	}
	return error_set(reterr, -EBUSY, "%s: other processes keep replacing this lock file; try again", path);
}

void lock_file_drop(int folder_fd, const char *path, int fd)
{
	struct stat st;
	if (fstat(fd, &st) == 0 && exists_as_file(folder_fd, path, &st))
		unlinkat(folder_fd, path, 0);
	close(fd);
}
