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
static enum output_file_recorder recorder_of(int fd)
{
	struct flock lock = mark_of(F_RDLCK);
	if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
		return OUTPUT_FILE_RECORDER_UNKNOWN;
	return lock.l_type != F_UNLCK ? OUTPUT_FILE_RECORDER_LIVES : OUTPUT_FILE_RECORDER_NONE;
}

enum output_file_recorder output_file_recorder(const char *path)
{
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd >= 0 ? recorder_of(fd) : OUTPUT_FILE_RECORDER_NONE; // callers report the error of open later
}

static bool same_file(int fd, const char *path)
{
	struct stat ours, there;
	return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_dev == there.st_dev &&
		ours.st_ino == there.st_ino;
}

static int refuse_busy(const struct output_file *output, struct wattle_error *reterr)
{
	return error_set(reterr, -EBUSY,
		"%s: another recorder is writing to it; wait for its end or choose another file", output->path);
}

static void lock_path(const struct output_file *output, char out[OUTPUT_FILE_PATH_SIZE])
{
	snprintf(out, OUTPUT_FILE_PATH_SIZE, "%.*s" LOCK_ENDING, OUTPUT_FILE_PATH_SIZE - 8, output->path);
}

static int refuse_folder(const struct output_file *output, int code, struct wattle_error *reterr)
{
	char copy[OUTPUT_FILE_PATH_SIZE];
	text_copy(copy, sizeof(copy), output->path);
	const char *folder = dirname(copy);
	if (code == -ENOENT)
		return error_set(reterr, code, "%s: the folder %s does not exist; create it first", output->path,
			folder);
	return error_set(reterr, code, "%s: can't create a file in folder %s: %s", output->path, folder,
		strerror(-code));
}

static int take_lock(struct output_file *output, bool exists, struct wattle_error *reterr)
{
	char path[OUTPUT_FILE_PATH_SIZE];
	struct wattle_error why = {0};
	lock_path(output, path);
	int r = lock_file_take(AT_FDCWD, path, &output->lock_fd, &why);
	if (r == -EBUSY)
		return refuse_busy(output, reterr);
	if (r < 0 && !exists && r != -EPERM)
		return refuse_folder(output, r, reterr);
	if (r < 0)
		return error_set(reterr, r, "%s: can't write to it: %s", output->path, why.text);
	output->is_locked = true;
	return 0;
}

static void drop_lock(struct output_file *output)
{
	char path[OUTPUT_FILE_PATH_SIZE];
	lock_path(output, path);
	if (output->is_locked)
		lock_file_drop(AT_FDCWD, path, output->lock_fd);
	output->is_locked = false;
}

// Opens the existing file at the name; the lock is held.
static int open_existing(struct output_file *output, struct wattle_error *reterr)
{
	wattle_cleanup_close int fd = open(output->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0) {
		int code = -errno;
		return error_set(reterr, code, "%s: can't write to it: %s", output->path, strerror(-code));
	}
	int r = take_lock(output, true, reterr);
	if (r < 0)
		return r;
	// Between open and lock another recorder may have replaced the file and exited.
	if (recorder_of(fd) == OUTPUT_FILE_RECORDER_LIVES || !same_file(fd, output->path))
		return refuse_busy(output, reterr);
	output->fd = take_fd(&fd);
	return 0;
}

/* Finds a free hidden name in the same folder, so that a rename stays within one file system. In a container many recorders
 * have the same pid one after the other, and a killed one may have left its files behind. */
static int hidden_name(const struct output_file *output, const char *ending, char *out)
{
	const char *slash = strrchr(output->path, '/');
	int folder = slash != NULL ? (int)(slash - output->path) + 1 : 0;
	for (int i = 0; i < 100; i++) {
		int length = snprintf(out, OUTPUT_FILE_PATH_SIZE, "%.*s.%s.%ld-%d.%s", folder, output->path,
			output->path + folder, (long)getpid(), i, ending);
		struct stat st;
		if (length >= OUTPUT_FILE_PATH_SIZE)
			return -ENAMETOOLONG;
		if (lstat(out, &st) != 0)
			return 0;
	}
	return -EEXIST;
}

static int make_new(struct output_file *output, mode_t mode, struct wattle_error *reterr)
{
	int r = hidden_name(output, "new", output->temporary_path);
	if (r == 0) {
		output->fd = open(output->temporary_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			mode != 0 ? mode & 0600 : 0666);
		r = output->fd < 0 ? -errno : 0;
		if (r == 0 && mode != 0)
			fchmod(output->fd, mode); // some file systems do not support modes
	}
	if (r < 0) {
		output->temporary_path[0] = '\0';
		return refuse_folder(output, r, reterr);
	}
	put_mark(output->fd);
	output->is_new = true;
	return 0;
}

