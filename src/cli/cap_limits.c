#include "cli/cap.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"
#include "cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const guard_argv[] = {"wattle", NULL};

int cap_limits_open(struct cap_limits *limits, const char *owner, struct wattle_error *reterr)
{
	*limits = (struct cap_limits){.env = {.sysfs_fd = -1, .procfs_fd = -1}};
	int r = env_open(&limits->env, reterr);
	if (r < 0)
		return r;
	cap_owner_self(owner, &limits->holder.owner);
	limits->holder.env = &limits->env;
	limits->holder.guard = (struct cap_guard_program){.program = "/proc/self/exe",
		.argv = guard_argv,
		.shared = &limits->guard};
	return cap_devices_open(&limits->devices, &limits->env, reterr);
}

void cap_limits_close(struct cap_limits *limits)
{
	cap_limits_end(limits);
	cap_devices_close(&limits->devices);
	env_close(&limits->env);
}

/* ---- names ---- */

int cap_limits_add(struct cap_limits *limits, const char *names, enum cap_kind what, double value,
	struct wattle_error *reterr)
{
	size_t n = 0;
	wattle_cleanup_free struct cap_device **chosen = calloc_array(limits->devices.n + 1, sizeof(*chosen));
	if (chosen == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	int r = cap_devices_choose(&limits->devices, &limits->env, names, what, false, chosen, &n, reterr);
	if (r == 0 && n > CAP_LIMITS_MAX - limits->n)
		r = error_set(reterr, -EINVAL, "%s: too many limits; at most %d can be set", names, CAP_LIMITS_MAX);
	for (size_t i = 0; r == 0 && i < n; i++)
		limits->at[limits->n++] = (struct cap_limit){.device = chosen[i], .value = value};
	cap_holds_describe(&limits->holder, &limits->devices);
	return r;
}

int cap_set_choose(const struct cap_set_options *values, struct cap_limits *limits, struct wattle_error *reterr)
{
	int r = 0;
	if (!isnan(values->watts))
		r = cap_limits_add(limits, values->devices, CAP_POWER, values->watts, reterr);
	if (r == 0 && !isnan(values->clocks_mhz))
		r = cap_limits_add(limits, values->devices, CAP_CLOCKS, values->clocks_mhz, reterr);
	return r;
}

/* ---- hold ---- */

int cap_limits_acquire(struct cap_limits *limits, struct cap_outcome *ret_outcomes, struct wattle_error *reterr)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < limits->n; i++)
		r = cap_hold_open(&limits->holder, limits->at[i].device, &limits->at[i].hold, reterr);
	for (size_t i = 0; r == 0 && i < limits->n; i++)
		r = cap_hold_set(limits->at[i].hold, limits->at[i].value, &ret_outcomes[i], reterr);
	if (r < 0)
		cap_limits_end(limits);
	return r;
}

void cap_limits_end(struct cap_limits *limits)
{
	for (size_t i = limits->n; i-- > 0;) {
		struct cap_limit *limit = &limits->at[i];
		struct wattle_error error = {0};
		struct cap_outcome outcome;
		if (limit->hold == NULL)
			continue;
		if (cap_hold_end(limit->hold, &outcome, &error) < 0)
			cli_fail(EXIT_FAILED, &error);
		else if (outcome.text[0] != '\0')
			cli_warn(outcome.text);
		limit->hold = NULL;
	}
}

/* ---- messages ---- */

static void print_amount(struct buf *out, const struct cap_device *device, double value)
{
	char number[32];
	num_format_double(number, sizeof(number), round(value * 1000) / 1000);
	if (isnan(value))
		buf_str(out, "no limit");
	else
		buf_printf(out, "%s %s", number, cap_kind_unit(device->what));
}

void cap_set_print(const struct cap_set_options *values, const struct cap_limits *limits,
	const struct cap_outcome *outcomes, const char *rest)
{
	struct buf line;
	buf_init(&line, 1 << 16);
	for (size_t i = 0; i < limits->n; i++) {
		const struct cap_device *device = limits->at[i].device;
		buf_printf(&line, "%s%s: ", i > 0 ? ", " : "", device->name);
		print_amount(&line, device, outcomes[i].set);
		if (outcomes[i].was_rounded)
			buf_str(&line, " (rounded by the device)");
		buf_str(&line, ", before ");
		print_amount(&line, device, outcomes[i].previous);
	}
	if (!values->quiet && !line.failed)
		fprintf(stderr, "wattle: %s%s\n", line.data, rest);
	buf_finish(&line);
	for (size_t i = 0; i < limits->n; i++)
		if (outcomes[i].text[0] != '\0')
			cli_warn(outcomes[i].text);
}
