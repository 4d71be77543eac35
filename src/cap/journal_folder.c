/* Opens the folder of the journal. Root writes the values of a journal into hardware registers, so root uses a journal only if nobody
 * else can change it or replace a part of its path. The path is opened component by component: the checked folders are the used ones. */
#include "cap/journal.h"

#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; // as the kernel's MAXSYMLINKS

struct walk {
	const char *path; // for messages
	bool make;        // create missing folders
	int fd;           // owned: the folder reached so far, O_PATH
	char rest[2 * PATH_MAX];
	int n_links;
	struct wattle_error *reterr;
};

static int refuse(const struct walk *walk, const char *name, const char *why)
{
	char link[40], folder[256];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", walk->fd);
	ssize_t length = readlink(link, folder, sizeof(folder) - 1);
	folder[length > 1 ? length : 0] = '\0'; // "/" ends in one already
	return error_set(walk->reterr, -EPERM,
		"refusing the journal of power limits %.200s: %s/%.100s %s; root's journal must be in folders that only root "
		"can write",
		walk->path, folder, name, why);
}

/* Other users are not checked: they can restore only limits that they may set anyway. A sticky folder such as /tmp may be on the path,
 * since others cannot move root's entries in it, but not at its end. */
static int check(const struct walk *walk, const char *name, const struct stat *st, bool is_last)
{
	if (geteuid() != 0)
		return 0;
	char owner[48];
	snprintf(owner, sizeof(owner), "belongs to user %u", st->st_uid);
	if (st->st_uid != 0)
		return refuse(walk, name, owner);
	bool is_shared = (st->st_mode & (S_IWGRP | S_IWOTH)) != 0;
	if (!S_ISLNK(st->st_mode) && is_shared && (is_last || (st->st_mode & S_ISVTX) == 0))
		return refuse(walk, name, "can be written by other users");
	return 0;
}

static int start_at_root(struct walk *walk)
{
	struct stat st;
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (walk->fd >= 0)
		close(walk->fd);
	walk->fd = fd;
	return check(walk, "", &st, false);
}

// Replaces the link by its target in the rest of the path.
static int follow(struct walk *walk, int link_fd)
{
	char joined[sizeof(walk->rest)];
	ssize_t length = readlinkat(link_fd, "", joined, PATH_MAX);
	if (length < 0)
		return -errno;
	if (++walk->n_links > LINKS_MAX || length == PATH_MAX)
		return -ELOOP;
	int n = snprintf(joined + length, sizeof(joined) - (size_t)length, "/%s", walk->rest);
	if (n < 0 || (size_t)n >= sizeof(joined) - (size_t)length)
		return -ENAMETOOLONG;
	text_copy(walk->rest, sizeof(walk->rest), joined);
	return joined[0] == '/' ? start_at_root(walk) : 0;
}

/* Other users may read the folder: `wattle cap list` shows them who holds a lease. The caller's umask is overruled, since it could
 * hide leases from them. */
static int make_folder(int at_fd, const char *name)
{
	if (mkdirat(at_fd, name, 0755) == 0)
		return fchmodat(at_fd, name, 0755, 0) == 0 ? 0 : -errno;
	return errno == EEXIST ? 0 : -errno;
}

static int step(struct walk *walk, const char *name)
{
	struct stat st;
	static const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int r = 0;
	wattle_cleanup_close int fd = openat(walk->fd, name, flags);
	if (fd < 0 && errno == ENOENT && walk->make) {
		r = make_folder(walk->fd, name);
		fd = openat(walk->fd, name, flags);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return r < 0 ? r : -errno;
	bool is_last = walk->rest[strspn(walk->rest, "/")] == '\0';
	r = check(walk, name, &st, is_last);
	if (r < 0)
		return r;
	if (S_ISLNK(st.st_mode))
		return follow(walk, fd);
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	close(walk->fd);
	walk->fd = take_fd(&fd);
	return 0;
}

// Removes the next component from the rest of the path; "": none is left.
static void next_name(struct walk *walk, char out[PATH_MAX])
{
	const char *at = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(at, "/"), size = length < PATH_MAX ? length : PATH_MAX - 1;
	memcpy(out, at, size);
	out[size] = '\0';
	memmove(walk->rest, at + length, strlen(at + length) + 1);
}

static int walk_path(struct walk *walk)
{
	char name[PATH_MAX];
	size_t length = 0;
	if (walk->path[0] != '/') {
		if (getcwd(walk->rest, PATH_MAX) == NULL)
			return -errno;
		length = strlen(walk->rest);
		walk->rest[length++] = '/';
	}
	if (!text_copy(walk->rest + length, sizeof(walk->rest) - length, walk->path))
		return -ENAMETOOLONG;
	int r = start_at_root(walk);
	for (next_name(walk, name); r == 0 && name[0] != '\0'; next_name(walk, name))
		r = step(walk, name);
	return r;
}

int journal_folder_open(const char *path, bool make, struct wattle_error *reterr)
{
	struct wattle_error why = {0};
	struct walk walk = {.path = path, .make = make, .fd = -1, .reterr = &why};
	int r = walk_path(&walk);
	int fd = r == 0 ? openat(walk.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (r == 0 && fd < 0)
		r = -errno;
	if (walk.fd >= 0)
		close(walk.fd);
	if (r == 0)
		return fd;
	if (why.text[0] == '\0' && (r != -ENOENT || make))
		error_set(&why, r,
			"%s: %s; wattle changes no limit without a journal; set WATTLE_STATE to another folder", path,
			strerror(-r));
	// A journal that does not exist needs no warning.
	if (!make && r == -EPERM && access(path, F_OK) != 0)
		return -ENOENT;
	if (reterr != NULL && why.text[0] != '\0')
		*reterr = why;
	return r;
}
