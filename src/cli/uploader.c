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

enum { WAIT_FOR_LIBRARY_MS = 10000, READ_TRIES_MOST = 1000 };

struct sender {
	struct sender_options options;
	struct sender_page *page; // memory shared with the process
	int page_fd;              // descriptor of the page, for the process
	int line_fd;              // our end of the socket; -1: none
	pid_t pid;                // 0: not running
	uint32_t n_good;          // n_good at the last handled message
	uint32_t n_told;          // n_told of the last handled message
	bool has_begun;           // the process was told that the file exists
	char *over_path;          // owned; set when the run is over; NULL: still recording
	int64_t over_ns;
	int64_t spawned_ns, pause_ns,
		next_spawn_ns; // next_spawn_ns: time of the next restart; pause_ns increases with each
};

/* ---- starting the process ---- */

static int spawn(struct sender *sender)
{
	int line[2];
	struct sender_page *page = sender->page;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) != 0)
		return -errno;
	page->state = SENDER_LOADS;
	page->cpu_before_ns = page->companion.cpu_ns;
	pid_t pid = sender_fork(page, sender->page_fd, line[1]);
	close(line[1]);
	if (pid < 0) {
		close(line[0]);
		return pid;
	}
	page->companion.pid_before = page->companion.pid;
	page->companion.pid = pid;
	page->companion.has_ended = false;
	sender->pid = pid;
	sender->line_fd = line[0];
	sender->has_begun = false;
	sender->spawned_ns = clock_now_ns();
	return 0;
}

// Reads again while the text is being written, but not forever: the sender may have been killed during a write.
static void read_trouble(const struct sender *sender, struct wattle_error *reterr)
{
	uint32_t before;
	int tries = 0;
	do {
		before = sender->page->n_told;
		text_copy(reterr->text, sizeof(reterr->text), sender->page->text);
	} while ((before % 2 == 1 || before != sender->page->n_told) && sender->pid != 0 && ++tries < READ_TRIES_MOST);
}

/* ---- the recorder's side ---- */

// A persistent cause may kill each process at once: restarts are limited to about seven in the first minute, then two per
// minute.
static void plan_successor(struct sender *sender)
{
	static const int64_t first_ns = NS_PER_S, most_ns = 30 * NS_PER_S, long_ns = 60 * NS_PER_S;
	bool has_lived = clock_now_ns() - sender->spawned_ns >= long_ns;
	sender->pause_ns = has_lived || sender->pause_ns == 0 ? first_ns : 2 * sender->pause_ns;
	if (sender->pause_ns > most_ns)
		sender->pause_ns = most_ns;
	sender->next_spawn_ns = clock_now_ns() + sender->pause_ns;
}

// Whether the process has ended; any part of the recorder may have waited for it.
static bool has_ended(struct sender *sender)
{
	if (sender->pid == 0)
		return true;
	if (!sender->page->companion.has_ended && waitpid(sender->pid, NULL, WNOHANG) != sender->pid)
		return false;
	sender->page->companion.has_ended = true;
	sender->pid = 0;
	sender->page->companion.rss_bytes = 0;
	close(sender->line_fd);
	sender->line_fd = -1;
	plan_successor(sender);
	return true;
}

static int make_page(struct sender *sender, const struct sender_options *options)
{
	if (strlen(options->url) >= sizeof(sender->page->url) || strlen(options->path) >= sizeof(sender->page->path))
		return -ENAMETOOLONG;
	sender->page_fd = sender_page_new(&sender->page);
	if (sender->page_fd < 0)
		return sender->page_fd;
	text_copy(sender->page->url, sizeof(sender->page->url), options->url);
	text_copy(sender->page->path, sizeof(sender->page->path), options->path);
	sender->page->wait_ns = options->wait_ns;
	return 0;
}

