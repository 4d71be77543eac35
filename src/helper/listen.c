#include "helper/helper.h"

#include "base/lock_file.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LISTEN_FDS_START = 3, BACKLOG = 1024 }; // sd_listen_fds(3); limited to net.core.somaxconn

static int set_flags(int fd)
{
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static int option_of(int fd, int option)
{
	int value;
	socklen_t size = sizeof(value);
	return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

size_t listener_handed_over(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	uint64_t for_pid = 0, count = 0;
	if (pid == NULL || n == NULL || num_parse_u64(pid, &for_pid) < 0 || num_parse_u64(n, &count) < 0)
		return 0;
	return for_pid == (uint64_t)getpid() ? (size_t)count : 0;
}

static int take_over(struct listener *listener, struct wattle_error *reterr)
{
	int fd = LISTEN_FDS_START;
	if (option_of(fd, SO_DOMAIN) != AF_UNIX || option_of(fd, SO_TYPE) != SOCK_STREAM ||
		option_of(fd, SO_ACCEPTCONN) != 1)
		return error_set(reterr, -EINVAL,
			"LISTEN_FDS: descriptor 3 is not a listening Unix stream socket; wattled.socket "
			"needs ListenStream= with a path, and Accept=no");
	int r = set_flags(fd);
	listener->fd = fd;
	return r;
}

static int make_folder(const char *path)
{
	char folder[sizeof(((struct listener *)0)->path)];
	text_copy(folder, sizeof(folder), path);
	char *slash = strrchr(folder, '/');
	if (slash == NULL || slash == folder)
		return 0;
	*slash = '\0';
	return mkdir(folder, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

enum { LOCK_PATH_SIZE = sizeof(((struct listener *)0)->path) + 8 };

static void lock_path(const struct listener *listener, char out[LOCK_PATH_SIZE])
{
	snprintf(out, LOCK_PATH_SIZE, "%s.lock", listener->path);
}

// The lock shows whether the wattled of this path is alive: the kernel releases the lock of a dead one.
static int lock(struct listener *listener, struct wattle_error *reterr)
{
	char path[LOCK_PATH_SIZE];
	lock_path(listener, path);
	struct wattle_error why = {0};
	int r = lock_file_take(AT_FDCWD, path, &listener->lock_fd, &why);
	if (r == -EBUSY)
		return error_set(reterr, -EADDRINUSE,
			"%s: another wattled already serves this socket; stop it, or give --socket another path",
			listener->path);
	if (r < 0)
		return error_set(reterr, r,
			"%s; wattled creates its socket in this folder: give --socket a path where it can write",
			why.text);
	return 0;
}

/* Makes the socket accessible to everybody by the umask: chmod() follows links, and users who may write to the
 * folder could replace the socket by a link in between. */
static int bind_for_all(int fd, const struct sockaddr_un *address)
{
	mode_t umask_before = umask(0111);
	int r = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
	umask(umask_before);
	return r;
}

// Creates the socket under a temporary name and renames it: the path never refers to a socket without a listener.
static int make_socket(struct listener *listener)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", listener->path);
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0)
		return -errno;
	if (unlink(address.sun_path) < 0 && errno != ENOENT)
		return -errno;
	int r = bind_for_all(listener->fd, &address);
	if (r < 0)
		return r;
	if (listen(listener->fd, BACKLOG) < 0 || lstat(address.sun_path, &st) < 0 ||
		rename(address.sun_path, listener->path) < 0)
		return -errno;
	listener->st_dev = st.st_dev;
	listener->st_ino = st.st_ino;
	return 0;
}

static int make(struct listener *listener, const char *path, struct wattle_error *reterr)
{
	enum { ROOM = sizeof(listener->path) - 1 };
	struct stat st;
	if (path[0] != '/' || strlen(path) > ROOM)
		return error_set(reterr, -EINVAL, "--socket %.140s: must be an absolute path of at most %d bytes", path,
			(int)ROOM);
	text_copy(listener->path, sizeof(listener->path), path);
	int r = make_folder(path);
	if (r < 0)
		return error_set(reterr, r, "can't create the folder of %s: %s", path, strerror(-r));
	r = lock(listener, reterr);
	if (r < 0)
		return r;
	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return error_set(reterr, -EEXIST, "%s: exists but is not a socket; give --socket another path", path);
	r = make_socket(listener);
	return r < 0 ? error_set(reterr, r, "%s: can't create the socket: %s", path, strerror(-r)) : 0;
}

int listener_open(struct listener *ret_listener, size_t n_handed_over, const char *path, struct wattle_error *reterr)
{
	*ret_listener = (struct listener){.fd = -1, .lock_fd = -1};
	int r;
	if (n_handed_over > 1)
		r = error_set(reterr, -EINVAL, "LISTEN_FDS: %zu sockets; wattled serves one", n_handed_over);
	else if (n_handed_over == 1)
		r = take_over(ret_listener, reterr);
	else
		r = make(ret_listener, path, reterr);
	if (r < 0)
		listener_close(ret_listener);
	return r;
}

void listener_close(struct listener *listener)
{
	struct stat st;
	if (listener->st_ino != 0 && lstat(listener->path, &st) == 0 && st.st_dev == listener->st_dev &&
		st.st_ino == listener->st_ino)
		unlink(listener->path);
	if (listener->fd >= 0)
		close(listener->fd);
	if (listener->lock_fd >= 0) {
		char path[LOCK_PATH_SIZE];
		lock_path(listener, path);
		lock_file_drop(AT_FDCWD, path, listener->lock_fd);
	}
	*listener = (struct listener){.fd = -1, .lock_fd = -1};
}
