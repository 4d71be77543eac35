#include "spank/spank.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/util.h"
#include "lib/tracker_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHOWN_SIZE = 64 << 10, LINE_SIZE = 512, COMMENT_SIZE = 4096 };

/* ---- separate process ---- */

// Writes to standard output, which slurmstepd passes on.
__attribute__((format(printf, 1, 2))) static void print_message(const char *format, ...)
{
	char text[2048];
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(text, sizeof(text) - 1, format, arguments);
	va_end(arguments);
	if (n < 0)
		return;
	size_t length = (size_t)n < sizeof(text) - 1 ? (size_t)n : sizeof(text) - 2;
	text[length++] = '\n';
	(void)!write(STDOUT_FILENO, text, length);
}

// Runs a program and stores its output as far as it fits. Returns its exit status, or negative errno.
static int run(const char *const *words, char *out, size_t size)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		execvp(words[0], (char *const *)(uintptr_t)words);
		_exit(127);
	}
	close(fds[1]);
	size_t n = 0;
	char rest[4096];
	for (;;) { // read to the end, or the program would block
		bool fits = n + 1 < size;
		ssize_t got = read(fds[0], fits ? out + n : rest, fits ? size - 1 - n : sizeof(rest));
		if (got == 0 || (got < 0 && errno != EINTR))
			break;
		n += fits && got > 0 ? (size_t)got : 0;
	}
	out[n] = '\0';
	close(fds[0]);
	int status = -1;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -ECHILD;
}

static size_t count_lines(int fd)
{
	char text[4096];
	ssize_t n;
	size_t lines = 0;
	lseek(fd, 0, SEEK_SET);
	while ((n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++)
			lines += text[i] == '\n';
	return lines;
}

// Path of the list that the nodes sign.
static void name_list(const struct step_end *end, const char *folder, char *out, size_t size)
{
	snprintf(out, size, "%s/.%s.%s.%u", folder, end->job_id, end->step, end->restart);
}

/* Each node adds a line to a list in the folder; the node with the last line is the last. Uses record locks, because
 * they make an NFS client read what others have written. */
static bool is_last(const struct step_end *end, const char *folder)
{
	char path[SETTING_SIZE + 256];
	if (end->n_nodes <= 1)
		return true;
	name_list(end, folder, path, sizeof(path));
	wattle_cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		print_message("can't write %s: %s", path, strerror(errno));
		return false;
	}
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	while (fcntl(fd, F_SETLKW, &lock) != 0 && errno == EINTR)
		;
	char name[32];
	int length = snprintf(name, sizeof(name), "%u\n", end->node);
	bool last = write(fd, name, (size_t)length) == length && count_lines(fd) >= end->n_nodes;
	if (last)
		unlink(path);
	return last;
}

/* The job in scontrol's form. The number of an array's last job is also that of the array, and would mean all of its
 * jobs. In a heterogeneous job, slurm_job is one component; the number of the first component is that of the job and
 * means all of them. */
static void name_job(const struct step_end *end, char *out, size_t size)
{
	bool is_told = end->job_id[0] != '\0' && end->job_id[strspn(end->job_id, "0123456789_")] == '\0';
	if (is_told)
		snprintf(out, size, "%.31s", end->job_id);
	else
		snprintf(out, size, "%u", end->slurm_job);
}

static void write_comment(const struct step_end *end, const char *line)
{
	char id[32], assignment[sizeof(id) + 8], comment[COMMENT_SIZE], old[COMMENT_SIZE], setting[COMMENT_SIZE + 16];
	char refusal[LINE_SIZE];
	wattle_cleanup_free char *shown = malloc(SHOWN_SIZE);
	if (shown == NULL)
		return;
	name_job(end, id, sizeof(id));
	const char *const show[] = {end->settings->scontrol, "show", "job", id, NULL};
	if (run(show, shown, SHOWN_SIZE) != 0) {
		print_message("can't write the job's comment: %s show job: %s", show[0], shown);
		return;
	}
	int r = comment_find(shown, old, sizeof(old));
	if (r == 0)
		r = comment_make(old, line, comment, sizeof(comment));
	if (r < 0) { // keep the comment of others: the folder has the results anyway
		print_message("the job's comment was not changed: %s",
			r == -EILSEQ ? "it has more than one line" : "it is too long to extend");
		return;
	}
	snprintf(assignment, sizeof(assignment), "JobId=%s", id);
	snprintf(setting, sizeof(setting), "Comment=%s", comment);
	const char *const update[] = {end->settings->scontrol, "update", assignment, setting, NULL};
	if (run(update, refusal, sizeof(refusal)) != 0 && !comment_is_too_late(shown))
		print_message("can't write the job's comment: %s update: %s", update[0], refusal);
}

