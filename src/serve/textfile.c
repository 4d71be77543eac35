#include "serve/textfile.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_CEILING = 1 << 25, PATH_SIZE = 4096 };
static const char ending[] = ".prom";

/* Two who write one file would tell, in turns, the counters of one and of the other: to Prometheus each step down is a counter that began
 * anew and got to its height at once. So whoever writes it holds the lock of the file itself, which is another at each look. */
static bool is_written_by_another(const char *path)
{
	enum { TRIES = 20 }; // it may have been replaced while we opened it
	struct stat ours, there;
	for (int i = 0; i < TRIES; i++) {
		wattle_cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return false;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK;
		if (fstat(fd, &ours) < 0 || stat(path, &there) < 0 ||
			(ours.st_ino == there.st_ino && ours.st_dev == there.st_dev))
			return false;
	}
	return true;
}

int textfile_open(struct textfile *file, const char *path, struct wattle_error *reterr)
{
	size_t length = path != NULL ? strlen(path) : 0;
	*file = (struct textfile){.lock_fd = -1};
	buf_init(&file->text, TEXT_CEILING);
	if (path == NULL)
		return 0;
	if (length < sizeof(ending) || strcmp(path + length - strlen(ending), ending) != 0 ||
		path[length - sizeof(ending)] == '/')
		return error_set(reterr, -EINVAL, "--textfile %s: node_exporter reads files whose names end in %s",
			path, ending);
	if (length >= PATH_SIZE - sizeof(".tmp"))
		return error_set(reterr, -EINVAL, "--textfile: a path of %zu bytes is too long", length);
	if (is_written_by_another(path))
		return error_set(reterr, -EBUSY,
			"--textfile %s: another wattle serve writes it; give one of them another file", path);
	file->path = path;
	return 0;
}

/* node_exporter is another user and has to be able to read it, whatever our umask is; an administrator who gave the file another mode
 * knew why. */
static mode_t mode_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? st.st_mode & 0777 : 0644;
}

// One name for all that is not finished: what a kill, or somebody else, has left there is never written into.
static int replace(struct textfile *file)
{
	char temporary[PATH_SIZE];
	snprintf(temporary, sizeof(temporary), "%s.tmp", file->path);
	unlink(temporary);
	wattle_cleanup_close int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	int r = file->text.failed != 0 ? file->text.failed : buf_write_fd(&file->text, fd);
	if (r == 0 && fchmod(fd, mode_of(file->path)) < 0)
		r = -errno;
	if (r == 0)
		flock(fd, LOCK_EX | LOCK_NB); // where there are no locks nobody is kept out
	if (r == 0 && rename(temporary, file->path) < 0)
		r = -errno;
	if (r < 0) {
		unlink(temporary);
		return r;
	}
	if (file->lock_fd >= 0)
		close(file->lock_fd);
	file->lock_fd = fd;
	fd = -1;
	return 0;
}

void textfile_write(struct textfile *file, const struct view *view)
{
	if (file->path == NULL)
		return;
	buf_clear(&file->text);
	view_textfile(view, &file->text);
	file->failed = replace(file);
}

void textfile_close(struct textfile *file)
{
	if (file->path != NULL && file->lock_fd >= 0) {
		unlink(file->path);
		close(file->lock_fd);
	}
	file->path = NULL;
	file->lock_fd = -1;
	buf_finish(&file->text);
}
