/* Code that runs in a fork of slurmstepd, which has threads: it may use only functions that are safe there, and malloc,
 * which glibc keeps usable. It is root until become_owner and reads no input from a user before that. */
#include "spank/spank.h"

#include "base/descriptors.h"
#include "base/util.h"
#include "job/job.h"
#include "lib/tracker_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONTROL_FD = 3, TEXTS_MAX = 16 << 20, WORDS_MAX = 512 };

/* ---- errors ---- */

__attribute__((noreturn, format(printf, 3, 4))) static void refuse(int control_fd, int code, const char *format, ...)
{
	char text[600];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	struct tracker_message message = tracker_message("error", code, strlen(text));
	if (send(control_fd, &message, sizeof(message), MSG_NOSIGNAL) == sizeof(message))
		(void)send(control_fd, text, strlen(text), MSG_NOSIGNAL);
	_exit(1);
}

/* ---- descriptors ---- */

static int move_descriptor(int fd, int at)
{
	return dup2(fd, at) == at ? 0 : -errno;
}

/* 0 and 1 are /dev/null, 2 goes to slurmstepd, 3 is the control socket; all others belong to slurmstepd and are
 * closed. The sources are first moved above the target numbers. */
static int arrange_descriptors(const struct recorder_start *start)
{
	int control_fd = fcntl(start->control_fd, F_DUPFD, CONTROL_FD + 1);
	int error_fd = fcntl(start->error_fd, F_DUPFD, CONTROL_FD + 1);
	int nothing_fd = open("/dev/null", O_RDWR);
	if (control_fd < 0 || error_fd < 0 || nothing_fd < 0)
		return -errno;
	int r = move_descriptor(control_fd, CONTROL_FD);
	if (r == 0)
		r = move_descriptor(error_fd, STDERR_FILENO);
	if (r == 0)
		r = move_descriptor(nothing_fd, STDOUT_FILENO);
	if (r == 0)
		r = move_descriptor(nothing_fd, STDIN_FILENO);
	close_from(CONTROL_FD + 1);
	return r;
}

/* ---- message from the task ---- */

struct task_words {
	char **environment, **command; // NULL-terminated; they point into `text`
	char *text;
};

static bool read_all(void *bytes, size_t size)
{
	char *at = bytes;
	while (size > 0) {
		ssize_t n = recv(CONTROL_FD, at, size, 0);
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		at += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

// NULL: the text ends too early.
static char **list_texts(char **at, const char *end, size_t n)
{
	char **texts = calloc_array(n + 1, sizeof(*texts));
	for (size_t i = 0; texts != NULL && i < n; i++) {
		char *nul = memchr(*at, '\0', (size_t)(end - *at));
		if (nul == NULL)
			return NULL;
		texts[i] = *at;
		*at = nul + 1;
	}
	return texts;
}

// Exits if the task ends before it has sent anything: it will not be measured.
static void receive_task(struct task_words *ret_words)
{
	struct task_greeting greeting;
	if (!read_all(&greeting, sizeof(greeting)))
		_exit(0);
	if (greeting.size > TEXTS_MAX)
		refuse(CONTROL_FD, -E2BIG, "its environment is larger than %d MiB", TEXTS_MAX >> 20);
	char *text = malloc(greeting.size + 1);
	if (text == NULL)
		refuse(CONTROL_FD, -ENOMEM, "out of memory");
	if (!read_all(text, greeting.size))
		_exit(0);
	umask(greeting.umask);
	char *at = text;
	ret_words->text = text;
	ret_words->environment = list_texts(&at, text + greeting.size, greeting.n_variables);
	ret_words->command = list_texts(&at, text + greeting.size, greeting.n_words);
	if (ret_words->environment == NULL || ret_words->command == NULL)
		refuse(CONTROL_FD, -EPROTO, "can't read its environment");
}

/* ---- command line ---- */

struct words {
	const char *at[WORDS_MAX + 1];
	size_t n;
};

static void add(struct words *words, const char *word)
{
	if (words->n < WORDS_MAX)
		words->at[words->n++] = word;
}

static void add_split(struct words *words, char *text)
{
	for (const char *word; (word = strsep(&text, " \t\n")) != NULL;)
		if (word[0] != '\0')
			add(words, word);
}

static void make_folder(char *path)
{
	for (char *at = path + 1; *at != '\0'; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		mkdir(path, 0777);
		*at = '/';
	}
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		refuse(CONTROL_FD, -errno, "can't create the folder %s for run files: %s", path, strerror(errno));
}

// For -o, where % starts a field: doubles it.
static void quote(char *out, size_t size, const char *text)
{
	size_t n = 0;
	for (; *text != '\0' && n + 2 < size; text++) {
		if (*text == '%')
			out[n++] = '%';
		out[n++] = *text;
	}
	out[n] = '\0';
}

static void make_pattern(const struct recorder_start *start, char **environment, char *out, size_t size)
{
	struct wattle_error error = {0};
	struct job_env job_env;
	char folder[SETTING_SIZE], quoted[2 * SETTING_SIZE];
	job_env_find(environment_variable, environment, &job_env);
	if (settings_folder(start->settings, job_env.id, folder, sizeof(folder), &error) < 0)
		refuse(CONTROL_FD, error.code, "%s", error.text);
	make_folder(folder);
	quote(quoted, sizeof(quoted), folder);
	snprintf(out, size, "%s/%%j.%s-r%%r-%%h.sqlite", quoted, start->step);
}

_Noreturn void recorder_start(const struct recorder_start *start)
{
	char pattern[3 * SETTING_SIZE], pid[16];
	char site_words[SETTING_SIZE], user_words[SETTING_SIZE];
	struct task_words task;
	struct words words = {.n = 0};
	int r = become_owner(start->owner); // first, because it uses a descriptor that is closed below
	if (r < 0)
		refuse(start->control_fd, r, "the recorder can't switch to the job's user in the step's folder: %s",
			strerror(-r));
	prctl(PR_SET_PDEATHSIG, SIGKILL); // ends with the keeper; a change of user resets this
	if (getppid() != start->keeper)   // the keeper was killed before
		_exit(1);
	r = arrange_descriptors(start);
	if (r < 0)
		refuse(start->control_fd, r, "can't pass descriptors to the recorder: %s", strerror(-r));
	receive_task(&task);
	make_pattern(start, task.environment, pattern, sizeof(pattern));
	char **environment = recorder_environment(task.environment, environ);
	if (environment == NULL)
		refuse(CONTROL_FD, -ENOMEM, "out of memory");
	visible_of_node(environment);
	text_copy(site_words, sizeof(site_words), start->settings->site_words);
	text_copy(user_words, sizeof(user_words), start->settings->user_words);
	snprintf(pid, sizeof(pid), "%d", start->task);
	const char *const first[] = {start->settings->program, "attach", "--control-fd", "3", "--quiet", "--interval",
		start->settings->interval, "--output", pattern};
	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		add(&words, first[i]);
	add_split(&words, site_words);
	add_split(&words, user_words);
	add(&words, "--");
	add(&words, pid);
	for (char **word = task.command; *word != NULL; word++)
		add(&words, *word);
	execve(start->settings->program, (char *const *)(uintptr_t)words.at, environment);
	refuse(CONTROL_FD, -errno, "can't execute %s: %s; set its path with wattle= in plugstack.conf",
		start->settings->program, strerror(errno));
}
