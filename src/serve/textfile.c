#include "serve/view.h"

#include "base/cleanup.h"
#include "base/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_CEILING = 1 << 25, PATH_SIZE = 4096 };
static const char ending[] = ".prom";

static void lock_path(const char *path, char out[PATH_SIZE])
{
	snprintf(out, PATH_SIZE, "%s.lock", path);
}

/* Two writers of one file would alternate their counters. Prometheus takes each decrease for a reset and adds the full
 * value again. */
static int take_lock(struct textfile *file, const char *path, struct wattle_error *reterr)
{
	char lock[PATH_SIZE];
	struct wattle_error why = {0};
	lock_path(path, lock);
	int r = lock_file_take(AT_FDCWD, lock, &file->lock_fd, &why);
	if (r == -EBUSY)
		return error_set(reterr, r,
			"--textfile %s: another wattle serve writes this file; give another file", path);
	return r < 0 ? error_set(reterr, r, "--textfile %s", why.text) : 0;
}

int textfile_open(struct textfile *file, const char *path, struct wattle_error *reterr)
{
	size_t length = path != NULL ? strlen(path) : 0;
	*file = (struct textfile){0};
	buf_init(&file->text, TEXT_CEILING);
	if (path == NULL)
		return 0;
	if (length < sizeof(ending) || strcmp(path + length - strlen(ending), ending) != 0 ||
		path[length - sizeof(ending)] == '/')
		return error_set(reterr, -EINVAL, "--textfile %s: node_exporter reads files whose names end in %s",
			path, ending);
	if (length >= PATH_SIZE - sizeof(".lock"))
		return error_set(reterr, -EINVAL, "--textfile: the path is too long (%zu bytes)", length);
	int r = take_lock(file, path, reterr);
	if (r < 0)
		return r;
	file->path = path;
	return 0;
}

/* node_exporter runs as another user and must be able to read the file, whatever the umask. A mode that an administrator
 * has set is kept. */
static mode_t mode_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? st.st_mode & 0777 : 0644;
}

// Uses one name for unfinished files. Leftovers of a killed server or of another process are removed, never written into.
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
	if (r == 0 && rename(temporary, file->path) < 0)
		r = -errno;
	if (r < 0)
		unlink(temporary);
	else
		file->is_written = true;
	return r;
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
	char lock[PATH_SIZE];
	if (file->path != NULL) {
		if (file->is_written)
			unlink(file->path);
		lock_path(file->path, lock);
		lock_file_drop(AT_FDCWD, lock, file->lock_fd);
	}
	file->path = NULL;
	buf_finish(&file->text);
}
