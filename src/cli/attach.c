/* wattle attach: measures a running process, or all processes of a cgroup. */
#include "cli/measure.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"
#include "process/cgroup.h"
#include "process/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { ARGUMENTS_MAX = 256, ALSO_MAX = 4096 };

struct command_line { // command line of a running process
	char text[16384];
	const char *argv[ARGUMENTS_MAX + 1];
};

static void read_command_line(pid_t pid, struct command_line *line)
{
	char path[40];
	wattle_cleanup_close int procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%d/cmdline", proc_is_foreign(procfs_fd) ? proc_pid(procfs_fd, pid) : pid);
	wattle_cleanup_close int fd = openat(procfs_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd >= 0 ? read(fd, line->text, sizeof(line->text) - 1) : -1;
	size_t n = 0;
	if (size > 0) {
		line->text[size] = '\0';
		for (char *at = line->text; at < line->text + size && n < ARGUMENTS_MAX; at += strlen(at) + 1)
			line->argv[n++] = at;
	}
	line->argv[n] = NULL;
}

static int parse_pid(const char *text, pid_t *ret_pid, struct wattle_error *reterr)
{
	int64_t pid;
	if (num_parse_i64(text, &pid) < 0 || pid < 1 || pid > INT32_MAX)
		return error_set(reterr, -EINVAL, "'%s' is not a process ID", text);
	*ret_pid = (pid_t)pid;
	return 0;
}

// --also 12,34 --also 56
static int read_also(const struct measure_options *options, pid_t *pids, size_t *ret_n, struct wattle_error *reterr)
{
	*ret_n = 0;
	for (size_t i = 0; i < options->also.n; i++) {
		wattle_cleanup_free char *list = strdup(options->also.items[i]);
		if (list == NULL)
			return error_set(reterr, -ENOMEM, "out of memory");
		char *rest = list;
		for (const char *word; (word = strsep(&rest, ",")) != NULL;) {
			if (*ret_n == ALSO_MAX)
				return error_set(reterr, -EINVAL, "--also: too many processes; at most %d can be given",
					ALSO_MAX);
			int r = parse_pid(word, &pids[(*ret_n)++], reterr);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

struct followed { // target of attach
	pid_t pid;
	const pid_t *also; // n_also further processes
	size_t n_also;
	const char *const *command;
	struct cgroup *cgroup; // NULL: a process, not a cgroup
	bool held;             // the process has not executed its command yet
};

static int follow(const struct measure_options *options, const struct followed *followed)
{
	struct wattle_error error = {0};
	struct measure measure;
	if (measure_open(&measure, options, followed->pid, followed->command, true, &error) < 0) {
		measure_close(&measure, true);
		return control_refuse(options->control, EXIT_FAILED, &error);
	}
	struct recorder_options recorder_options;
	struct recorder_result result;
	measure_recorder_options(&measure, &recorder_options);
	recorder_options.cgroup = followed->cgroup;
	recorder_options.also = followed->also;
	recorder_options.n_also = followed->n_also;
	recorder_options.held = followed->held;
	int r = recorder_attach(&measure.env, &measure.sensors, followed->pid, measure.sinks, measure.n_sinks,
		&recorder_options, &result, &error);
	if (r < 0) {
		measure_close(&measure, true);
		return control_refuse(options->control, EXIT_FAILED, &error);
	}
	int status = measure_conclude(&measure, &result);
	measure_close(&measure, false);
	return status;
}

// held_for: the command that the process is about to execute; NULL: the process is already running.
static int measure_process(const struct measure_options *options, pid_t pid, const char *const *held_for)
{
	struct command_line line;
	struct wattle_error error = {0};
	pid_t also[ALSO_MAX];
	size_t n_also = 0;
	if (read_also(options, also, &n_also, &error) < 0)
		return control_refuse(options->control, EXIT_USAGE, &error);
	read_command_line(pid, &line);
	return follow(options,
		&(struct followed){.pid = pid,
			.also = also,
			.n_also = n_also,
			.command = held_for != NULL ? held_for : line.argv,
			.held = held_for != NULL});
}

static int open_cgroup(struct cgroup *cgroup, const char *path, struct wattle_error *reterr)
{
	struct wattle_env env;
	int r = env_open(&env, reterr);
	if (r < 0)
		return r;
	r = cgroup_open(cgroup, &env, path, reterr);
	env_close(&env);
	return r;
}

static int measure_cgroup(const struct measure_options *options)
{
	struct wattle_error error = {0};
	struct cgroup cgroup = {0};
	int status = EXIT_FAILED;
	if (open_cgroup(&cgroup, options->cgroup, &error) < 0) {
		cli_fail(status, &error);
	} else {
		const char *const command[] = {cgroup.path, NULL};
		status = follow(options,
			&(struct followed){.pid = cgroup.main_pid, .command = command, .cgroup = &cgroup});
	}
	cgroup_close(&cgroup);
	return status;
}

// Reads the operands: a process id, or nothing with --cgroup. -EINVAL with a message.
static int find_target(const struct measure_options *options, int argc, char **argv, pid_t *ret_pid,
	struct wattle_error *reterr)
{
	const char *capture = injection_option(options);
	if (capture != NULL)
		return error_set(reterr, -EINVAL,
			"%s: a running process can't be captured; start it with wattle run %s", capture,
			capture);
	if (options->cgroup != NULL && argc > 0)
		return error_set(reterr, -EINVAL, "'%s' and --cgroup: give one of them", argv[0]);
	if (options->cgroup != NULL && options->also.n > 0)
		return error_set(reterr, -EINVAL, "--also and --cgroup: give one of them");
	int r = measure_check(options, reterr);
	if (r < 0 || options->cgroup != NULL)
		return r;
	if (argc != 1)
		return error_set(reterr, -EINVAL,
			argc == 0 ? "no process given" : "more than one process given; add the others with --also");
	return parse_pid(argv[0], ret_pid, reterr);
}

static int attach_by_hand(const struct command *command, int argc, char **argv)
{
	struct measure_options options = measure_defaults();
	struct wattle_error error = {0};
	void *config;
	int first, status;
	pid_t pid = 0; // with --cgroup
	if (cli_parse(command, argc, argv, &options, &first, &config, EXIT_USAGE, &status)) {
		if (find_target(&options, argc - first, argv + first, &pid, &error) < 0)
			status = cli_usage(command, EXIT_USAGE, "%s", error.text);
		else
			status = options.cgroup != NULL ? measure_cgroup(&options)
							: measure_process(&options, pid, NULL);
	}
	option_config_free(config);
	return status;
}

/* ---- spawned by a tracker, or by the Slurm plugin ---- */

static int attach_under(const struct command *command, struct control *control, int argc, char **argv)
{
	struct measure_options options = measure_defaults();
	struct wattle_error error = {0};
	void *config = NULL;
	int first = argc;
	pid_t pid = 0;
	int r = options_parse(command->options, command->n_options, command->name, argc, argv, &options, &first,
		&config, &error);
	if (r == 0 && options.cgroup != NULL)
		r = error_set(&error, -EINVAL, "--cgroup: a tracker measures a process");
	int n_operands = argc - first > 1 ? 1 : argc - first; // PID [CMD ARG…]
	const char *const *held_for = argc - first > 1 ? (const char *const *)argv + first + 1 : NULL;
	if (r == 0)
		r = find_target(&options, n_operands, argv + first, &pid, &error);
	options.control = control;
	int status = r < 0 ? control_refuse(control, EXIT_USAGE, &error) : measure_process(&options, pid, held_for);
	option_config_free(config);
	return status;
}

static int attach(const struct command *command, int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[0], "--control-fd") != 0)
		return attach_by_hand(command, argc, argv);
	struct wattle_error error = {0};
	struct control control;
	if (control_open(&control, argv[1], &error) < 0)
		return cli_fail(EXIT_USAGE, &error);
	int status = attach_under(command, &control, argc - 2, argv + 2);
	control_close(&control);
	return status;
}

const struct command command_attach = {
	.name = "attach",
	.usage = "[OPTIONS] PID | --cgroup PATH",
	.summary = "measure a running process or a cgroup until it ends or wattle receives SIGINT or SIGTERM",
	.details =
		"With --cgroup, wattle measures all processes in the cgroup and in the cgroups below it. CPU "
		"time is the\nkernel's total for the cgroup, which includes short-lived processes. The "
		"oldest process that exists when\nmeasuring begins is shown as main. The run ends when the "
		"cgroup is empty or removed. An empty cgroup is\nrefused.",
	.options = measure_option_table,
	.n_options = ATTACH_OPTIONS,
	.run = attach,
};
