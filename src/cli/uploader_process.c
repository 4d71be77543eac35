/* Starts the uploader process, a new program: `wattle --sender`. A plain fork would inherit the recorder's open SQLite
 * database, which must not be used after a fork, so that no process could be started during a run. */
#include "cli/measure.h"

#include "base/descriptors.h"
#include "base/util.h"
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = STDERR_FILENO + 1, PAGE, FIRST_CLOSED, NICE_LEVEL = 10 };

int uploader_page_new(struct uploader_page **ret_page)
{
	int fd = memfd_create("wattle-sender", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	void *page = MAP_FAILED;
	// Seals the size, so that no process can truncate the memory while it is mapped.
	if (ftruncate(fd, sizeof(struct uploader_page)) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		page = mmap(NULL, sizeof(struct uploader_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		int code = -errno;
		close(fd);
		return code;
	}
	*ret_page = page;
	return fd;
}

/* ---- between fork and exec: system calls only ---- */

/* Resets signals: those from the terminal and those that stop the recorder do not apply to the uploader, which ends on the
 * recorder's message or exit. Signal masks and handlers of the recorder do not apply either. */
static void set_up_signals(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ};
	sigset_t none;
	sigemptyset(&none);
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		sigaction(ignored[i], &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Keeps only the socket and the page. Otherwise the recorder's file lock, pipes to the held command, and stderr would stay open
 * after the recorder's exit. */
static bool set_up_descriptors(int page_fd, int line_fd)
{
	int page = fcntl(page_fd, F_DUPFD, FIRST_CLOSED), line = fcntl(line_fd, F_DUPFD, FIRST_CLOSED);
	int nowhere = open("/dev/null", O_RDWR);
	for (int fd = 0; nowhere >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(nowhere, fd);
	if (page < 0 || line < 0 || dup2(line, LINE) < 0 || dup2(page, PAGE) < 0)
		return false;
	close_from(FIRST_CLOSED);
	return true;
}

static void become_uploader(struct uploader_page *page, int page_fd, int line_fd)
{
	char *const argv[] = {(char[]){"wattle"}, (char[]){"--sender"}, NULL};
	setpgid(0, 0); // Ctrl-C is meant for the command and its recorder
	set_up_signals();
	// The recorder may have a real-time priority; the uploader gets a low one.
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
	setpriority(PRIO_PROCESS, 0, NICE_LEVEL);
	if (set_up_descriptors(page_fd, line_fd))
		execv("/proc/self/exe", argv);
	page->failed = errno;
	_exit(1);
}

pid_t uploader_fork(struct uploader_page *page, int page_fd, int line_fd)
{
	pid_t pid = fork();
	if (pid == 0)
		become_uploader(page, page_fd, line_fd);
	return pid < 0 ? -errno : pid;
}

/* ---- the new program ---- */

int uploader_main(void)
{
	struct stat st;
	int seals = fcntl(PAGE, F_GET_SEALS);
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(PAGE, &st) != 0 ||
		st.st_size != sizeof(struct uploader_page))
		return EXIT_USAGE; // started by hand
	struct uploader_page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, PAGE, 0);
	if (page == MAP_FAILED)
		return EXIT_FAILED;
	close(PAGE);
	fcntl(LINE, F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_NAME, "wattle-sender");
	uploader_loop(page, LINE);
}