// Whether the existing file may be appended to or replaced.
static int check_existing(const struct output_file *output, const struct stat *st,
	const struct store_open_options *options, struct wattle_error *reterr)
{
	if (S_ISDIR(st->st_mode))
		return error_set(reterr, -EISDIR, "%s is a folder; give a file name for the %s", output->path,
			output->what);
	if (!S_ISREG(st->st_mode))
		return error_set(reterr, -EINVAL, "%s is not a regular file; the %s must be one", output->path,
			output->what);
	if (options->overwrite || options->append)
		return 0;
	return error_set(reterr, -EEXIST, "%s exists: use --overwrite to replace it or --append to add a segment",
		output->path);
}

// Append: keeps the descriptor of the existing file. Replace: opens it only to check that it is writable.
static int open_or_replace(struct output_file *output, const struct store_open_options *options, const struct stat *st,
	struct wattle_error *reterr)
{
	int r = check_existing(output, st, options, reterr);
	if (r < 0)
		return r;
	char resolved[PATH_MAX]; // a symbolic link stays; its target is replaced
	if (realpath(output->path, resolved) != NULL)
		text_copy(output->path, sizeof(output->path), resolved);
	r = open_existing(output, reterr);
	if (r < 0)
		return r;
	if (options->append) {
		put_mark(output->fd);
		return 0;
	}
	close(output->fd);
	output->fd = -1;
	output->replaces = true;
	return make_new(output, options->mode, reterr);
}

static int lock_and_make(struct output_file *output, mode_t mode, struct wattle_error *reterr)
{
	int r = take_lock(output, false, reterr);
	return r < 0 ? r : make_new(output, mode, reterr);
}

int output_file_open(struct output_file *output, const struct store_open_options *options, const char *what,
	struct wattle_error *reterr)
{
	*output = (struct output_file){.what = what, .fd = -1};
	if (options->overwrite && options->append)
		return error_set(reterr, -EINVAL, "--overwrite and --append can't be combined; give one of them");
	// Space for the suffixes of hidden names and of SQLite's files.
	if (options->path[0] == '\0' || strlen(options->path) >= OUTPUT_FILE_PATH_SIZE - 64)
		return error_set(reterr, -EINVAL, "the %s needs a name of 1 to %d bytes", what,
			OUTPUT_FILE_PATH_SIZE - 65);
	text_copy(output->path, sizeof(output->path), options->path);
	struct stat st;
	int r = stat(output->path, &st) == 0          ? open_or_replace(output, options, &st, reterr)
		: errno == ENOENT || errno == ENOTDIR ? lock_and_make(output, options->mode, reterr)
						      : refuse_folder(output, -errno, reterr);
	if (r < 0)
		drop_lock(output);
	return r;
}

// Renames a file and the files that SQLite keeps beside it.
static int move(const char *from, const char *to)
{
	if (rename(from, to) != 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(companions); i++) {
		char old[OUTPUT_FILE_PATH_SIZE + 16], new[OUTPUT_FILE_PATH_SIZE + 16];
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
		char name[OUTPUT_FILE_PATH_SIZE + 16];
		snprintf(name, sizeof(name), "%s%s", path, companions[i]);
		unlink(name);
	}
}

void output_file_remove(const char *path)
{
	char lock[OUTPUT_FILE_PATH_SIZE + 16];
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

static int set_aside(struct output_file *output)
{
	char old_path[OUTPUT_FILE_PATH_SIZE];
	int r = hidden_name(output, "old", old_path);
	if (r == 0)
		r = move(output->path, old_path);
	if (r == 0)
		text_copy(output->old_path, sizeof(output->old_path), old_path);
	return r;
}

static void restore_old(struct output_file *output)
{
	if (output->old_path[0] != '\0')
		move(output->old_path, output->path);
	output->old_path[0] = '\0';
}

int output_file_publish(struct output_file *output, struct wattle_error *reterr)
{
	int r = output->replaces ? set_aside(output) : 0;
	if (r < 0)
		return error_set(reterr, r, "%s: can't replace it: %s", output->path, strerror(-r));
	r = companions_clear(output->path, reterr);
	if (r < 0) {
		restore_old(output);
		return r;
	}
	r = rename_to_free_name(output->temporary_path, output->path);
	if (r < 0) {
		restore_old(output);
		return error_set(reterr, r, "%s: %s", output->path, strerror(-r));
	}
	output->temporary_path[0] = '\0';
	return 0;
}

void output_file_discard_old(struct output_file *output)
{
	if (output->old_path[0] != '\0')
		remove_all(output->old_path);
	output->old_path[0] = '\0';
}

bool output_file_is_ours(const struct output_file *output)
{
	return output->fd >= 0 && same_file(output->fd, output->path);
}

void output_file_close(struct output_file *output, bool discard)
{
	if (output->temporary_path[0] != '\0') {
		unlink(output->temporary_path);
	} else if (discard && output->is_new && output_file_is_ours(output)) {
		remove_all(output->path);
		restore_old(output);
	}
	output_file_discard_old(output);
	if (output->fd >= 0)
		close(output->fd);
	output->fd = -1;
	drop_lock(output);
}
