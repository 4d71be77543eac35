#include "store/output_file.h"

#include "base/cleanup.h"
#include "base/lock_file.h"
#include "base/util.h"
#include "store/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Files that may belong to a run file besides the file itself and its lock: SQLite's files and the spool.
static const char *const companions[] = {"-wal", "-shm", "-journal", "-spans"};

#define LOCK_ENDING "-lock"

// An offset far beyond the bytes that SQLite locks (0x40000000 and the 511 after it).
enum { LOCK_BYTE = 0x57544c31 };

static struct flock mark_of(short type)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};
}

/* The recorder mark: a write lock of the open file description on one byte of the run file. SQLite's own locks, and SQLite
 * closing the file, do not affect it; the kernel drops it however this process ends. The mark shows readers, including other
 * users who cannot open the lock file, that a recorder is running. Write access is decided by the lock file, not by the mark: a
 * reader can prevent the mark with a read lock on the byte. A mark without a lock file belongs to a file that has a second name
 * or was renamed since. */
static void put_mark(int fd)
{
	struct flock lock = mark_of(F_WRLCK);
	fcntl(fd, F_OFD_SETLK, &lock);
}

// A read lock conflicts with write locks only: with those of recorders, not of readers.
static enum place_recorder recorder_of(int fd)
{
	struct flock lock = mark_of(F_RDLCK);
	if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
		return PLACE_RECORDER_UNKNOWN;
	return lock.l_type != F_UNLCK ? PLACE_RECORDER_LIVES : PLACE_RECORDER_NONE;
}

enum place_recorder place_recorder(const char *path)
{
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd >= 0 ? recorder_of(fd) : PLACE_RECORDER_NONE; // callers report the error of open later
}

static bool same_file(int fd, const char *path)
{
	struct stat ours, there;
	return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_dev == there.st_dev &&
		ours.st_ino == there.st_ino;
}

static int refuse_busy(const struct place *place, struct wattle_error *reterr)
{
	return error_set(reterr, -EBUSY,
		"%s: another recorder is writing to it; wait for its end or choose another file", place->path);
}

static void lock_path(const struct place *place, char out[PLACE_PATH_SIZE])
{
	snprintf(out, PLACE_PATH_SIZE, "%.*s" LOCK_ENDING, PLACE_PATH_SIZE - 8, place->path);
}

static int refuse_folder(const struct place *place, int code, struct wattle_error *reterr)
{
	char copy[PLACE_PATH_SIZE];
	text_copy(copy, sizeof(copy), place->path);
	const char *folder = dirname(copy);
	if (code == -ENOENT)
		return error_set(reterr, code, "%s: the folder %s does not exist; create it first", place->path, folder);
	return error_set(reterr, code, "%s: can't create a file in folder %s: %s", place->path, folder,
		strerror(-code));
}

static int take_lock(struct place *place, bool exists, struct wattle_error *reterr)
{
	char path[PLACE_PATH_SIZE];
	struct wattle_error why = {0};
	lock_path(place, path);
	int r = lock_file_take(AT_FDCWD, path, &place->lock_fd, &why);
	if (r == -EBUSY)
		return refuse_busy(place, reterr);
	if (r < 0 && !exists && r != -EPERM)
		return refuse_folder(place, r, reterr);
	if (r < 0)
		return error_set(reterr, r, "%s: can't write to it: %s", place->path, why.text);
	place->is_locked = true;
	return 0;
}

static void drop_lock(struct place *place)
{
	char path[PLACE_PATH_SIZE];
	lock_path(place, path);
	if (place->is_locked)
		lock_file_drop(AT_FDCWD, path, place->lock_fd);
	place->is_locked = false;
}

// Opens the existing file at the name; the lock is held.
static int open_existing(struct place *place, struct wattle_error *reterr)
{
	wattle_cleanup_close int fd = open(place->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		int code = -errno;
		return error_set(reterr, code, "%s: can't write to it: %s", place->path, strerror(-code));
	}
	int r = take_lock(place, true, reterr);
	if (r < 0)
		return r;
	// Between open and lock another recorder may have replaced the file and exited.
	if (recorder_of(fd) == PLACE_RECORDER_LIVES || !same_file(fd, place->path))
		return refuse_busy(place, reterr);
	place->fd = take_fd(&fd);
	return 0;
}

/* Finds a free hidden name in the same folder, so that a rename stays within one file system. In a container many recorders
 * have the same pid one after the other, and a killed one may have left its files behind. */
static int hidden_name(const struct place *place, const char *ending, char *out)
{
	const char *slash = strrchr(place->path, '/');
	int folder = slash != NULL ? (int)(slash - place->path) + 1 : 0;
	for (int i = 0; i < 100; i++) {
		int length = snprintf(out, PLACE_PATH_SIZE, "%.*s.%s.%ld-%d.%s", folder, place->path,
			place->path + folder, (long)getpid(), i, ending);
		struct stat st;
		if (length >= PLACE_PATH_SIZE)
			return -ENAMETOOLONG;
		if (lstat(out, &st) != 0)
			return 0;
	}
	return -EEXIST;
}

static int make_new(struct place *place, mode_t mode, struct wattle_error *reterr)
{
	int r = hidden_name(place, "new", place->making);
	if (r == 0) {
		place->fd = open(place->making, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode != 0 ? mode & 0600 : 0666);
		r = place->fd < 0 ? -errno : 0;
		if (r == 0 && mode != 0)
			fchmod(place->fd, mode); // some file systems do not support modes
	}
	if (r < 0) {
		place->making[0] = '\0';
		return refuse_folder(place, r, reterr);
	}
	put_mark(place->fd);
	place->is_new = true;
	return 0;
}

