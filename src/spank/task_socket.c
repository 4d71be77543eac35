#include "spank/spank.h"

#include "base/clock.h"
#include "base/util.h"
#include "lib/tracker_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t KEEPERS_END_NS = 5 * NS_PER_S; // killing takes milliseconds
enum { TEXT_MAX = 64 << 10 }; // maximum text from a recorder: the job's user controls it, and slurmstepd is root

/* ---- connection ---- */

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int task_line_open(struct task_line *line)
{
	int pair[2], keep[2], said[2];
	*line = (struct task_line){-1, -1, -1, -1, -1, -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	line->fd = pair[0];
	line->recorder_fd = pair[1];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, keep) != 0) {
		int code = -errno;
		task_line_close(line);
		return code;
	}
	line->keeper_fd = keep[0];
	line->keeping_fd = keep[1];
	// The recorder's messages are read only at the end. What does not fit in the pipe is dropped, and the recorder
	// continues.
	if (pipe2(said, O_CLOEXEC | O_NONBLOCK) != 0) {
		int code = -errno;
		task_line_close(line);
		return code;
	}
	line->keeper_socket_fd = said[0];
	line->task_socket_fd = said[1];
	return 0;
}

void task_line_close(struct task_line *line)
{
	close_one(&line->fd);
	close_one(&line->recorder_fd);
	close_one(&line->keeper_socket_fd);
	close_one(&line->task_socket_fd);
	close_one(&line->keeper_fd);
	close_one(&line->keeping_fd);
}

/* ---- slurmstepd: start ---- */

/* Forks twice, so that slurmstepd, which waits for all its children, sees neither the keeper's exit nor its CPU time.
 * Slurm applies a task's constraints before the task's exec, so they do not affect the recorder. */
static int fork_away(struct task_line *line, const struct recorder_start *start)
{
	pid_t pid = fork();
	if (pid == 0) {
		pid_t keeper = fork();
		if (keeper == 0)
			keeper_run(start, line->keeping_fd);
		_exit(keeper < 0 ? 1 : 0);
	}
	int code = -errno, status = 0;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		return code;
	close_one(&line->recorder_fd);
	close_one(&line->task_socket_fd);
	close_one(&line->keeping_fd);
	return status == 0 ? 0 : -EAGAIN;
}

int task_line_start(struct task_line *line, const struct settings *settings, const struct task_owner *owner, pid_t task,
	const char *step, struct wattle_error *reterr)
{
	const struct recorder_start start = {
		.settings = settings,
		.owner = owner,
		.task = task,
		.step = step,
		.control_fd = line->recorder_fd,
		.error_fd = line->task_socket_fd,
	};
	int r = fork_away(line, &start);
	if (r == 0)
		return 0;
	task_line_close(line);
	return error_set(reterr, r, "can't start a recorder: %s", strerror(-r));
}

/* ---- task ---- */

