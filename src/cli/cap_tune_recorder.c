/* The child that measures: `wattle run` or `wattle attach`. If wattle is killed, the child continues, because the command
 * belongs to the user; the guard restores the limit. */
#include "cli/cap_tune.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/util.h"
#include "cli/measure.h"
#include "sampler/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OWN_ARGUMENTS = 24 };

/* ---- the run file ---- */

int tune_recorder_open(struct tune_recorder *recorder, const struct cap_tune_options *options,
	struct bench_signals *signals, struct wattle_error *reterr)
{
	*recorder = (struct tune_recorder){.options = options, .signals = signals};
	if (options->output == NULL) {
		int made = bench_folder_make("wattle-tune", recorder->folder, sizeof(recorder->folder), reterr);
		snprintf(recorder->path, sizeof(recorder->path), "%s/run.sqlite", recorder->folder);
		return made;
	}
	struct job_env job_env;
	job_env_find(job_from_environment, NULL, &job_env);
	const struct output_naming naming = {.pattern = options->output, .pid = getpid(), .job_env = &job_env};
	int r = output_path(&naming, recorder->path, sizeof(recorder->path), reterr);
	if (r < 0)
		return r;
	if (access(recorder->path, F_OK) == 0)
		return error_set(reterr, -EEXIST, "--output: %s exists already; choose another name", recorder->path);
	return cli_check_writable("--output", recorder->path, reterr);
}

void tune_recorder_close(struct tune_recorder *recorder)
{
	bench_folder_remove(recorder->folder);
}

/* ---- the child ---- */

struct arguments {
	char interval[40], flush[40], path[2 * sizeof(((struct tune_recorder *)0)->path)], pid[24];
	char *words[OWN_ARGUMENTS];
	size_t n;
};

static void add(struct arguments *arguments, const char *word)
{
	arguments->words[arguments->n++] = (char *)(uintptr_t)word;
}

// Short windows need short delays until their rows are stored.
static int64_t flush_ns(const struct cap_tune_options *options)
{
	double ms = fmin(fmax(options->seconds * 1e3 / 30, 50), 500);
	return (int64_t)ms * NS_PER_MS;
}

static void fill(const struct tune_recorder *recorder, struct arguments *arguments)
{
	const struct cap_tune_options *options = recorder->options;
	bool attaches = options->command == NULL;
	*arguments = (struct arguments){.n = 0};
	snprintf(arguments->interval, sizeof(arguments->interval), "%lldus", (long long)(options->interval_ns / 1000));
	snprintf(arguments->flush, sizeof(arguments->flush), "%lldus", (long long)(flush_ns(options) / 1000));
	snprintf(arguments->pid, sizeof(arguments->pid), "%lld", (long long)options->pid);
	bench_escape_pattern(recorder->path, arguments->path, sizeof(arguments->path));
	const char *const words[] = {"wattle", attaches ? "attach" : "run", "--quiet", "--disable-logs", "--alone",
		"--interval", arguments->interval, "--flush", arguments->flush, "--output", arguments->path};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		add(arguments, words[i]);
	if (recorder->n_started > 0)
		add(arguments, "--append");
	if (options->nvtx)
		add(arguments, "--nvtx");
	if (options->itt)
		add(arguments, "--itt");
	if (options->step != NULL) {
		add(arguments, "--step");
		add(arguments, options->step);
	}
	add(arguments, "--");
	if (attaches)
		add(arguments, arguments->pid);
}

static void child(const struct tune_recorder *recorder, char *const *argv)
{
	bench_signals_restore(recorder->signals);
	execv("/proc/self/exe", argv);
	_exit(EXIT_OWN_FAILURE);
}

int tune_recorder_start(struct tune_recorder *recorder, struct wattle_error *reterr)
{
	struct arguments arguments;
	size_t n = 0;
	fill(recorder, &arguments);
	char *const *command = recorder->options->command;
	while (command != NULL && command[n] != NULL)
		n++;
	wattle_cleanup_free char **argv = calloc_array(arguments.n + n + 1, sizeof(*argv));
	if (argv == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	memcpy(argv, arguments.words, arguments.n * sizeof(*argv));
	for (size_t i = 0; i < n; i++)
		argv[arguments.n + i] = command[i];
	recorder->started_ns = clock_now_ns();
	pid_t pid = fork();
	if (pid == 0)
		child(recorder, argv);
	if (pid < 0)
		return error_set(reterr, -errno, "can't start a process: %s", strerror(errno));
	recorder->pid = pid;
	recorder->n_started++;
	return 0;
}

static void note_end(struct tune_recorder *recorder, int status)
{
	recorder->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	recorder->pid = 0;
}

bool tune_recorder_has_ended(struct tune_recorder *recorder)
{
	int status;
	if (recorder->pid != 0 && waitpid(recorder->pid, &status, WNOHANG) == recorder->pid)
		note_end(recorder, status);
	return recorder->pid == 0;
}

void tune_recorder_signal(const struct tune_recorder *recorder, int signal)
{
	if (recorder->pid != 0)
		kill(recorder->pid, signal);
}

void tune_recorder_wait(struct tune_recorder *recorder)
{
	if (!tune_recorder_has_ended(recorder))
		note_end(recorder, bench_wait(recorder->signals, recorder->pid));
}