// Whether the existing file may be appended to or replaced.
static int check_existing(const struct place *place, const struct stat *st, const struct store_open_options *options,
	struct wattle_error *reterr)
{
	if (S_ISDIR(st->st_mode))
		return error_set(reterr, -EISDIR, "%s is a folder; give a file name for the %s", place->path,
			place->what);
	if (!S_ISREG(st->st_mode))
		return error_set(reterr, -EINVAL, "%s is not a regular file; the %s must be one", place->path,
			place->what);
	if (options->overwrite || options->append)
		return 0;
	return error_set(reterr, -EEXIST, "%s exists: use --overwrite to replace it or --append to add a segment",
		place->path);
}

// Append: keeps the descriptor of the existing file. Replace: opens it only to check that it is writable.
static int open_or_replace(struct place *place, const struct store_open_options *options, const struct stat *st,
	struct wattle_error *reterr)
{
	int r = check_existing(place, st, options, reterr);
	if (r < 0)
		return r;
	char resolved[PATH_MAX]; // a symbolic link stays; its target is replaced
	if (realpath(place->path, resolved) != NULL)
		text_copy(place->path, sizeof(place->path), resolved);
	r = open_existing(place, reterr);
	if (r < 0)
		return r;
	if (options->append) {
		put_mark(place->fd);
		return 0;
	}
	close(place->fd);
	place->fd = -1;
	place->replaces = true;
	return make_new(place, options->mode, reterr);
}

static int lock_and_make(struct place *place, mode_t mode, struct wattle_error *reterr)
{
	int r = take_lock(place, false, reterr);
	return r < 0 ? r : make_new(place, mode, reterr);
}

int place_open(struct place *place, const struct store_open_options *options, const char *what,
	struct wattle_error *reterr)
{
	*place = (struct place){.what = what, .fd = -1};
	if (options->overwrite && options->append)
		return error_set(reterr, -EINVAL, "--overwrite and --append can't be combined; give one of them");
	// Space for the suffixes of hidden names and of SQLite's files.
	if (options->path[0] == '\0' || strlen(options->path) >= PLACE_PATH_SIZE - 64)
		return error_set(reterr, -EINVAL, "the %s needs a name of 1 to %d bytes", what, PLACE_PATH_SIZE - 65);
	text_copy(place->path, sizeof(place->path), options->path);
	struct stat st;
	int r = stat(place->path, &st) == 0           ? open_or_replace(place, options, &st, reterr)
		: errno == ENOENT || errno == ENOTDIR ? lock_and_make(place, options->mode, reterr)
						      : refuse_folder(place, -errno, reterr);
	if (r < 0)
		drop_lock(place);
	return r;
}

// Renames a file and the files that SQLite keeps beside it.
static int move(const char *from, const char *to)
{
	if (rename(from, to) != 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(companions); i++) {
		char old[PLACE_PATH_SIZE + 16], new[PLACE_PATH_SIZE + 16];
		snprintf(old, sizeof(old), "%s%s", from, companions[i]);
		snprintf(new, sizeof(new), "%s%s", to, companions[i]);
		rename(old, new); // usually these files do not exist
	}
	return 0;
}

static void remove_all(const char *path)
{
	unlink(path);
	for (size_t i = 0; i < ARRAY_SIZE(companions); i++) {
		char name[PLACE_PATH_SIZE + 16];
		snprintf(name, sizeof(name), "%s%s", path, companions[i]);
		unlink(name);
	}
}

void place_remove(const char *path)
{
	char lock[PLACE_PATH_SIZE + 16];
	remove_all(path);
	snprintf(lock, sizeof(lock), "%s" LOCK_ENDING, path);
	unlink(lock);
}

// Never replaces a file that was created in the meantime. File systems without RENAME_NOREPLACE support hard links.
static int rename_to_free_name(const char *from, const char *to)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (link(from, to) != 0)
		return -errno;
	unlink(from);
	return 0;
}

static int set_aside(struct place *place)
{
	char aside[PLACE_PATH_SIZE];
	int r = hidden_name(place, "old", aside);
	if (r == 0)
		r = move(place->path, aside);
	if (r == 0)
		text_copy(place->aside, sizeof(place->aside), aside);
	return r;
}

static void bring_back(struct place *place)
{
	if (place->aside[0] != '\0')
		move(place->aside, place->path);
	place->aside[0] = '\0';
}

int place_settle(struct place *place, struct wattle_error *reterr)
{
	int r = place->replaces ? set_aside(place) : 0;
	if (r < 0)
		return error_set(reterr, r, "%s: can't replace it: %s", place->path, strerror(-r));
	r = companions_clear(place->path, reterr);
	if (r < 0) {
		bring_back(place);
		return r;
	}
	r = rename_to_free_name(place->making, place->path);
	if (r < 0) {
		bring_back(place);
		return error_set(reterr, r, "%s: %s", place->path, strerror(-r));
	}
	place->making[0] = '\0';
	return 0;
}

void place_keep(struct place *place)
{
	if (place->aside[0] != '\0')
		remove_all(place->aside);
	place->aside[0] = '\0';
}

bool place_is_ours(const struct place *place)
{
	return place->fd >= 0 && same_file(place->fd, place->path);
}

void place_close(struct place *place, bool discard)
{
	if (place->making[0] != '\0') {
		unlink(place->making);
	} else if (discard && place->is_new && place_is_ours(place)) {
		remove_all(place->path);
		bring_back(place);
	}
	place_keep(place);
	if (place->fd >= 0)
		close(place->fd);
	place->fd = -1;
	drop_lock(place);
}