static int send_all(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;
	while (size > 0) {
		ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int send_texts(int fd, char **texts)
{
	int r = 0;
	for (; r == 0 && texts != NULL && *texts != NULL; texts++)
		r = send_all(fd, *texts, strlen(*texts) + 1);
	return r;
}

static struct task_greeting greeting_of(char **environment, char **command)
{
	mode_t mask = umask(0);
	umask(mask);
	struct task_greeting greeting = {.umask = mask};
	for (char **at = environment; at != NULL && *at != NULL; at++, greeting.n_variables++)
		greeting.size += strlen(*at) + 1;
	for (char **at = command; at != NULL && *at != NULL; at++, greeting.n_words++)
		greeting.size += strlen(*at) + 1;
	return greeting;
}

static int send_greeting(int fd, char **environment, char **command, int64_t ready_ns)
{
	const struct timeval limit = {.tv_sec = ready_ns / NS_PER_S, .tv_usec = ready_ns % NS_PER_S / 1000 + 1};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	const struct task_greeting greeting = greeting_of(environment, command);
	int r = send_all(fd, &greeting, sizeof(greeting));
	if (r == 0)
		r = send_texts(fd, environment);
	return r < 0 ? r : send_texts(fd, command);
}

// "file" comes first, then "ready" or "error".
static int receive_ready(int fd, int64_t deadline_ns, char *ret_ring, size_t size, struct wattle_error *reterr)
{
	for (;;) {
		struct tracker_reply word;
		int r = tracker_receive(fd, deadline_ns, TEXT_MAX, &word);
		if (r == -ETIMEDOUT)
			return error_set(reterr, r, "its recorder was not ready in time and starts late");
		if (r < 0)
			return error_set(reterr, r, "its recorder ended immediately");
		bool is_ready = tracker_message_is(&word.message, "ready");
		if (is_ready)
			text_copy(ret_ring, size, word.text);
		else if (tracker_message_is(&word.message, "error"))
			r = error_set(reterr, -EIO, "%s", word.text);
		free(word.text);
		if (is_ready || r < 0)
			return r;
	}
}

int task_line_join(struct task_line *lines, size_t n, size_t index, char **environment, char **command,
	int64_t ready_ns, char *ret_ring, size_t size, struct wattle_error *reterr)
{
	int64_t deadline_ns = clock_now_ns() + ready_ns;
	for (size_t i = 0; i < n; i++) { // otherwise the death of a recorder would go unnoticed
		close_one(&lines[i].recorder_fd);
		close_one(&lines[i].task_socket_fd);
		close_one(&lines[i].keeper_fd);
		close_one(&lines[i].keeping_fd);
	}
	int fd = lines[index].fd;
	if (fd < 0)
		return error_set(reterr, -ENOENT, "can't start a recorder for it");
	int r = send_greeting(fd, environment, command, ready_ns);
	if (r < 0)
		return error_set(reterr, r, "its recorder does not respond: %s", strerror(-r));
	return receive_ready(fd, deadline_ns, ret_ring, size, reterr);
}

/* ---- slurmstepd: end ---- */

void task_line_ended(struct task_line *line, const struct tracker_ended *ended)
{
	struct {
		struct tracker_message message;
		struct tracker_ended ended;
	} told = {.message = tracker_message("ended", 0, sizeof(told.ended))};
	if (line->fd < 0)
		return;
	if (ended != NULL) {
		told.ended = *ended;
		(void)send(line->fd, &told, sizeof(told), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	shutdown(line->fd, SHUT_WR);
}

// Passes on the recorder's standard error, one line at a time.
static void forward_message(int fd, void (*told)(const char *text))
{
	char text[4096];
	ssize_t n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	char *rest = text;
	for (const char *line; (line = strsep(&rest, "\n")) != NULL;)
		if (line[0] != '\0')
			told(line);
}

// Reads to the end of the stream and discards the report, which would otherwise block the recorder. False: time is up.
static bool wait_for_end(int fd, int64_t deadline_ns, void (*told)(const char *text))
{
	struct tracker_reply word;
	int r;
	while ((r = tracker_receive(fd, deadline_ns, TEXT_MAX, &word)) == 0) {
		if (tracker_message_is(&word.message, "error"))
			told(word.text);
		free(word.text);
	}
	return r == -EPIPE;
}

// The keeper kills a late recorder and all processes that the recorder started.
static void end_kept(const struct task_line *line)
{
	if (line->keeper_fd >= 0)
		shutdown(line->keeper_fd, SHUT_WR);
}

static void wait_for_keeper(const struct task_line *line, int64_t deadline_ns)
{
	char byte;
	while (line->keeper_fd >= 0) {
		struct pollfd end = {.fd = line->keeper_fd, .events = POLLIN};
		int64_t left_ns = deadline_ns - clock_now_ns();
		if (left_ns <= 0)
			return;
		if (poll(&end, 1, (int)(left_ns / NS_PER_MS) + 1) > 0 &&
			recv(line->keeper_fd, &byte, 1, MSG_DONTWAIT) >= 0)
			return;
	}
}

size_t task_lines_finish(struct task_line *lines, size_t n, int64_t wait_ns, void (*told)(const char *text))
{
	int64_t deadline_ns = clock_now_ns() + wait_ns;
	size_t n_late = 0;
	for (size_t i = 0; i < n; i++) {
		if (lines[i].fd < 0)
			continue;
		task_line_ended(&lines[i], NULL);
		n_late += !wait_for_end(lines[i].fd, deadline_ns, told);
		end_kept(&lines[i]);
		forward_message(lines[i].keeper_socket_fd, told);
	}
	deadline_ns = clock_now_ns() + KEEPERS_END_NS;
	for (size_t i = 0; i < n; i++) {
		wait_for_keeper(&lines[i], deadline_ns);
		task_line_close(&lines[i]);
	}
	return n_late;
}
