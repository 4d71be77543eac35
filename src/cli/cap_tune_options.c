/* The options of `wattle cap tune`, and their checks that do not depend on the machine. */
#include "cli/cap_tune.h"

#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define AT(member) .offset = offsetof(struct cap_tune_options, member)

// clang-format off
const struct option cap_tune_option_table[CAP_TUNE_OPTIONS] = {
	{"step", 0, "NAME", "count each call of this code block (a span or an NVTX range) as a step;\ndefault: each whole run of CMD is a step", OPTION_TEXT, AT(step)},
	{"metric", 0, "NAME", "count steps by this custom metric of the program; its values are added up", OPTION_TEXT, AT(metric)},
	{"metric-total", 0, "NAME", "count steps by this custom metric, whose values are a running total", OPTION_TEXT, AT(metric_total)},
	{"nvtx", 0, NULL, "capture the NVTX ranges of an unmodified program", OPTION_FLAG, AT(nvtx)},
	{"itt", 0, NULL, "capture the ITT tasks of an unmodified program", OPTION_FLAG, AT(itt)},
	{"pid", 0, "PID", "tune a running program instead of CMD", OPTION_INTEGER, AT(pid), .least = 1, .most = INT32_MAX, .range = "a process id"},
	{"spans", 0, "FILE", "with --pid: file that receives its spans, either the file of WATTLE_SPANS or\nthe run file of its recorder (default: read from its environment)", OPTION_TEXT, AT(spans)},
	{"objective", 0, "WHAT", "quantity to minimise: ed2p (energy x time² per step, default), edp,\nenergy, or slowdown=PCT: energy, with steps at most PCT percent longer", OPTION_TEXT, AT(objective)},
	{"caps", 0, "N", "number of limits to try (default 8, then more near the best one)", OPTION_INTEGER, AT(n_limits), .least = 2, .most = TUNE_LIMITS, .range = "a number of limits from 2 to 64"},
	{"from", 0, "PERCENT", "lowest limit to try, in percent of the default limit (default 30); never\nbelow the device's minimum", OPTION_NUMBER, AT(from_percent), .least = 1, .most = 99, .range = "a percentage from 1 to 99"},
	{"seconds", 0, "S", "maximum measuring time for each limit (default 30)", OPTION_NUMBER, AT(seconds), .least = 0.01, .most = 86400, .range = "a number of seconds from 0.01 to 86400"},
	{"settle", 0, "S", "wait after each change of the limit (default: until power is steady)", OPTION_NUMBER, AT(settle_s), .least = 0, .most = 3600, .range = "a number of seconds from 0 to 3600"},
	{"patience", 0, "DUR", "maximum wait for a step (default 2m, or ten times the longest step)", OPTION_DURATION, AT(timeout_ns), .least = 1e8, .most = 8.64e13, .range = "a duration from 100ms to 24h, such as 10m"},
	{"apply", 0, NULL, "keep the chosen limit in force; `wattle cap reset DEVICE` undoes this", OPTION_FLAG, AT(apply)},
	{"each", 0, NULL, "tune several devices one after the other, each with its own limit\n(default: one limit for all of them)", OPTION_FLAG, AT(each)},
	{"clocks", 0, NULL, "tune the highest graphics clock in place of the power limit (NVIDIA)", OPTION_FLAG, AT(clocks)},
	{"interval", 'i', "DUR", "sampling period, 1ms to 10s (default 100ms, less with short --seconds)", OPTION_DURATION, AT(interval_ns), .least = 1e6, .most = 1e10, .range = "a duration from 1ms to 10s, such as 100ms"},
	{"seed", 0, "N", "random seed of the order of limits and of the intervals (default 1)", OPTION_INTEGER, AT(seed), .least = 0, .most = 1e15, .range = "a whole number, 0 or more"},
	{"json", 0, "FILE", "write the result as JSON; -: to standard output, after CMD has ended", OPTION_TEXT, AT(json)},
	{"csv", 0, "FILE", "write the table as CSV: cap, steps, kWh, objective", OPTION_TEXT, AT(csv)},
	{"html", 0, "FILE", "write the result as an HTML page with a chart", OPTION_TEXT, AT(html)},
	{"output", 'o', "FILE", "keep the run file of the search under this name", OPTION_TEXT, AT(output)},
	{"quiet", 'q', NULL, "print no progress and no table", OPTION_FLAG, AT(quiet)},
};
// clang-format on

/* ---- options ---- */

static int parse_objective(struct cap_tune_options *options, struct wattle_error *reterr)
{
	static const enum tune_goal goals[] = {TUNE_ED2P, TUNE_EDP, TUNE_ENERGY};
	static const char slowdown[] = "slowdown=";
	const char *text = options->objective;
	for (size_t i = 0; i < ARRAY_SIZE(goals); i++)
		if (strcmp(text, tune_goal_name(goals[i])) == 0) {
			options->goal = goals[i];
			return 0;
		}
	bool is_slowdown = strncmp(text, slowdown, strlen(slowdown)) == 0;
	if (!is_slowdown || num_parse_double(text + strlen(slowdown), &options->slowdown_percent) < 0 ||
		options->slowdown_percent < 0 || options->slowdown_percent > 1000)
		return error_set(reterr, -EINVAL,
			"--objective: '%s' is not valid; give ed2p, edp, energy or slowdown=PCT, "
			"such as slowdown=5",
			text);
	options->goal = TUNE_SLOWDOWN;
	return 0;
}

