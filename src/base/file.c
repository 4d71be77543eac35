#include "base/file.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { OPEN_TRIES_MAX = 1000 }; // an attempt takes microseconds

int file_open_in(int root_fd, const char *path, int flags)
{
	if (root_fd < 0)
		return -ENOENT;
	while (*path == '/') // plain openat would leave the root for an absolute path
		path++;
	// Never block on a fifo in place of a sysfs file, and never acquire a controlling terminal. O_PATH does neither, and
	// openat2 rejects the combination.
	flags |= O_CLOEXEC | ((flags & O_PATH) != 0 ? 0 : O_NONBLOCK | O_NOCTTY);
	struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int fd = -1;
	// A path with ".." (frequent in sysfs links) fails with EAGAIN during any concurrent rename, because the kernel can't
	// prove that it stays below the root.
	for (int tries = 0; tries < OPEN_TRIES_MAX; tries++) {
		fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) // kernels before 5.6; seccomp filters of old containers
		fd = openat(root_fd, path, flags);
	return fd < 0 ? -errno : fd;
}

// Uses one pread: the kernel returns a small file as a whole, and a read for end of file would make it format the file again.
static ssize_t read_once(int fd, char *out, size_t size)
{
	ssize_t n;
	do
		n = pread(fd, out, size - 1, 0);
	while (n < 0 && errno == EINTR);
	out[n > 0 ? n : 0] = '\0';
	return n < 0 ? -errno : n;
}

static ssize_t read_from(int fd, char *out, size_t size)
{
	size_t length = 0;
	while (length < size - 1) {
		ssize_t n = pread(fd, out + length, size - 1 - length, (off_t)length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		length += (size_t)n;
		if (n == 0)
			break;
	}
	out[length] = '\0';
	return (ssize_t)length;
}

ssize_t file_read_in(int root_fd, const char *path, char *out, size_t size)
{
	wattle_cleanup_close int fd = file_open_in(root_fd, path, O_RDONLY);
	return fd < 0 ? fd : read_from(fd, out, size);
}

ssize_t file_read_line_in(int root_fd, const char *path, char *out, size_t size)
{
	ssize_t length = file_read_in(root_fd, path, out, size);
	while (length > 0 && strchr(" \t\n\r", out[length - 1]) != NULL)
		out[--length] = '\0';
	return length;
}

int file_read_u64_in(int root_fd, const char *path, uint64_t *ret_value)
{
	char text[64];
	ssize_t length = file_read_in(root_fd, path, text, sizeof(text));
	return length < 0 ? (int)length : num_parse_sysfs_u64(text, (size_t)length, ret_value);
}

int file_read_all_in(int root_fd, const char *path, size_t ceiling, char **ret_text, size_t *ret_size)
{
	wattle_cleanup_close int fd = file_open_in(root_fd, path, O_RDONLY);
	if (fd < 0)
		return fd;
	wattle_cleanup_free char *text = NULL;
	size_t size = 0, capacity = 0;
	for (;;) {
		if (size + 1 >= capacity) {
			capacity = capacity > 0 ? capacity * 2 : 16384;
			char *larger = realloc(text, capacity);
			if (larger == NULL)
				return -ENOMEM;
			text = larger;
		}
		ssize_t n = pread(fd, text + size, capacity - 1 - size, (off_t)size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
		if (size > ceiling)
			return -EFBIG;
	}
	text[size] = '\0';
	*ret_text = text;
	*ret_size = size;
	text = NULL;
	return 0;
}

bool file_readable_in(int root_fd, const char *path, int *ret_errno)
{
	wattle_cleanup_close int fd = file_open_in(root_fd, path, O_RDONLY);
	*ret_errno = fd < 0 ? -fd : 0;
	return fd >= 0;
}

ssize_t file_head(const char *path, void *out, size_t size)
{
	struct stat st;
	if (stat(path, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd >= 0 ? pread(fd, out, size, 0) : -1;
	return n >= 0 ? n : -errno;
}

// Kernel files keep their inode as long as they exist; files of a test tree may be replaced by rename.
static bool is_kernel_file(int fd)
{
	struct statfs fs;
	return fstatfs(fd, &fs) == 0 && (fs.f_type == SYSFS_MAGIC || fs.f_type == PROC_SUPER_MAGIC);
}

static int reopen(struct file_kept *kept)
{
	if (kept->fd >= 0)
		close(kept->fd);
	kept->fd = file_open_in(kept->root_fd, kept->path, O_RDONLY);
	if (kept->fd < 0) {
		int code = kept->fd;
		kept->fd = -1;
		return code;
	}
	kept->may_be_replaced = !is_kernel_file(kept->fd);
	return 0;
}

int file_kept_open(struct file_kept *kept, int root_fd, const char *path)
{
	*kept = (struct file_kept){.fd = -1, .root_fd = root_fd};
	if (!text_copy(kept->path, sizeof(kept->path), path))
		return -ENAMETOOLONG;
	return reopen(kept);
}

void file_kept_close(struct file_kept *kept)
{
	if (kept->fd >= 0)
		close(kept->fd);
	kept->fd = -1;
}

static bool was_replaced(const struct file_kept *kept)
{
	struct stat st;
	return kept->may_be_replaced && (fstat(kept->fd, &st) != 0 || st.st_nlink == 0);
}

ssize_t file_kept_read(struct file_kept *kept, char *out, size_t size)
{
	if (kept->fd < 0 || was_replaced(kept)) {
		int r = reopen(kept);
		if (r < 0)
			return r;
	}
	ssize_t length = read_once(kept->fd, out, size);
	if (length != -ENODEV && length != -ESRCH && length != -ESTALE)
		return length;
	int r = reopen(kept); // removed and perhaps registered again: the old descriptor stays invalid
	return r < 0 ? r : read_once(kept->fd, out, size);
}

int file_kept_read_u64(struct file_kept *kept, uint64_t *ret_value)
{
	char text[64];
	ssize_t length = file_kept_read(kept, text, sizeof(text));
	return length < 0 ? (int)length : num_parse_sysfs_u64(text, (size_t)length, ret_value);
}

int file_kept_read_i64(struct file_kept *kept, int64_t *ret_value)
{
	char text[64];
	ssize_t length = file_kept_read(kept, text, sizeof(text));
	return length < 0 ? (int)length : num_parse_sysfs_i64(text, (size_t)length, ret_value);
}