static void sum_up(const struct step_end *end)
{
	struct wattle_error error = {0};
	char folder[SETTING_SIZE], line[LINE_SIZE];
	if (settings_folder(end->settings, end->job_id, folder, sizeof(folder), &error) < 0) {
		print_message("%s", error.text);
		return;
	}
	if (!is_last(end, folder))
		return;
	const char *const report[] = {end->settings->program, "report", folder, "--job", end->job_id, "--format",
		"line", NULL};
	int status = run(report, line, sizeof(line));
	line[strcspn(line, "\n")] = '\0';
	if (status != 0) {
		print_message("no total for %s: %s", folder, line);
		return;
	}
	print_message("%s, %s", line, folder);
	if (end->settings->comment)
		write_comment(end, line);
}

_Noreturn static void child(const struct step_end *end, int task_socket_fd)
{
	int nothing_fd = open("/dev/null", O_RDWR);
	if (dup2(task_socket_fd, STDOUT_FILENO) < 0 || dup2(nothing_fd, STDIN_FILENO) < 0)
		_exit(1);
	int r = become_owner(end->owner); // first, because it uses a descriptor that is closed below
	close_from(STDERR_FILENO + 1);    // the user's programs must not get root's open files
	if (r < 0)
		print_message("no total: can't switch to the job's user: %s", strerror(-r));
	else
		sum_up(end);
	_exit(0);
}

/* ---- slurmstepd ---- */

// Reads the output until the process has ended or time is up. False: it has not ended.
static bool read_line(int fd, int64_t deadline_ns, char *out, size_t size)
{
	size_t n = 0;
	out[0] = '\0';
	for (;;) {
		int64_t left_ns = deadline_ns - clock_now_ns();
		if (left_ns <= 0)
			return false;
		struct pollfd event = {.fd = fd, .events = POLLIN};
		if (poll(&event, 1, (int)(left_ns / NS_PER_MS) + 1) <= 0)
			continue;
		char text[1024];
		ssize_t got = read(fd, text, sizeof(text));
		if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
			return true;
		for (ssize_t i = 0; i < got && n + 1 < size; i++)
			out[n++] = text[i];
		out[n] = '\0';
	}
}

void step_end(const struct step_end *end, void (*on_message)(const char *text))
{
	int fds[2];
	char text[4096], *rest = text;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return;
	pid_t pid = fork();
	if (pid == 0)
		child(end, fds[1]);
	close(fds[1]);
	bool whole = pid < 0 || read_line(fds[0], clock_now_ns() + end->settings->wait_ns, text, sizeof(text));
	close(fds[0]);
	if (!whole) {
		kill(pid, SIGKILL);  // in case the process has not created its session yet
		kill(-pid, SIGKILL); // the session, with all processes started in it
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	for (const char *line; pid > 0 && (line = strsep(&rest, "\n")) != NULL;)
		if (line[0] != '\0')
			on_message(line);
	if (!whole)
		on_message("computing the total took too long and was cancelled; run `wattle report` on the folder");
}

/* ---- srun ---- */

// A relative folder that does not exist here may be elsewhere (srun --chdir), so nothing is reported.
bool step_end_is_apart(const struct step_end *end)
{
	char folder[SETTING_SIZE], path[SETTING_SIZE + 256];
	if (settings_folder(end->settings, end->job_id, folder, sizeof(folder), NULL) < 0)
		return false;
	name_list(end, folder, path, sizeof(path));
	return (folder[0] == '/' && access(folder, F_OK) != 0) || access(path, F_OK) == 0;
}
