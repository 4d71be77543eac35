/* wattle attach: the same for a process that runs already. */
#include "cli/measure.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { ARGUMENTS_MAX = 256 };

struct command_line { // of a running process
	char text[16384];
	const char *argv[ARGUMENTS_MAX + 1];
};

static void read_command_line(pid_t pid, struct command_line *line)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd >= 0 ? read(fd, line->text, sizeof(line->text) - 1) : -1;
	size_t n = 0;
	if (size > 0) {
		line->text[size] = '\0';
		for (char *at = line->text; at < line->text + size && n < ARGUMENTS_MAX; at += strlen(at) + 1)
			line->argv[n++] = at;
	}
	line->argv[n] = NULL;
}

static int measure_process(const struct measure_options *options, pid_t pid)
{
	struct wattle_error error = {0};
	struct measure measure;
	struct command_line line;
	read_command_line(pid, &line);
	if (measure_open(&measure, options, pid, line.argv, true, &error) < 0) {
		measure_close(&measure, true);
		return cli_fail(EXIT_FAILED, &error);
	}
	struct recorder_options recorder_options;
	struct recorder_result result;
	measure_recorder_options(&measure, &recorder_options);
	int r = recorder_attach(&measure.env, &measure.sensors, pid, measure.sinks, measure.n_sinks, &recorder_options,
		&result, &error);
	if (r < 0) {
		measure_close(&measure, true);
		return cli_fail(EXIT_FAILED, &error);
	}
	int status = measure_conclude(&measure, &result);
	measure_close(&measure, false);
	return status;
}

static int attach(const struct command *command, int argc, char **argv)
{
	struct measure_options options = measure_defaults();
	void *config;
	int first, status;
	int64_t pid;
	bool parsed = cli_parse(command, argc, argv, &options, &first, &config, EXIT_USAGE, &status);
	if (parsed && first + 1 != argc)
		status = cli_usage(command, EXIT_USAGE,
			first >= argc ? "no process given" : "more than one process given");
	else if (parsed && (num_parse_i64(argv[first], &pid) < 0 || pid < 1 || pid > INT32_MAX))
		status = cli_usage(command, EXIT_USAGE, "'%s' is no process id", argv[first]);
	else if (parsed)
		status = measure_process(&options, (pid_t)pid);
	option_config_free(config);
	return status;
}

const struct command command_attach = {
	.name = "attach",
	.usage = "[OPTIONS] PID",
	.summary = "measure a running process, until it ends or SIGINT or SIGTERM comes",
	.options = measure_option_table,
	.n_options = MEASURE_OPTIONS,
	.run = attach,
};
