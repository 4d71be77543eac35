#include "cli/sender.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NICENESS = 10, WAIT_FOR_LIBRARY_MS = 10000 };

struct sender {
	struct sender_options options;
	struct sender_page *page; // shared
	int line_fd;              // ours; -1: none
	pid_t pid;                // 0: it has ended and was waited for
	uint32_t n_good;          // when that was
	uint32_t n_told;          // so much of what it says has been passed on
	bool has_begun;           // it was told so
	char *over_path;          // owned: the run is over; NULL: it goes on
	int64_t over_ns;
};

/* ---- the new process ---- */

/* Signals of the terminal and of who stops the recorder are not its own: it ends when the recorder says so, or has gone. Nor do
 * those that the recorder blocks or catches concern it. */
static void settle_signals(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ};
	sigset_t none;
	sigemptyset(&none);
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		sigaction(ignored[i], &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Keeps the line and nothing else: the recorder's lock on its file, pipes to the held command and whoever reads stderr to its end
 * must not see it live on. */
static int settle_descriptors(int line_fd)
{
	enum { LINE = 3, DESCRIPTORS_MOST = 1 << 20 };
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; nowhere >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(nowhere, fd);
	if (line_fd != LINE)
		dup2(line_fd, LINE);
	if (syscall(SYS_close_range, LINE + 1, ~0u, 0) != 0) { // Linux before 5.9, and sandboxes
		struct rlimit limit = {0};
		getrlimit(RLIMIT_NOFILE, &limit);
		int end = limit.rlim_cur < DESCRIPTORS_MOST ? (int)limit.rlim_cur : DESCRIPTORS_MOST;
		for (int fd = LINE + 1; fd < end; fd++)
			close(fd);
	}
	fcntl(LINE, F_SETFD, FD_CLOEXEC);
	return LINE;
}

static void become_sender(const struct sender *sender, int line_fd)
{
	prctl(PR_SET_NAME, "wattle-sender");
	setpgid(0, 0); // Ctrl-C is for the command and its recorder
	settle_signals();
	// The recorder may run before all others; the sender comes after them.
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
	setpriority(PRIO_PROCESS, 0, NICENESS);
	sender_loop(sender->page, &sender->options, settle_descriptors(line_fd));
}

static int spawn(struct sender *sender)
{
	int line[2];
	struct sender_page *page = sender->page;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) != 0)
		return -errno;
	page->state = SENDER_LOADS;
	page->cpu_before_ns = page->companion.cpu_ns;
	pid_t pid = fork();
	if (pid == 0)
		become_sender(sender, line[1]);
	int code = -errno;
	close(line[1]);
	if (pid < 0) {
		close(line[0]);
		return code;
	}
	page->companion.pid_before = page->companion.pid;
	page->companion.pid = pid;
	page->companion.has_ended = false;
	sender->pid = pid;
	sender->line_fd = line[0];
	sender->has_begun = false;
	return 0;
}

static void read_trouble(const struct sender *sender, struct wattle_error *reterr)
{
	uint32_t before;
	do {
		before = sender->page->n_told;
		text_copy(reterr->text, sizeof(reterr->text), sender->page->text);
	} while (before % 2 == 1 && sender->pid != 0 && before != sender->page->n_told);
}

/* ---- the recorder's side ---- */

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

// It has ended, whoever waited for it.
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
	return true;
}

int sender_start(const struct sender_options *options, struct sender **ret_sender, struct wattle_error *reterr)
{
	struct sender *sender = calloc(1, sizeof(*sender));
	if (sender == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	sender->options = *options;
	sender->line_fd = -1;
	sender->page = mmap(NULL, sizeof(*sender->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r = sender->page == MAP_FAILED ? -errno : 0;
	if (r < 0)
		sender->page = NULL;
	if (r == 0)
		r = spawn(sender);
	if (r < 0) {
		sender_free(sender);
		return error_set(reterr, r, "--store: can't start the sender: %s", strerror(-r));
	}
	struct pollfd line = {.fd = sender->line_fd, .events = POLLIN};
	poll(&line, 1, WAIT_FOR_LIBRARY_MS);
	if (sender->page->state == SENDER_LACKS_LIBRARY) {
		struct wattle_error why = {0};
		read_trouble(sender, &why);
		sender_free(sender);
		return error_set(reterr, -ENOSYS, "--store: %s", why.text);
	}
	*ret_sender = sender;
	return 0;
}

struct companion *sender_companion(struct sender *sender)
{
	return &sender->page->companion;
}

static void say(struct sender *sender, char word, const char *text)
{
	char message[4097];
	int n = snprintf(message, sizeof(message), "%c%s", word, text);
	if (n > 0 && (size_t)n < sizeof(message) && send(sender->line_fd, message, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) == n)
		sender->has_begun = true;
}

static void pass_on_trouble(struct sender *sender)
{
	uint32_t n_told = sender->page->n_told;
	if (n_told == sender->n_told || n_told % 2 == 1)
		return;
	bool is_first = sender->n_told == 0 || sender->page->n_good != sender->n_good; // not again and again while it is away
	sender->n_told = n_told;
	sender->n_good = sender->page->n_good;
	if (!is_first)
		return;
	struct wattle_error why = {0};
	char text[sizeof(why.text) + 100];
	read_trouble(sender, &why);
	snprintf(text, sizeof(text), "%s; the run goes on, and what is not sent stays in its file until it can be", why.text);
	sender->options.warn(sender->options.data, text);
}

void sender_tend(struct sender *sender)
{
	/* Killed, its successor is started when the run is over: a fork of a process that has an SQLite database open must not use
	 * SQLite, and the recorder closes its file only then. */
	if (has_ended(sender))
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

// True: somebody wants us to stop.
static bool wait_for_end(struct sender *sender, int signal_fd, int64_t until_ns)
{
	int64_t rest_ns = until_ns - now_ns();
	const struct timespec time = {.tv_sec = rest_ns / NS_PER_S, .tv_nsec = rest_ns % NS_PER_S};
	struct pollfd watched[] = {{.fd = sender->line_fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
	char word;
	if (rest_ns <= 0)
		return true;
	if (ppoll(watched, ARRAY_SIZE(watched), &time, NULL) <= 0 || watched[1].revents != 0)
		return true;
	// Its word that it is ready lies there first; the end of the line is that of the process.
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

// Killed in between, it is started again.
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
	sender->over_ns = now_ns();
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
	read_trouble(sender, &ret_result->why);
	if (ret_result->why.text[0] == '\0')
		error_set(&ret_result->why, -EAGAIN, "the server did not take all of the run in the time of --store-wait");
}

void sender_free(struct sender *sender)
{
	if (sender == NULL)
		return;
	if (sender->page != NULL) {
		if (sender->pid != 0)
			stop(sender);
		munmap(sender->page, sizeof(*sender->page));
	}
	free(sender->over_path);
	free(sender);
}
