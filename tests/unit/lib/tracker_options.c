#include "lib/tracker.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>

#define SIZE .size = sizeof(struct wattle_tracker_options)

static const char *const two_arguments[] = {"--per-process", "--meta=a=b", NULL};

static const struct row {
	const char *teaches;
	struct wattle_tracker_options options;
	int code;
	const char *line; // words between "--output=OUT" and "-- 7"
} rows[] = {
	// clang-format off
	{"default options: the recorder's defaults", {SIZE}, 0, ""},
	{"only a size, as from an older program: defaults", {.size = sizeof(size_t)}, 0, ""},
	{"members after the size: not read", {.size = offsetof(struct wattle_tracker_options, overwrite), .overwrite = 1}, 0, ""},
	{"size of 0: refused", {.size = 0}, -EINVAL, NULL},
	{"invalid size: refused", {.size = 1 << 20}, -EINVAL, NULL},
	{"interval: whole microseconds, in any locale", {SIZE, .interval_s = 0.0123456}, 0, " --interval=12346us"},
	{"the shortest interval", {SIZE, .interval_s = 0.001}, 0, " --interval=1000us"},
	{"the longest interval", {SIZE, .interval_s = 3600}, 0, " --interval=3600000000us"},
	{"shorter", {SIZE, .interval_s = 0.00099}, -EINVAL, NULL},
	{"negative", {SIZE, .interval_s = -1}, -EINVAL, NULL},
	{"infinite", {SIZE, .interval_s = (double)INFINITY}, -EINVAL, NULL},
	{"texts that look like options: stay values", {SIZE, .label = "--quiet", .gpus = "-1"}, 0, " --gpus=-1 --label=--quiet"},
	{"flags", {SIZE, .overwrite = 1, .quiet = 7}, 0, " --overwrite --disable-logs"},
	{"empty text: refused", {SIZE, .gpus = ""}, -EINVAL, NULL},
	{"units: gpu_tracker's names", {SIZE, .ram_unit = "megabytes", .gpu_ram_unit = "bytes", .time_unit = "days"}, 0,
		" --ram-unit=megabytes --gpu-ram-unit=bytes --time-unit=days"},
	{"unit of time for memory: refused", {SIZE, .ram_unit = "hours"}, -EINVAL, NULL},
	{"tracking file", {SIZE, .tracking_file = "a.b/t.sqlite"}, 0, " --tracking-file=a.b/t.sqlite"},
	{"tracking file of unknown format: refused", {SIZE, .tracking_file = "a.csv/t"}, -EINVAL, NULL},
	{"cores", {SIZE, .expected_cores = 12}, 0, " --expected-cores=12"},
	{"more cores than the machine has: refused", {SIZE, .expected_cores = 1000001}, -EINVAL, NULL},
	{"time limit of stop", {SIZE, .stop_timeout_s = 0.5}, 0, ""},
	{"negative time limit: refused", {SIZE, .stop_timeout_s = -1}, -EINVAL, NULL},
	{"further arguments come last", {SIZE, .quiet = 1, .arguments = two_arguments}, 0, " --disable-logs --per-process --meta=a=b"},
	{"invalid pid: refused", {SIZE, .pid = INT64_C(1) << 40}, -EINVAL, NULL},
	// clang-format on
};

static void join(const struct tracker_command *command, char *out, size_t size)
{
	size_t at = 0;
	for (size_t i = 0; i < command->n; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s", i > 0 ? " " : "", command->words[i]);
}

static void check(void **state)
{
	const struct row *row = *state;
	struct wattle_tracker_options copy;
	struct tracker_command command;
	assert_int_equal(tracker_options_copy(&row->options, &copy), row->code);
	if (row->code < 0)
		return;
	assert_int_equal(tracker_command_make(&command, &copy, "OUT", 7, 3), 0);
	char line[512], expected[512];
	join(&command, line, sizeof(line));
	snprintf(expected, sizeof(expected), "wattle attach --control-fd 3 --quiet --output=OUT%s -- 7", row->line);
	assert_string_equal(line, expected);
	assert_null(command.words[command.n]);
	tracker_command_finish(&command);
	tracker_options_finish(&copy);
}

// The program may change its own texts afterwards.
static void a_copy(void **state)
{
	char label[] = "first", argument[] = "--progress";
	const char *arguments[] = {argument, NULL};
	const struct wattle_tracker_options options = {SIZE, .label = label, .arguments = arguments};
	struct wattle_tracker_options copy;
	assert_int_equal(tracker_options_copy(&options, &copy), 0);
	strcpy(label, "other");
	strcpy(argument, "changed");
	assert_string_equal(copy.label, "first");
	assert_string_equal(copy.arguments[0], "--progress");
	tracker_options_finish(&copy);
	assert_int_equal(tracker_options_copy(NULL, &copy), 0);
	assert_null(copy.label);
	tracker_options_finish(&copy);
}

// A member that only a newer header has: refused if it is set, because it would be ignored.
static void a_newer_program(void **state)
{
	struct {
		struct wattle_tracker_options options;
		int64_t later;
	} newer = {.options = {.size = sizeof(newer)}};
	struct wattle_tracker_options copy;
	assert_int_equal(tracker_options_copy(&newer.options, &copy), 0);
	tracker_options_finish(&copy);
	newer.later = 1;
	assert_int_equal(tracker_options_copy(&newer.options, &copy), -EINVAL);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "options are copied completely", a_copy);
	ROWS_ADD_ONE(&tests, "program with a newer header: unknown members must be 0", a_newer_program);
	return rows_run(&tests, "tracker_options");
}
