#include "spank/spank.h"

#include "base/descriptors.h"
#include "base/num.h"
#include "base/util.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE_FD = 3, CGROUP_FD, CHILD_FD };
enum { ROUNDS_WITHOUT_PAUSE = 10000, REMOVE_TRIES = 1000 };
static const struct timespec retry_pause = {.tv_nsec = 1000000};

/* ---- killing descendants ---- */

// Reads the parent from /proc/PID/stat, where the name may contain blanks and brackets. -1: the process has exited.
static pid_t parent_of(const char *pid)
{
	char path[300], text[512];
	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC), parent = -1;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *behind = strrchr(text, ')');
	return behind != NULL && sscanf(behind, ") %*c %d", &parent) == 1 ? parent : -1;
}

// For kernels without CONFIG_PROC_CHILDREN.
static void kill_by_parent(void)
{
	DIR *folder = opendir("/proc");
	for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
		int64_t pid;
		if (isdigit((unsigned char)entry->d_name[0]) && parent_of(entry->d_name) == getpid() &&
			num_parse_i64(entry->d_name, &pid) == 0)
			kill((pid_t)pid, SIGKILL);
	}
	if (folder != NULL)
		closedir(folder);
}

/* Kills direct children only: their pids cannot be reused before this process waits for them. Their own children become
 * ours when they exit, and the next round kills those. */
static void kill_children(void)
{
	char path[64];
	int pid;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	FILE *file = fopen(path, "re");
	while (file != NULL && fscanf(file, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (file != NULL)
		fclose(file);
	else
		kill_by_parent();
}

/* The first rounds do not pause, in order to catch processes that fork and exit in a chain. A process with a pending
 * SIGKILL can't complete a fork. */
static void end_all(struct own_cgroup *cgroup)
{
	for (int round = 0;; round++) {
		pid_t pid;
		own_cgroup_kill(cgroup);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			break;
		kill_children();
		if (round > ROUNDS_WITHOUT_PAUSE)
			nanosleep(&retry_pause, NULL);
	}
	for (int i = 0; own_cgroup_remove(cgroup) < 0 && i < REMOVE_TRIES; i++) {
		own_cgroup_kill(cgroup);
		nanosleep(&retry_pause, NULL);
	}
}

/* ---- the keeper ---- */

// Closes slurmstepd's descriptors: a copy of another recorder's socket would hide that recorder's exit.
static int settle_descriptors(int line_fd, struct own_cgroup *cgroup, int child_fd)
{
	int from[] = {line_fd, cgroup->fd, child_fd};
	int nothing_fd = open("/dev/null", O_RDWR);
	for (size_t i = 0; i < ARRAY_SIZE(from); i++) // first move them to numbers that can't collide
		from[i] = from[i] >= 0 ? fcntl(from[i], F_DUPFD, CHILD_FD + 1) : -1;
	for (int fd = 0; nothing_fd >= 0 && fd < LINE_FD; fd++)
		dup2(nothing_fd, fd);
	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		if (from[i] >= 0)
			dup2(from[i], LINE_FD + (int)i);
		else
			close(LINE_FD + (int)i);
	close_from(CHILD_FD + 1);
	cgroup->fd = from[1] >= 0 ? CGROUP_FD : -1;
	return from[0] >= 0 && from[2] >= 0 ? 0 : -EMFILE;
}

// Returns when the child has exited, the socket is closed, or the parent has died. parent: 0: not watched.
static void wait_for_end(pid_t child, pid_t parent)
{
	struct pollfd fds[] = {{.fd = LINE_FD, .events = POLLIN | POLLRDHUP}, {.fd = CHILD_FD, .events = POLLIN}};
	while (parent == 0 || getppid() == parent) {
		struct signalfd_siginfo info;
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return;
		if (fds[0].revents != 0)
			return;
		if (fds[1].revents != 0)
			(void)!read(CHILD_FD, &info, sizeof(info));
		for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;)
			if (pid == child)
				return;
	}
}

// Without the privilege to lower it, the value stays.
static void set_oom_score(const char *value)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, value, strlen(value));
		close(fd);
	}
}

_Noreturn static void keep(int line_fd, struct own_cgroup *cgroup, pid_t child, pid_t parent)
{
	sigset_t all;
	sigfillset(&all);
	set_oom_score("-999");
	int child_fd = signalfd(-1, &all, SFD_CLOEXEC);
	if (settle_descriptors(line_fd, cgroup, child_fd) == 0 && child > 0)
		wait_for_end(child, parent);
	end_all(cgroup);
	_exit(0);
}

_Noreturn static void keep_recorder(const struct recorder_start *start, int line_fd, struct own_cgroup *cgroup,
	pid_t parent)
{
	struct recorder_start kept = *start;
	kept.keeper = getpid();
	prctl(PR_SET_CHILD_SUBREAPER, 1); // not inherited by fork
	prctl(PR_SET_PDEATHSIG, SIGTERM); // blocked: the signal only wakes wait_for_end
	pid_t recorder = fork();
	if (recorder == 0) {
		set_oom_score("0"); // instead of slurmstepd's value, which protects it
		own_cgroup_join(cgroup);
		recorder_start(&kept);
	}
	keep(line_fd, cgroup, recorder, parent);
}

_Noreturn void keeper_run(const struct recorder_start *start, int line_fd)
{
	struct own_cgroup cgroup;
	sigset_t all;
	setsid();
	if (geteuid() != 0 && getuid() == 0) // Slurm changes its effective user around some calls
		(void)!seteuid(0);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL); // the recorder resets it
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_NAME, "wattle-keeper");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	own_cgroup_make(&cgroup);
	pid_t guard = getpid(), keeper = fork();
	if (keeper == 0)
		keep_recorder(start, line_fd, &cgroup, guard);
	keep(line_fd, &cgroup, keeper, 0);
}
