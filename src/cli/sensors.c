/* wattle sensors: what this machine can measure, and what would mend the rest. */
#include "cli/command.h"

#include "base/util.h"
#include "cli/calibrate_idle.h"
#include "cli/capture.h"
#include "cli/doctor.h"

#include <stdio.h>

enum { TEXT_CEILING = 1 << 22 };

struct values {
	bool json, calibrate_idle;
	const char *capture;
	double seconds; // NaN: not given
};

static const struct option options[] = {
	{"json", 0, NULL, "as JSON", OPTION_FLAG, .offset = offsetof(struct values, json)},
	{"capture", 0, "DIR",
		"save the parts of /sys and /proc that the sensors read, without names\n"
		"and serial numbers, as a tree for tests; DIR must be new or empty",
		OPTION_TEXT, .offset = offsetof(struct values, capture)},
	{"calibrate-idle", 0, NULL,
		"measure and keep the idle power of each domain, for\n`wattle run --attribution active`; only when the "
		"machine is idle",
		OPTION_FLAG, .offset = offsetof(struct values, calibrate_idle)},
	{"seconds", 0, "S", "with --calibrate-idle: how long it has to be idle (default 10)", OPTION_NUMBER,
		.offset = offsetof(struct values, seconds), .least = 1, .most = 3600,
		.range = "a number of seconds from 1 to 3600"},
};

static int print(const struct doctor *doctor, bool as_json)
{
	struct buf out;
	buf_init(&out, TEXT_CEILING);
	if (as_json)
		doctor_json(doctor, &out);
	else
		doctor_text(doctor, &out);
	int status = cli_write(&out, "-");
	buf_finish(&out);
	return status;
}

static int diagnose(const struct wattle_env *env, bool as_json)
{
	struct wattle_error error = {0};
	struct doctor doctor;
	if (doctor_open(&doctor, env, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	int status = print(&doctor, as_json);
	if (status == EXIT_DONE && !doctor_measures(&doctor))
		status = EXIT_FAILED;
	doctor_close(&doctor);
	return status;
}

static int check(const struct command *command, const struct values *values, const struct option_list *words)
{
	if (words->n > 0)
		return cli_usage(command, EXIT_USAGE, "'%s' is not expected", words->items[0]);
	if (values->json + values->calibrate_idle + (values->capture != NULL) > 1)
		return cli_usage(command, EXIT_USAGE, "--json, --capture and --calibrate-idle do not go together");
	if (!isnan(values->seconds) && !values->calibrate_idle)
		return cli_usage(command, EXIT_USAGE, "--seconds goes with --calibrate-idle only");
	return EXIT_DONE;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {.seconds = (double)NAN};
	struct option_list words;
	int status;
	if (!cli_parse_words(command, argc, argv, &values, &words, &status))
		return status;
	status = check(command, &values, &words);
	if (status != EXIT_DONE)
		return status;
	struct wattle_error error = {0};
	struct wattle_env env;
	if (env_open(&env, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	if (values.capture != NULL)
		status = capture_machine(&env, values.capture);
	else if (values.calibrate_idle)
		status = calibrate_idle(&env, isnan(values.seconds) ? 10 : values.seconds);
	else
		status = diagnose(&env, values.json);
	env_close(&env);
	return status;
}

const struct command command_sensors = {
	.name = "sensors",
	.usage = "[--json | --capture DIR | --calibrate-idle [--seconds S]]",
	.summary = "what this machine can measure, and what would mend the rest",
	.details =
		"Lists every energy sensor: what a run would use, what loses to a better sensor, what can't be read, why,\n"
		"and the command that mends it; with the measured time between two updates of each counter and its\n"
		"smallest step. The status is 0 if anything is measured on this machine, 1 if all is estimated or\n"
		"nothing can be had, 2 for a wrong use.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
