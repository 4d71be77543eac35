#include "lib/tracker.h"

#include "base/clock.h"
#include "base/spawn.h"
#include "base/util.h"
#include "lib/tracker_wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// Opening many GPUs is sequential, and reading back a long run with many spans takes seconds.
static const int64_t READY_NS = 60 * NS_PER_S, REPORT_NS = 600 * NS_PER_S;

/* ---- folder of a temporary run file ---- */

static int make_folder(struct tracker_recorder *recorder, struct wattle_error *reterr)
{
	const char *given = secure_getenv("TMPDIR");
	const char *parent_folder = given != NULL && given[0] != '\0' ? given : "/tmp";
	char folder[PATH_MAX], whole[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s/wattle-XXXXXX", parent_folder);
	// The path must be absolute: the program may change its working directory before the folder is removed.
	if (mkdtemp(folder) == NULL || realpath(folder, whole) == NULL)
		return error_set(reterr, -errno,
			"can't create a folder for the run file in %s: %s; give a file name in `output`", parent_folder,
			strerror(errno));
	recorder->folder = strdup(whole);
	return recorder->folder != NULL ? 0 : error_set(reterr, -ENOMEM, "out of memory");
}

void tracker_remove_files(struct tracker_recorder *recorder)
{
	DIR *folder = recorder->folder != NULL ? opendir(recorder->folder) : NULL;
	for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
		unlinkat(dirfd(folder), entry->d_name, 0); // fails for subfolders; rmdir then fails too
	if (folder != NULL) {
		closedir(folder);
		rmdir(recorder->folder);
	}
	free(recorder->folder);
	recorder->folder = NULL;
}

/* ---- socket ---- */

static int open_line(struct tracker_recorder *recorder, int *ret_other)
{
	int fds[2];
	struct stat st;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return -errno;
	// Above the descriptor it gets in the recorder, and above stdio, which the program may have closed.
	*ret_other = fcntl(fds[1], F_DUPFD_CLOEXEC, SPAWN_CONTROL_FD + 1);
	recorder->fd = fcntl(fds[0], F_DUPFD_CLOEXEC, SPAWN_CONTROL_FD + 1);
	int code = -errno;
	close(fds[0]);
	close(fds[1]);
	if (*ret_other >= 0 && recorder->fd >= 0 && fstat(recorder->fd, &st) == 0) {
		recorder->fd_device = st.st_dev;
		recorder->fd_node = st.st_ino;
		return 0;
	}
	if (*ret_other >= 0)
		close(*ret_other);
	return code;
}

static bool line_is_ours(const struct tracker_recorder *recorder)
{
	struct stat st;
	return recorder->fd >= 0 && fstat(recorder->fd, &st) == 0 && st.st_dev == recorder->fd_device &&
		st.st_ino == recorder->fd_node;
}

static void close_line(struct tracker_recorder *recorder)
{
	if (line_is_ours(recorder))
		close(recorder->fd);
	recorder->fd = -1;
}

// While the recorder holds its end of the socket, its pid can't have been reused.
static void kill_recorder(const struct tracker_recorder *recorder)
{
	if (recorder->pid > 0)
		kill(recorder->pid, SIGKILL);
}

/* If the program is a subreaper, the recorder is its child by now. The recorder has just closed its end, so it is about
 * to exit and its pid can't have been reused. */
static void reap(const struct tracker_recorder *recorder)
{
	siginfo_t info;
	if (recorder->pid <= 0 || waitid(P_PID, (id_t)recorder->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
		return;
	while (waitpid(recorder->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

static void await_end(const struct tracker_recorder *recorder)
{
	struct tracker_reply word;
	int r = tracker_receive(recorder->fd, clock_now_ns() + NS_PER_S, TRACKER_TEXT_MAX, &word);
	if (r == 0)
		free(word.text);
	else if (r == -EPIPE)
		reap(recorder);
}

/* ---- messages from the recorder ---- */

static int refused(const struct tracker_reply *word, struct wattle_error *reterr)
{
	int code = word->message.code < 0 ? word->message.code : -EIO;
	return error_set(reterr, code, "%.*s", (int)sizeof(reterr->text) - 1, word->text);
}

static void keep(char **slot, struct tracker_reply *word)
{
	free(*slot);
	*slot = word->text;
	word->text = NULL;
}

// Reads messages until `awaited` arrives and stores its text in *slot.
static int receive_until(struct tracker_recorder *recorder, const char *awaited, char **slot, int64_t timeout_ns,
	struct wattle_error *reterr)
{
	int64_t deadline_ns = clock_now_ns() + timeout_ns;
	for (;;) {
		struct tracker_reply word;
		int r = tracker_receive(recorder->fd, deadline_ns, TRACKER_TEXT_MAX, &word);
		if (r < 0)
			return r;
		bool done = tracker_message_is(&word.message, awaited);
		bool failed = tracker_message_is(&word.message, "error");
		if (done)
			keep(slot, &word);
		else if (failed)
			r = refused(&word, reterr);
		else if (tracker_message_is(&word.message, "file"))
			keep(&recorder->run_file, &word);
		free(word.text);
		if (done || failed)
			return r;
	}
}

/* ---- start ---- */

static int spawn(struct tracker_recorder *recorder, const char *program, const struct tracker_command *command,
	bool quiet, struct wattle_error *reterr)
{
	int other = -1;
	int r = open_line(recorder, &other);
	if (r < 0)
		return error_set(reterr, r, "can't create a socket: %s", strerror(-r));
	const struct spawn spawn = {
		.program = program,
		.argv = command->words,
		.environment = environ,
		.control_fd = other,
		.quiet = quiet,
	};
	recorder->pid = spawn_detached(&spawn);
	close(other);
	if (recorder->pid < 0)
		return error_set(reterr, recorder->pid, "can't start %s: %s", program, strerror(-recorder->pid));
	return 0;
}

static int await_ready(struct tracker_recorder *recorder, struct wattle_error *reterr)
{
	int r = receive_until(recorder, "ready", &recorder->ring, READY_NS, reterr);
	if (r == -ETIMEDOUT) {
		kill_recorder(recorder);
		return error_set(reterr, r, "the recorder was not ready within %lld s",
			(long long)(READY_NS / NS_PER_S));
	}
	if (r == -EPIPE || r == -EPROTO)
		return error_set(reterr, -EIO,
			"the recorder ended before it was ready; check that `program` is wattle");
	if (r == -ENOMEM)
		return error_set(reterr, r, "out of memory");
	return r;
}

static int start(struct tracker_recorder *recorder, const struct wattle_tracker_options *options, pid_t pid,
	struct wattle_error *reterr)
{
	char program[PATH_MAX], temporary[PATH_MAX];
	int r = tracker_program_find(options->program, program, sizeof(program));
	if (r < 0 && options->program != NULL)
		return error_set(reterr, r, "%s: %s", options->program, strerror(-r));
	if (r < 0)
		return error_set(reterr, -ENOENT,
			"can't find the program wattle next to this library or in $PATH; set its path in `program`");
	if (options->output == NULL) {
		r = make_folder(recorder, reterr);
		if (r < 0)
			return r;
		snprintf(temporary, sizeof(temporary), "%s/run.sqlite", recorder->folder);
	}
	struct tracker_command command;
	const char *output = options->output != NULL ? options->output : temporary;
	if (tracker_command_make(&command, options, output, pid, SPAWN_CONTROL_FD) < 0)
		r = error_set(reterr, -ENOMEM, "out of memory");
	else
		r = spawn(recorder, program, &command, options->quiet != 0, reterr);
	tracker_command_finish(&command);
	return r < 0 ? r : await_ready(recorder, reterr);
}

int tracker_spawn(struct tracker_recorder *recorder, const struct wattle_tracker_options *options, pid_t pid,
	struct wattle_error *reterr)
{
	*recorder = (struct tracker_recorder){.fd = -1, .pid = -1};
	int r = start(recorder, options, pid, reterr);
	if (r == 0)
		return 0;
	if (recorder->fd >= 0 && recorder->pid >= 0)
		await_end(recorder);
	tracker_remove_files(recorder);
	tracker_free(recorder);
	return r;
}

/* ---- end ---- */

int tracker_end(struct tracker_recorder *recorder, double timeout_s, struct wattle_error *reterr)
{
	int64_t wait_ns = timeout_s > 0 ? (int64_t)(timeout_s * NS_PER_S) : REPORT_NS;
	if (!line_is_ours(recorder)) {
		recorder->fd = -1;
		free(recorder->folder); // the recorder still writes to this folder
		recorder->folder = NULL;
		return error_set(reterr, -EIO,
			"the program has closed the tracker's descriptor: the recording ends with the program");
	}
	tracker_send(recorder->fd, "stop"); // if the recorder is gone, its earlier messages can still be read
	int r = receive_until(recorder, "report", &recorder->report, wait_ns, reterr);
	if (r == 0 || reterr->code != 0)
		await_end(recorder);
	else if (r == -ETIMEDOUT)
		kill_recorder(recorder);
	close_line(recorder);
	if (r == 0)
		return 0;
	if (reterr->code == 0)
		error_set(reterr, -EIO, r == -ETIMEDOUT ? "the recorder did not finish" : "the recorder died");
	return -EIO;
}

void tracker_free(struct tracker_recorder *recorder)
{
	close_line(recorder);
	free(recorder->folder);
	free(recorder->run_file);
	free(recorder->ring);
	free(recorder->report);
	*recorder = (struct tracker_recorder){.fd = -1, .pid = -1};
}
