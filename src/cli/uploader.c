#include "cli/measure.h"

#include "base/clock.h"
#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_FOR_LIBRARY_MS = 10000, READ_TRIES_MAX = 1000 };

struct uploader {
	struct uploader_options options;
	struct uploader_page *page; // memory shared with the process
	int page_fd;              // descriptor of the page, for the process
	int line_fd;              // our end of the socket; -1: none
	pid_t pid;                // 0: not running
	uint32_t n_good;          // n_good at the last handled message
	uint32_t n_told;          // n_told of the last handled message
	bool has_begun;           // the uploader process was notified that the file exists
	char *over_path;          // owned; set when the run is over; NULL: still recording
	int64_t over_ns;
	int64_t spawned_ns, pause_ns,
		next_spawn_ns; // next_spawn_ns: time of the next restart; pause_ns increases with each
};

/* ---- starting the process ---- */

static int spawn(struct uploader *uploader)
{
	int line[2];
	struct uploader_page *page = uploader->page;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) != 0)
		return -errno;
	page->state = UPLOADER_LOADS;
	page->cpu_before_ns = page->companion.cpu_ns;
	pid_t pid = uploader_fork(page, uploader->page_fd, line[1]);
	close(line[1]);
	if (pid < 0) {
		close(line[0]);
		return pid;
	}
	page->companion.pid_before = page->companion.pid;
	page->companion.pid = pid;
	page->companion.has_ended = false;
	uploader->pid = pid;
	uploader->line_fd = line[0];
	uploader->has_begun = false;
	uploader->spawned_ns = clock_now_ns();
	return 0;
}

// Reads again while the text is being written, but not forever: the sender may have been killed during a write.
static void read_warning(const struct uploader *uploader, struct wattle_error *reterr)
{
	uint32_t before;
	int tries = 0;
	do {
		before = uploader->page->n_told;
		text_copy(reterr->text, sizeof(reterr->text), uploader->page->text);
	} while ((before % 2 == 1 || before != uploader->page->n_told) && uploader->pid != 0 &&
		++tries < READ_TRIES_MAX);
}

/* ---- the recorder's side ---- */

// A persistent cause may kill each process at once: restarts are limited to about seven in the first minute, then two per
// minute.
static void plan_successor(struct uploader *uploader)
{
	static const int64_t first_ns = NS_PER_S, max_ns = 30 * NS_PER_S, long_ns = 60 * NS_PER_S;
	bool has_lived = clock_now_ns() - uploader->spawned_ns >= long_ns;
	uploader->pause_ns = has_lived || uploader->pause_ns == 0 ? first_ns : 2 * uploader->pause_ns;
	if (uploader->pause_ns > max_ns)
		uploader->pause_ns = max_ns;
	uploader->next_spawn_ns = clock_now_ns() + uploader->pause_ns;
}

// Whether the process has ended; any part of the recorder may have waited for it.
static bool has_ended(struct uploader *uploader)
{
	if (uploader->pid == 0)
		return true;
	if (!uploader->page->companion.has_ended && waitpid(uploader->pid, NULL, WNOHANG) != uploader->pid)
		return false;
	uploader->page->companion.has_ended = true;
	uploader->pid = 0;
	uploader->page->companion.rss_bytes = 0;
	close(uploader->line_fd);
	uploader->line_fd = -1;
	plan_successor(uploader);
	return true;
}

static int make_page(struct uploader *uploader, const struct uploader_options *options)
{
	if (strlen(options->url) >= sizeof(uploader->page->url) ||
		strlen(options->path) >= sizeof(uploader->page->path))
		return -ENAMETOOLONG;
	uploader->page_fd = uploader_page_new(&uploader->page);
	if (uploader->page_fd < 0)
		return uploader->page_fd;
	text_copy(uploader->page->url, sizeof(uploader->page->url), options->url);
	text_copy(uploader->page->path, sizeof(uploader->page->path), options->path);
	uploader->page->wait_ns = options->wait_ns;
	return 0;
}

