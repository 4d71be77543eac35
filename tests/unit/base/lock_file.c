#include "base/lock_file.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_fixed_owner; // file system type that the tests simulate

// As vfat, CIFS and NFS with root_squash report files: one owner and one mode for all.
int fstat(int fd, struct stat *ret_st)
{
	int r = fstatat(fd, "", ret_st, AT_EMPTY_PATH);
	if (r == 0 && has_fixed_owner) {
		ret_st->st_mode = S_IFREG | 0755;
		ret_st->st_uid = 65533;
	}
	return r;
}

static int replaced_in_fd = -1; // folder in which another process replaces the lock file; -1: none

// Once, between open and lock.
int flock(int fd, int operation)
{
	if (replaced_in_fd >= 0) {
		unlinkat(replaced_in_fd, "lock", 0);
		close(openat(replaced_in_fd, "lock", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		replaced_in_fd = -1;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

static const struct row {
	const char *teaches;
	bool has_fixed_owner;
	enum { NONE, OLD, HELD, LINK, FOLDER } existing;
	int expected;
} rows[] = {
	{"no file: the lock is taken", false, NONE, 0},
	{"file system with a fixed owner: the lock is taken", true, NONE, 0},
	{"file of mode 0644 that nobody has locked: it is replaced", false, OLD, 0},
	{"file locked through another descriptor: busy", false, HELD, -EBUSY},
	{"symbolic link: refused", false, LINK, -EPERM},
	{"folder: refused", false, FOLDER, -EPERM},
	{"file of another user: refused", true, OLD, -EPERM},
};

static void check(void **state)
{
	const struct row *row = *state;
	char folder[] = "/tmp/lock_file.XXXXXX";
	assert_non_null(mkdtemp(folder));
	int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), held_fd = -1, fd = -1;
	assert_true(folder_fd >= 0);
	if (row->existing == OLD)
		close(openat(folder_fd, "lock", O_CREAT | O_WRONLY, 0644));
	else if (row->existing == HELD)
		assert_int_equal(lock_file_take(folder_fd, "lock", &held_fd, NULL), 0);
	else if (row->existing == LINK)
		assert_int_equal(symlinkat("target", folder_fd, "lock"), 0);
	else if (row->existing == FOLDER)
		assert_int_equal(mkdirat(folder_fd, "lock", 0700), 0);
	has_fixed_owner = row->has_fixed_owner;
	int r = lock_file_take(folder_fd, "lock", &fd, NULL);
	has_fixed_owner = false;
	if (r == 0)
		lock_file_drop(folder_fd, "lock", fd);
	if (held_fd >= 0)
		lock_file_drop(folder_fd, "lock", held_fd);
	unlinkat(folder_fd, "lock", row->existing == FOLDER ? AT_REMOVEDIR : 0);
	unlinkat(folder_fd, "target", 0);
	close(folder_fd);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(r, row->expected);
}

static void replaced(void **state)
{
	char folder[] = "/tmp/lock_file.XXXXXX";
	assert_non_null(mkdtemp(folder));
	int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct stat ours, there;
	replaced_in_fd = folder_fd;
	assert_int_equal(lock_file_take(folder_fd, "lock", &fd, NULL), 0);
	assert_int_equal(fstat(fd, &ours) | fstatat(folder_fd, "lock", &there, 0), 0);
	lock_file_drop(folder_fd, "lock", fd);
	unlinkat(folder_fd, "lock", 0);
	close(folder_fd);
	assert_int_equal(rmdir(folder), 0);
	assert_true(ours.st_ino == there.st_ino);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "file replaced between open and lock: the new one is locked", replaced);
	return rows_run(&tests, "lock_file");
}
