/* The processes that a recording follows without being their parent: it ends with the last of them. */
#include "sampler/recorder.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_root(struct recorder_roots *roots, pid_t pid, struct wattle_error *reterr)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return error_set(reterr, -errno, "can't watch process %d: %s", pid, strerror(errno));
	roots->fds[roots->n++] = fd;
	roots->running++;
	return 0;
}

int recorder_roots_open(struct recorder *recorder, pid_t pid, struct wattle_error *reterr)
{
	const struct recorder_options *options = recorder->options;
	struct recorder_roots *roots = &recorder->roots;
	roots->fds = calloc_array(options->n_also + 1, sizeof(*roots->fds));
	if (roots->fds == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	int r = open_root(roots, pid, reterr);
	for (size_t i = 0; r == 0 && i < options->n_also; i++)
		r = open_root(roots, options->also[i], reterr);
	return r;
}

int recorder_roots_watch(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->roots.n; i++) {
		int fd = recorder->roots.fds[i];
		struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
		if (epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
			return -errno;
	}
	return 0;
}

bool recorder_roots_ended(struct recorder *recorder, int fd)
{
	struct recorder_roots *roots = &recorder->roots;
	for (size_t i = 0; i < roots->n; i++) {
		if (roots->fds[i] != fd)
			continue;
		close(fd); // which also removes it from epoll
		roots->fds[i] = -1;
		return --roots->running == 0;
	}
	return false;
}

void recorder_roots_close(struct recorder *recorder)
{
	struct recorder_roots *roots = &recorder->roots;
	for (size_t i = 0; i < roots->n; i++)
		if (roots->fds[i] >= 0)
			close(roots->fds[i]);
	free(roots->fds);
	*roots = (struct recorder_roots){0};
}