int sender_start(const struct sender_options *options, struct sender **ret_sender, struct wattle_error *reterr)
{
	struct sender *sender = calloc(1, sizeof(*sender));
	if (sender == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	sender->options = *options;
	sender->line_fd = sender->page_fd = -1;
	int r = make_page(sender, options);
	if (r == 0)
		r = spawn(sender);
	if (r < 0) {
		sender_free(sender);
		return error_set(reterr, r, "--store: can't start the uploader: %s", strerror(-r));
	}
	*ret_sender = sender;
	return 0;
}

int sender_ready(struct sender *sender, struct wattle_error *reterr)
{
	struct wattle_error why = {0};
	struct pollfd line = {.fd = sender->line_fd, .events = POLLIN};
	int n = poll(&line, 1, WAIT_FOR_LIBRARY_MS);
	int state = sender->page->state;
	if (state == SENDER_LACKS_LIBRARY) {
		read_trouble(sender, &why);
		return error_set(reterr, -ENOSYS, "--store: %s", why.text);
	}
	if (n <= 0 || state != SENDER_LOADS) // not ready yet: the machine is very busy
		return 0;
	int code = sender->page->failed != 0 ? sender->page->failed : ECHILD;
	return error_set(reterr, -code, "--store: can't start the uploader (this program, by /proc/self/exe): %s",
		strerror(code));
}

struct companion *sender_companion(struct sender *sender)
{
	return &sender->page->companion;
}

static void say(struct sender *sender, char word, const char *text)
{
	char message[4097];
	int n = snprintf(message, sizeof(message), "%c%s", word, text);
	if (n > 0 && (size_t)n < sizeof(message) &&
		send(sender->line_fd, message, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) == n) {
		sender->page->has_begun = true;
		sender->has_begun = true;
	}
}

static void pass_on_trouble(struct sender *sender)
{
	uint32_t n_told = sender->page->n_told;
	if (n_told == sender->n_told || n_told % 2 == 1)
		return;
	bool is_first = sender->n_told == 0 ||
		sender->page->n_good != sender->n_good; // no repeated warnings during one outage
	sender->n_told = n_told;
	sender->n_good = sender->page->n_good;
	if (!is_first)
		return;
	struct wattle_error why = {0};
	char text[sizeof(why.text) + 100];
	read_trouble(sender, &why);
	snprintf(text, sizeof(text), "%s; the run continues, unsent rows stay in the run file and are sent later",
		why.text);
	sender->options.warn(sender->options.data, text);
}

void sender_tend(struct sender *sender)
{
	if (has_ended(sender) && (clock_now_ns() < sender->next_spawn_ns || spawn(sender) < 0))
		return;
	if (!sender->has_begun)
		say(sender, SENDER_SAYS_GO, "");
	pass_on_trouble(sender);
}

/* ---- the end ---- */

static void wait_for_process(struct sender *sender)
{
	while (waitpid(sender->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	sender->page->companion.has_ended = true;
}

// Returns true if a signal requests the end.
static bool wait_for_end(struct sender *sender, int signal_fd, int64_t until_ns)
{
	int64_t rest_ns = until_ns - clock_now_ns();
	const struct timespec time = {.tv_sec = rest_ns / NS_PER_S, .tv_nsec = rest_ns % NS_PER_S};
	struct pollfd watched[] = {{.fd = sender->line_fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
	char word;
	if (rest_ns <= 0)
		return true;
	if (ppoll(watched, ARRAY_SIZE(watched), &time, NULL) <= 0 || watched[1].revents != 0)
		return true;
	// Its ready byte may still be in the socket; end of file means that the process has ended.
	if (watched[0].revents != 0 && recv(sender->line_fd, &word, 1, MSG_DONTWAIT) <= 0)
		wait_for_process(sender);
	return false;
}

static void stop(struct sender *sender)
{
	if (has_ended(sender))
		return;
	kill(sender->pid, SIGKILL);
	wait_for_process(sender);
	has_ended(sender);
}

static bool is_done(const struct sender *sender)
{
	return sender->page->state == SENDER_IS_DONE;
}

// Restarts the process if it is killed meanwhile.
static void await(struct sender *sender, int signal_fd)
{
	int64_t until_ns = sender->over_ns + sender->options.wait_ns;
	for (int tries = 0; tries < 3; tries++) {
		bool stopped = false;
		while (!stopped && !has_ended(sender))
			stopped = wait_for_end(sender, signal_fd, until_ns);
		if (stopped || is_done(sender) || sender->page->state == SENDER_GAVE_UP || spawn(sender) < 0)
			break;
		say(sender, SENDER_SAYS_OVER, sender->over_path);
	}
	stop(sender);
}

void sender_over(struct sender *sender, const char *path)
{
	sender->over_path = strdup(path);
	sender->over_ns = clock_now_ns();
	if (sender->over_path == NULL || (has_ended(sender) && spawn(sender) < 0))
		return;
	say(sender, SENDER_SAYS_OVER, path);
}

void sender_wait(struct sender *sender, struct sender_result *ret_result)
{
	sigset_t stopping, before;
	sigemptyset(&stopping);
	sigaddset(&stopping, SIGINT);
	sigaddset(&stopping, SIGTERM);
	sigprocmask(SIG_BLOCK, &stopping, &before);
	int signal_fd = signalfd(-1, &stopping, SFD_CLOEXEC);
	await(sender, signal_fd);
	if (signal_fd >= 0)
		close(signal_fd);
	sigprocmask(SIG_SETMASK, &before, NULL);
	*ret_result = (struct sender_result){.is_done = is_done(sender)};
	text_copy(ret_result->run_id, sizeof(ret_result->run_id), sender->page->run_id);
	text_copy(ret_result->where, sizeof(ret_result->where), sender->page->where);
	if (ret_result->is_done)
		return;
	if (sender->page->state != SENDER_SENDS) // otherwise its last message is outdated
		read_trouble(sender, &ret_result->why);
	if (ret_result->why.text[0] == '\0')
		error_set(&ret_result->why, -EAGAIN,
			"the server did not receive the whole run within --store-wait");
}

void sender_free(struct sender *sender)
{
	if (sender == NULL)
		return;
	if (sender->page != NULL) {
		if (sender->pid != 0)
			stop(sender);
		munmap(sender->page, sizeof(*sender->page));
		close(sender->page_fd);
	}
	free(sender->over_path);
	free(sender);
}
