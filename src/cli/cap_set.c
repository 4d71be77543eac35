/* wattle cap set: a limit that is persistent, or lasts for some time or for the duration of a command. */
#include "cli/cap.h"

#include "base/num.h"
#include "base/util.h"
#include "cli/command.h"
#include "sampler/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct option options[] = {
	{"for", 0, "DUR", "how long the limit lasts, such as 90s or 2h; then the previous limit is\nrestored",
		OPTION_DURATION, .offset = offsetof(struct cap_set_options, for_ns), .least = 1e9,
		.most = 366.0 * 86400 * 1e9, .range = "a duration from 1s to 8784h, such as 90s or 2h"},
	{"clocks", 0, "MHZ", "upper bound of a GPU's graphics clock, with WATTS or instead of WATTS", OPTION_NUMBER,
		.offset = offsetof(struct cap_set_options, clocks_mhz), .least = 1, .most = 100000,
		.range = "a clock in MHz, such as 1200"},
	{"quiet", 'q', NULL, "print errors only", OPTION_FLAG,
		.offset = offsetof(struct cap_set_options, quiet)},
};

/* ---- messages ---- */

static void print_persistent(const struct cap_set_options *values, const struct cap_limits *limits,
	const struct cap_outcome *outcomes)
{
	char rest[256], number[32];
	num_format_double(number, sizeof(number), (double)values->for_ns / 1e9);
	if (values->for_ns > 0)
		snprintf(rest, sizeof(rest), "; for %s s, or until `wattle cap reset %.100s`", number, values->devices);
	else
		snprintf(rest, sizeof(rest), "; until `wattle cap reset %.100s`%s", values->devices,
			isnan(values->watts) ? " or a restart" : "");
	cap_set_print(values, limits, outcomes, rest);
	for (size_t i = 0; values->for_ns == 0 && i < limits->n; i++)
		if (limits->at[i].device->forgets && !limits->at[i].device->is_remote) {
			snprintf(rest, sizeof(rest), "%s: %s", limits->at[i].device->name, limits->at[i].device->hint);
			cli_warn(rest);
		}
}

/* ---- persistent limits ---- */

static int keep_all(struct cap_limits *limits, struct cap_outcome *outcomes, struct wattle_error *reterr)
{
	int r = cap_limits_acquire(limits, outcomes, reterr);
	for (size_t i = 0; r == 0 && i < limits->n; i++) {
		r = cap_hold_keep(limits->at[i].hold, reterr);
		limits->at[i].hold = NULL;
	}
	return r;
}

static int set_persistent(struct cap_limits *limits, int64_t for_ns, struct cap_outcome *outcomes,
	struct wattle_error *reterr)
{
	for (size_t i = 0; i < limits->n; i++) {
		struct cap_limit *limit = &limits->at[i];
		int r = cap_hold_set_persistent(&limits->holder, limit->device, limit->value, for_ns, &outcomes[i],
			reterr);
		for (size_t j = i; r < 0 && j-- > 0;)
			cap_hold_end_timed(&limits->holder, limits->at[j].device, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

// Sets several limits, all or none: first as leases, which can be undone, then persistently.
static int set_all_persistent(struct cap_limits *limits, int64_t for_ns, struct cap_outcome *outcomes,
	struct wattle_error *reterr)
{
	return for_ns > 0 || limits->n == 1 ? set_persistent(limits, for_ns, outcomes, reterr)
					    : keep_all(limits, outcomes, reterr);
}

static int set(const struct cap_set_options *values)
{
	struct wattle_error error = {0};
	struct cap_limits limits;
	struct cap_outcome outcomes[CAP_LIMITS_MAX];
	int r = cap_limits_open(&limits, "wattle cap set", &error);
	if (r == 0)
		r = cap_set_choose(values, &limits, &error);
	if (r == 0)
		r = set_all_persistent(&limits, values->for_ns, outcomes, &error);
	if (r == 0)
		print_persistent(values, &limits, outcomes);
	cap_limits_close(&limits);
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : EXIT_DONE;
}

/* ---- the command line ---- */

static size_t words_before_command(int argc, char **argv)
{
	size_t n = 0;
	while (n < (size_t)argc && strcmp(argv[n], "--") != 0)
		n++;
	return n;
}

// "250", "250W", "250 W".
static int parse_watts(const char *text, double *ret_watts)
{
	char number[64];
	size_t length = strlen(text);
	while (length > 0 && (strchr("wW", text[length - 1]) != NULL || text[length - 1] == ' '))
		length--;
	snprintf(number, sizeof(number), "%.*s", length < sizeof(number) ? (int)length : 0, text);
	return num_parse_double(number, ret_watts);
}

// Writes what is wrong with the words to `why`; NULL: they are valid.
static const char *read_words(const struct option_list *words, bool has_command, struct cap_set_options *values,
	char why[128])
{
	bool has_clocks = !isnan(values->clocks_mhz);
	if (words->n == 0)
		return "no device given";
	values->devices = words->items[0];
	if (words->n == 1 && !has_clocks)
		return "no limit given: WATTS, or --clocks MHZ";
	if (words->n > 2)
		return has_command ? "too many arguments before --; give DEVICE and WATTS"
				   : "write -- before the command";
	if (words->n == 2 && parse_watts(words->items[1], &values->watts) < 0) {
		snprintf(why, 128, "WATTS: '%.60s' is not valid; give a number of watts such as 250", words->items[1]);
		return why;
	}
	if (has_command && values->for_ns > 0)
		return "--for can't be combined with a command: the limit lasts until the command ends";
	return NULL;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct cap_set_options values = {.clocks_mhz = (double)NAN, .watts = (double)NAN};
	struct option_list words;
	int status;
	size_t n = words_before_command(argc, argv);
	bool has_command = n < (size_t)argc;
	if (!cli_parse_operands(command, (int)n, argv, &values, &words, &status))
		return status == EXIT_USAGE && has_command ? EXIT_OWN_FAILURE : status;
	int wrong = has_command ? EXIT_OWN_FAILURE : EXIT_USAGE;
	char why[128];
	const char *problem = read_words(&words, has_command, &values, why);
	if (problem != NULL)
		return cli_usage(command, wrong, "%s", problem);
	if (!has_command)
		return set(&values);
	values.command = argv + n + 1;
	if (values.command[0] == NULL)
		return cli_usage(command, wrong, "no command given after --");
	return cap_set_run(&values);
}

const struct command command_cap_set = {
	.name = "cap set",
	.usage = "DEVICE WATTS [--for DUR | -- CMD…]",
	.summary = "set a limit for the duration of a command, for a time, or until it is reset",
	.details =
		"DEVICE is a name from `wattle cap list`, several names separated by commas, or gpus for all "
		"GPUs.\nBefore a change wattle stores the previous limit and starts a guard process, which "
		"restores that limit\nhowever the command or wattle ends (SIGKILL included). Without a "
		"command the limit is persistent, and\n`wattle cap reset DEVICE` restores the limit from "
		"before wattle's first change.\nWith a command the exit status is the command's own; 128+N "
		"if signal N ended it; 125 if wattle failed\nbefore it started; 126 if it can't be executed; "
		"127 if it was not found.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