int uploader_start(const struct uploader_options *options, struct uploader **ret_sender, struct wattle_error *reterr)
{
	struct uploader *uploader = calloc(1, sizeof(*uploader));
	if (uploader == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	uploader->options = *options;
	uploader->line_fd = uploader->page_fd = -1;
	int r = make_page(uploader, options);
	if (r == 0)
		r = spawn(uploader);
	if (r < 0) {
		uploader_free(uploader);
		return error_set(reterr, r, "--store: can't start the uploader: %s", strerror(-r));
	}
	*ret_sender = uploader;
	return 0;
}

int uploader_ready(struct uploader *uploader, struct wattle_error *reterr)
{
	struct wattle_error why = {0};
	struct pollfd line = {.fd = uploader->line_fd, .events = POLLIN};
	int n = poll(&line, 1, WAIT_FOR_LIBRARY_MS);
	int state = uploader->page->state;
	if (state == UPLOADER_NO_LIBRARY) {
		read_warning(uploader, &why);
		return error_set(reterr, -ENOSYS, "--store: %s", why.text);
	}
	if (n <= 0 || state != UPLOADER_LOADS) // not ready yet: the machine is very busy
		return 0;
	int code = uploader->page->failed != 0 ? uploader->page->failed : ECHILD;
	return error_set(reterr, -code, "--store: can't start the uploader (this program, by /proc/self/exe): %s",
		strerror(code));
}

struct companion *uploader_companion(struct uploader *uploader)
{
	return &uploader->page->companion;
}

static void send_command(struct uploader *uploader, char word, const char *text)
{
	char message[4097];
	int n = snprintf(message, sizeof(message), "%c%s", word, text);
	if (n > 0 && (size_t)n < sizeof(message) &&
		send(uploader->line_fd, message, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) == n) {
		uploader->page->has_begun = true;
		uploader->has_begun = true;
	}
}

static void pass_on_warning(struct uploader *uploader)
{
	uint32_t n_told = uploader->page->n_told;
	if (n_told == uploader->n_told || n_told % 2 == 1)
		return;
	bool is_first = uploader->n_told == 0 ||
		uploader->page->n_good != uploader->n_good; // no repeated warnings during one outage
	uploader->n_told = n_told;
	uploader->n_good = uploader->page->n_good;
	if (!is_first)
		return;
	struct wattle_error why = {0};
	char text[sizeof(why.text) + 100];
	read_warning(uploader, &why);
	snprintf(text, sizeof(text), "%s; the run continues, unsent rows stay in the run file and are sent later",
		why.text);
	uploader->options.warn(uploader->options.data, text);
}

void uploader_maintain(struct uploader *uploader)
{
	if (has_ended(uploader) && (clock_now_ns() < uploader->next_spawn_ns || spawn(uploader) < 0))
		return;
	if (!uploader->has_begun)
		send_command(uploader, UPLOADER_COMMAND_START, "");
	pass_on_warning(uploader);
}

/* ---- the end ---- */

static void wait_for_process(struct uploader *uploader)
{
	while (waitpid(uploader->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	uploader->page->companion.has_ended = true;
}

// Returns true if a signal requests the end.
static bool wait_for_end(struct uploader *uploader, int signal_fd, int64_t until_ns)
{
	int64_t rest_ns = until_ns - clock_now_ns();
	const struct timespec time = {.tv_sec = rest_ns / NS_PER_S, .tv_nsec = rest_ns % NS_PER_S};
	struct pollfd watched[] = {{.fd = uploader->line_fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
	char word;
	if (rest_ns <= 0)
		return true;
	if (ppoll(watched, ARRAY_SIZE(watched), &time, NULL) <= 0 || watched[1].revents != 0)
		return true;
	// Its ready byte may still be in the socket; end of file means that the process has ended.
	if (watched[0].revents != 0 && recv(uploader->line_fd, &word, 1, MSG_DONTWAIT) <= 0)
		wait_for_process(uploader);
	return false;
}

static void stop(struct uploader *uploader)
{
	if (has_ended(uploader))
		return;
	kill(uploader->pid, SIGKILL);
	wait_for_process(uploader);
	has_ended(uploader);
}

static bool is_done(const struct uploader *uploader)
{
	return uploader->page->state == UPLOADER_IS_DONE;
}

// Restarts the process if it is killed meanwhile.
static void await(struct uploader *uploader, int signal_fd)
{
	int64_t until_ns = uploader->over_ns + uploader->options.wait_ns;
	for (int tries = 0; tries < 3; tries++) {
		bool stopped = false;
		while (!stopped && !has_ended(uploader))
			stopped = wait_for_end(uploader, signal_fd, until_ns);
		if (stopped || is_done(uploader) || uploader->page->state == UPLOADER_GAVE_UP || spawn(uploader) < 0)
			break;
		send_command(uploader, UPLOADER_COMMAND_END, uploader->over_path);
	}
	stop(uploader);
}

void uploader_run_ended(struct uploader *uploader, const char *path)
{
	uploader->over_path = strdup(path);
	uploader->over_ns = clock_now_ns();
	if (uploader->over_path == NULL || (has_ended(uploader) && spawn(uploader) < 0))
		return;
	send_command(uploader, UPLOADER_COMMAND_END, path);
}

void uploader_wait(struct uploader *uploader, struct uploader_result *ret_result)
{
	sigset_t stopping, before;
	sigemptyset(&stopping);
	sigaddset(&stopping, SIGINT);
	sigaddset(&stopping, SIGTERM);
	sigprocmask(SIG_BLOCK, &stopping, &before);
	int signal_fd = signalfd(-1, &stopping, SFD_CLOEXEC);
	await(uploader, signal_fd);
	if (signal_fd >= 0)
		close(signal_fd);
	sigprocmask(SIG_SETMASK, &before, NULL);
	*ret_result = (struct uploader_result){.is_done = is_done(uploader)};
	text_copy(ret_result->run_id, sizeof(ret_result->run_id), uploader->page->run_id);
	text_copy(ret_result->where, sizeof(ret_result->where), uploader->page->where);
	if (ret_result->is_done)
		return;
	if (uploader->page->state != UPLOADER_SENDS) // otherwise its last message is outdated
		read_warning(uploader, &ret_result->why);
	if (ret_result->why.text[0] == '\0')
		error_set(&ret_result->why, -EAGAIN,
			"the server did not receive the whole run within --store-wait");
}

void uploader_free(struct uploader *uploader)
{
	if (uploader == NULL)
		return;
	if (uploader->page != NULL) {
		if (uploader->pid != 0)
			stop(uploader);
		munmap(uploader->page, sizeof(*uploader->page));
		close(uploader->page_fd);
	}
	free(uploader->over_path);
	free(uploader);
}
