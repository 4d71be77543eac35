/* wattle cap list, wattle cap get: available limits and their current values. Read-only. */
#include "cli/command.h"

#include "base/util.h"
#include "cap/lease.h"
#include "report/cap_report.h"

#include <errno.h>
#include <string.h>

struct values {
	bool json;
};

static const struct option options[] = {
	{"json", 0, NULL, "print JSON", OPTION_FLAG, .offset = offsetof(struct values, json)},
};

struct caps {
	struct wattle_env env;
	struct cap_devices devices;
	struct cap_row *rows; // owned
	size_t n;
};

static struct cap_row *row_of(struct caps *caps, const char *name)
{
	for (size_t i = 0; i < caps->n; i++) {
		const struct cap_row *row = &caps->rows[i];
		if (strcmp((row->power != NULL ? row->power : row->clocks)->name, name) == 0)
			return &caps->rows[i];
	}
	return &caps->rows[caps->n++];
}

// One row per device, with power, clocks and their holders.
static int make_rows(struct caps *caps, struct wattle_error *reterr)
{
	const struct cap_holder holder = {.env = &caps->env};
	cap_holds_describe(&holder, &caps->devices);
	caps->rows = calloc_array(caps->devices.n, sizeof(*caps->rows));
	if (caps->rows == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	for (size_t i = 0; i < caps->devices.n; i++) {
		const struct cap_device *device = &caps->devices.devices[i];
		struct cap_row *row = row_of(caps, device->name);
		*(device->what == CAP_POWER ? &row->power : &row->clocks) = device;
	}
	return 0;
}

static int open_caps(struct caps *caps, struct wattle_error *reterr)
{
	*caps = (struct caps){.env = {.sysfs_fd = -1, .procfs_fd = -1}};
	int r = env_open(&caps->env, reterr);
	return r < 0 ? r : cap_devices_open(&caps->devices, &caps->env, reterr);
}

static void close_caps(struct caps *caps)
{
	free(caps->rows);
	cap_devices_close(&caps->devices);
	env_close(&caps->env);
}

static int print_list(const struct caps *caps, bool as_json)
{
	struct buf out = cli_buf();
	if (as_json)
		cap_list_json(caps->rows, caps->n, &out);
	else
		cap_list_text(caps->rows, caps->n, caps->devices.absent, cli_use_colour(NULL), &out);
	return cli_finish(&out, "-");
}

static int print_one(const struct cap_row *row, bool as_json)
{
	struct buf out = cli_buf();
	if (as_json)
		cap_get_json(row, &out);
	else
		cap_get_text(row, &out);
	return cli_finish(&out, "-");
}

static int run_list(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct wattle_error error = {0};
	struct option_list words;
	struct caps caps;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n > 0)
		return cli_usage(command, EXIT_USAGE, "unexpected argument '%s'", words.items[0]);
	int r = open_caps(&caps, &error);
	if (r == 0)
		r = make_rows(&caps, &error);
	status = r < 0 ? cli_fail(EXIT_FAILED, &error) : print_list(&caps, values.json);
	close_caps(&caps);
	return status;
}

// A GPU may have a clock limit only. The query wakes a suspended GPU, because the user named it.
static int get_one(struct caps *caps, const char *name, bool as_json)
{
	struct wattle_error error = {0};
	struct cap_setting now;
	struct cap_device *device;
	int r = cap_devices_find(&caps->devices, name, CAP_POWER, &device, &error);
	if (r == -ENODEV && cap_devices_find(&caps->devices, name, CAP_CLOCKS, &device, NULL) == 0)
		r = 0;
	if (r == 0)
		r = cap_read(device, &now, &error);
	if (r == 0)
		r = make_rows(caps, &error);
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : print_one(row_of(caps, device->name), as_json);
}

static int run_get(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct wattle_error error = {0};
	struct option_list words;
	struct caps caps;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n != 1)
		return cli_usage(command, EXIT_USAGE, "give one DEVICE");
	status = open_caps(&caps, &error) < 0 ? cli_fail(EXIT_FAILED, &error)
					      : get_one(&caps, words.items[0], values.json);
	close_caps(&caps);
	return status;
}

const struct command command_cap_list = {
	.name = "cap list",
	.usage = "[--json]",
	.summary = "list devices whose power or clocks can be limited, with range and owner",
	.details =
		"Changes nothing and wakes no suspended GPU. `clocks` is the range of upper bounds "
		"that\n`wattle cap set --clocks` and `wattle cap tune --clocks` accept.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run_list,
};

const struct command command_cap_get = {
	.name = "cap get",
	.usage = "DEVICE [--json]",
	.summary = "print a device's limit, its range and its owner",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run_get,
};