static int check_files(const struct cap_tune_options *options, struct wattle_error *reterr)
{
	const struct {
		const char *option, *path;
	} files[] = {{"--json", options->json}, {"--csv", options->csv}, {"--html", options->html}};
	int to_stdout = 0;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int r = cli_check_writable(files[i].option, files[i].path, reterr);
		if (r < 0)
			return r;
		to_stdout += files[i].path != NULL && strcmp(files[i].path, "-") == 0;
		if (files[i].path != NULL && options->output != NULL && strcmp(files[i].path, options->output) == 0)
			return error_set(reterr, -EINVAL, "%s: %s is the run file; choose another name",
				files[i].option, files[i].path);
	}
	return to_stdout <= 1
		? 0
		: error_set(reterr, -EINVAL, "only one of --json, --csv and --html can go to standard output");
}

static int check_source(const struct cap_tune_options *options, struct wattle_error *reterr)
{
	int counted = (options->step != NULL) + (options->metric != NULL) + (options->metric_total != NULL);
	bool attaches = value_ok(options->pid);
	if (counted > 1)
		return error_set(reterr, -EINVAL, "--step, --metric and --metric-total: give one of them");
	if (attaches && options->command != NULL)
		return error_set(reterr, -EINVAL, "--pid: can't be combined with a command; give one of them");
	if (!attaches && options->command == NULL)
		return error_set(reterr, -EINVAL, "no command and no --pid given");
	if (attaches && counted == 0)
		return error_set(reterr, -EINVAL,
			"--pid: define a step with --step NAME, --metric NAME or --metric-total NAME");
	if (attaches && (options->nvtx || options->itt))
		return error_set(reterr, -EINVAL,
			"--%s: a running program can't be captured; let `wattle cap tune … -- CMD` start it",
			options->nvtx ? "nvtx" : "itt");
	if ((options->nvtx || options->itt) && counted == 0)
		return error_set(reterr, -EINVAL, "--%s: name the range that is a step with --step NAME",
			options->nvtx ? "nvtx" : "itt");
	if (options->spans != NULL && !attaches)
		return error_set(reterr, -EINVAL, "--spans: needs --pid");
	return 0;
}

static int check_options(struct cap_tune_options *options, struct wattle_error *reterr)
{
	int r = parse_objective(options, reterr);
	if (r == 0)
		r = check_source(options, reterr);
	return r < 0 ? r : check_files(options, reterr);
}

// DEVICE may be before, between or after the options; the command begins after it or after "--".
static bool parse(const struct command *command, int argc, char **argv, struct cap_tune_options *options,
	const char **ret_device, int *ret_status)
{
	*ret_device = NULL;
	for (;;) {
		void *config; // unused: no --config here
		int first;
		if (!cli_parse(command, argc, argv, options, &first, &config, EXIT_USAGE, ret_status))
			return false;
		bool is_command = first > 0 && strcmp(argv[first - 1], "--") == 0;
		argc -= first;
		argv += first;
		if (*ret_device == NULL && !is_command && argc > 0) {
			*ret_device = argv[0];
			argc--;
			argv++;
			continue;
		}
		options->command = argc > 0 ? argv : NULL;
		break;
	}
	if (*ret_device != NULL)
		return true;
	*ret_status = cli_usage(command, EXIT_USAGE, "no device given; `wattle cap list` lists them");
	return false;
}

// Gives a window at least about a hundred samples.
static int64_t default_interval_ns(double seconds)
{
	double interval_ms = fmin(fmax(round(1000 * seconds / 300), 5), 100);
	return (int64_t)interval_ms * NS_PER_MS;
}

bool cap_tune_parse(const struct command *command, int argc, char **argv, struct cap_tune_options *options,
	const char **ret_device, int *ret_status)
{
	*options = (struct cap_tune_options){
		.objective = "ed2p",
		.n_limits = VALUE_MISSING,
		.pid = VALUE_MISSING,
		.seed = 1,
		.interval_ns = VALUE_MISSING,
		.timeout_ns = 120 * NS_PER_S,
		.from_percent = 30,
		.seconds = 30,
		.settle_s = (double)NAN,
	};
	if (!parse(command, argc, argv, options, ret_device, ret_status))
		return false;
	struct wattle_error error = {0};
	if (check_options(options, &error) < 0) {
		fprintf(stderr, "wattle cap tune: %s\n", error.text);
		*ret_status = EXIT_USAGE;
		return false;
	}
	if (!value_ok(options->interval_ns))
		options->interval_ns = default_interval_ns(options->seconds);
	return true;
}
