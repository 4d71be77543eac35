/* wattle sensors: the sensors of this machine, and how to enable the unavailable ones. */
#include "cli/command.h"

#include "base/util.h"
#include "cli/sensors.h"

#include <stdio.h>

struct values {
	bool json, calibrate_idle;
	const char *capture;
	const char *wall_meter, *supply;
	int64_t calibrate_gpu; // GPU index; VALUE_MISSING: not given
	double seconds;        // NaN: not given
};

static const struct option options[] = {
	{"json", 0, NULL, "print JSON", OPTION_FLAG, .offset = offsetof(struct values, json)},
	{"capture", 0, "DIR",
		"save the parts of /sys and /proc that the sensors read to DIR, without\nnames and serial "
		"numbers, for tests; DIR must be new or empty",
		OPTION_TEXT, .offset = offsetof(struct values, capture)},
	{"calibrate-idle", 0, NULL,
		"measure and store the idle power of each domain, for\n`wattle run --attribution active`; "
		"the machine must be idle",
		OPTION_FLAG, .offset = offsetof(struct values, calibrate_idle)},
	{"calibrate-gpu", 0, "INDEX",
		"calibrate this GPU's power sensor against --wall-meter and store the\nfactor: CMD, which "
		"loads the GPU, is started and ended four times, with\nidle phases between these runs",
		OPTION_INTEGER, .offset = offsetof(struct values, calibrate_gpu), .least = 0, .most = 1023,
		.range = "the index of a GPU, 0 or more"},
	{"wall-meter", 0, "FILE",
		"with --calibrate-gpu: CSV file that a wall meter's reader writes\n(OmegaWatt layout)", OPTION_TEXT,
		.offset = offsetof(struct values, wall_meter)},
	{"supply-efficiency", 0, "PERCENT±ERROR",
		"with --calibrate-gpu: efficiency of the power supply behind the meter,\nsuch as 92±2 "
		"(default 91±5); 100: the meter is in the card's own\nsupply lines",
		OPTION_TEXT, .offset = offsetof(struct values, supply)},
	{"seconds", 0, "S",
		"with --calibrate-idle and --calibrate-gpu: duration of the idle time or\nof a phase (default 10)",
		OPTION_NUMBER, .offset = offsetof(struct values, seconds), .least = 1, .most = 3600,
		.range = "a number of seconds from 1 to 3600"},
};

static int print(const struct sensors_report *report, bool as_json)
{
	struct buf out = cli_buf();
	if (as_json)
		sensors_report_json(report, &out);
	else
		sensors_report_text(report, &out);
	return cli_finish(&out, "-");
}

static int diagnose(const struct wattle_env *env, bool as_json)
{
	struct wattle_error error = {0};
	struct sensors_report report;
	if (sensors_report_open(&report, env, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	int status = print(&report, as_json);
	if (status == EXIT_DONE && !sensors_report_measures(&report))
		status = EXIT_FAILED;
	sensors_report_close(&report);
	return status;
}

static int check(const struct command *command, const struct values *values, const char *word)
{
	bool gpu = value_ok(values->calibrate_gpu);
	if (word != NULL && !gpu)
		return cli_usage(command, EXIT_USAGE, "unexpected argument '%s'", word);
	if (values->json + values->calibrate_idle + gpu + (values->capture != NULL) > 1)
		return cli_usage(command, EXIT_USAGE,
			"give only one of --json, --capture, --calibrate-idle and --calibrate-gpu");
	if (!isnan(values->seconds) && !values->calibrate_idle && !gpu)
		return cli_usage(command, EXIT_USAGE, "--seconds needs --calibrate-idle or --calibrate-gpu");
	if ((values->wall_meter != NULL || values->supply != NULL) && !gpu)
		return cli_usage(command, EXIT_USAGE,
			"--wall-meter and --supply-efficiency need --calibrate-gpu");
	if (gpu && values->wall_meter == NULL)
		return cli_usage(command, EXIT_USAGE, "--calibrate-gpu needs a wall meter: give --wall-meter FILE");
	if (gpu && word == NULL)
		return cli_usage(command, EXIT_USAGE,
			"--calibrate-gpu needs a command that loads the GPU: give -- CMD");
	return EXIT_DONE;
}

static int run_calibrate_gpu(const struct wattle_env *env, const struct values *values, char **argv)
{
	struct wattle_error error = {0};
	struct calibrate_gpu how = {.index = (int)values->calibrate_gpu,
		.wall_meter = values->wall_meter,
		.seconds = isnan(values->seconds) ? 10 : values->seconds,
		.argv = argv};
	if (calibrate_gpu_supply(values->supply, &how.supply, &error) < 0)
		return cli_fail(EXIT_USAGE, &error);
	return calibrate_gpu(env, &how);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {.seconds = (double)NAN, .calibrate_gpu = VALUE_MISSING};
	void *config; // unused: no --config here
	int status, first;
	if (!cli_parse(command, argc, argv, &values, &first, &config, EXIT_USAGE, &status))
		return status;
	status = check(command, &values, argv[first]);
	if (status != EXIT_DONE)
		return status;
	struct wattle_error error = {0};
	struct wattle_env env;
	if (env_open(&env, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	if (values.capture != NULL)
		status = capture_machine(&env, values.capture);
	else if (value_ok(values.calibrate_gpu))
		status = run_calibrate_gpu(&env, &values, argv + first);
	else if (values.calibrate_idle)
		status = calibrate_idle(&env, isnan(values.seconds) ? 10 : values.seconds);
	else
		status = diagnose(&env, values.json);
	env_close(&env);
	return status;
}

const struct command command_sensors = {
	.name = "sensors",
	.usage =
		"[--json | --capture DIR | --calibrate-idle [--seconds S] | --calibrate-gpu INDEX --wall-meter FILE -- CMD…]",
	.summary = "show the sensors of this machine, and how to enable unavailable ones",
	.details = "Lists all energy sensors: those that a run would use, those replaced by a better sensor, "
		   "and those that\ncan't be read, with the reason and the command that enables them. For each "
		   "counter it shows the measured\nupdate period and the resolution. The exit status is 0 if "
		   "this machine measures any energy; 1 if energy is only\nestimated or unavailable; 2 for "
		   "wrong usage.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
