/* wattle run: forks and holds the command, measures it, and exits with its status. */
#include "cli/measure.h"

#include "base/util.h"

#include <stdio.h>

static int abandon(struct target *target, struct measure *measure, const struct wattle_error *error)
{
	target_abandon(target);
	measure_close(measure, true);
	return cli_fail(EXIT_OWN_FAILURE, error);
}

static int start(const struct measure_options *options, char **argv, struct target *target, struct wattle_error *reterr)
{
	struct assignments environment = {0};
	int r = injection_assign(options, &environment, reterr);
	if (r == 0)
		r = target_start(target, argv, environment.items, reterr);
	assignments_free(&environment);
	return r;
}

static int measure_command(const struct measure_options *options, char **argv)
{
	struct wattle_error error = {0};
	struct target target;
	if (measure_check(options, &error) < 0)
		return cli_fail(EXIT_OWN_FAILURE, &error);
	if (start(options, argv, &target, &error) < 0)
		return cli_fail(EXIT_OWN_FAILURE, &error);
	struct measure measure;
	if (measure_open(&measure, options, target.pid, (const char *const *)argv, false, &error) < 0)
		return abandon(&target, &measure, &error);
	struct recorder_options recorder_options;
	struct recorder_result result;
	measure_recorder_options(&measure, &recorder_options);
	int r = recorder_run(&measure.env, &measure.sensors, &target, argv[0], measure.sinks, measure.n_sinks,
		&recorder_options, &result, &error);
	if (r < 0)
		return abandon(&target, &measure, &error);
	if (r > 0) { // the command never ran: nothing was measured, so remove all outputs
		measure_close(&measure, true);
		return cli_fail(r, &error);
	}
	measure_conclude(&measure, &result);
	measure_close(&measure, false);
	return result.status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct measure_options options = measure_defaults();
	void *config;
	int first, status;
	if (!cli_parse(command, argc, argv, &options, &first, &config, EXIT_OWN_FAILURE, &status)) {
		option_config_free(config);
		return status;
	}
	if (first >= argc)
		status = cli_usage(command, EXIT_OWN_FAILURE, "no command given");
	else
		status = measure_command(&options, argv + first);
	option_config_free(config);
	return status;
}

const struct command command_run = {
	.name = "run",
	.usage = "[OPTIONS] [--] CMD [ARG…]",
	.summary = "measure a command and its child processes",
	.details =
		"Writes a run file and prints a summary on standard error. The exit status is the command's "
		"own; 128+N if\nsignal N ended it; 125 if wattle failed before it started; 126 if it can't "
		"be executed; 127 if it was not\nfound.",
	.options = measure_option_table,
	.n_options = RUN_OPTIONS,
	.run = run,
};
