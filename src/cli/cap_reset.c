/* wattle cap reset: restores the limit from before wattle's first change, or the default. */
#include "cli/cap.h"

#include "base/util.h"
#include "cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct values {
	bool to_default, clocks, quiet;
};

static const struct option options[] = {
	{"default", 0, NULL, "set the device's default limit, even if another program changed it", OPTION_FLAG,
		.offset = offsetof(struct values, to_default)},
	{"clocks", 0, NULL,
		"reset the clock limit only; by default the power limit, and a clock\nlimit set by `cap set --clocks`",
		OPTION_FLAG, .offset = offsetof(struct values, clocks)},
	{"quiet", 'q', NULL, "print errors only", OPTION_FLAG,
		.offset = offsetof(struct values, quiet)},
};

static void print_outcome(const struct values *values, const struct cap_device *device,
	const struct cap_outcome *outcome)
{
	if (outcome->text[0] != '\0' && (!values->quiet || outcome->was_foreign))
		fprintf(stderr, "wattle: %s\n", outcome->text);
	else if (!values->quiet)
		fprintf(stderr, "wattle: %s: reset to its default limit\n", device->name);
}

// Returns 1 if there was a limit to reset.
static int reset_one(const struct values *values, const struct cap_limits *limits, struct cap_device *device,
	bool to_default, bool is_quiet, struct wattle_error *reterr)
{
	struct cap_outcome outcome;
	int r = cap_hold_reset(&limits->holder, device, to_default, &outcome, reterr);
	if (r < 0)
		return r;
	if (is_quiet || !outcome.was_nothing)
		print_outcome(values, device, &outcome);
	return !outcome.was_nothing;
}

// Clock limits set by wattle are reset together with power, unless clocks were named explicitly.
static int reset_clocks_of(const struct values *values, struct cap_limits *limits, const struct cap_device *device,
	struct wattle_error *reterr)
{
	for (size_t i = 0; i < limits->devices.n; i++) {
		struct cap_device *other = &limits->devices.devices[i];
		if (other->what == CAP_CLOCKS && strcmp(other->id, device->id) == 0 && other->settable)
			return reset_one(values, limits, other, false, false, reterr);
	}
	return 0;
}

static int reset_device(const struct values *values, struct cap_limits *limits, struct cap_device *device,
	struct wattle_error *reterr)
{
	int clocks = values->clocks ? 0 : reset_clocks_of(values, limits, device, reterr);
	int r = reset_one(values, limits, device, values->to_default, clocks == 0, clocks < 0 ? NULL : reterr);
	return clocks < 0 ? clocks : r;
}

static int reset(const struct values *values, struct cap_limits *limits, const char *names, struct wattle_error *reterr)
{
	enum cap_kind what = values->clocks ? CAP_CLOCKS : CAP_POWER;
	int r = cap_limits_add(limits, names, what, (double)NAN, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < limits->n; i++) { // a failure on one device must not leave the others limited
		struct wattle_error error = {0};
		int failed = reset_device(values, limits, limits->at[i].device, &error);
		if (failed >= 0)
			continue;
		if (r < 0) // the first error is reported at the end
			cli_warn(error.text);
		else
			*reterr = error;
		r = failed;
	}
	return r;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct wattle_error error = {0};
	struct option_list words;
	struct cap_limits limits;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n != 1)
		return cli_usage(command, EXIT_USAGE, words.n == 0 ? "no device given" : "more than one device given");
	int r = cap_limits_open(&limits, "wattle cap reset", &error);
	if (r == 0)
		r = reset(&values, &limits, words.items[0], &error);
	cap_limits_close(&limits);
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : EXIT_DONE;
}

const struct command command_cap_reset = {
	.name = "cap reset",
	.usage = "DEVICE [--default]",
	.summary = "restore the limit from before wattle's first change, or the default",
	.details =
		"DEVICE is as for `wattle cap set`. If another program has changed the limit meanwhile, "
		"wattle leaves it\nunchanged and prints a message; --default overrides this. Refused while a "
		"program holds a limit on the device.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
