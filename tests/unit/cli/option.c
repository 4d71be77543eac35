#include "base/buf.h"
#include "cli/command.h"
#include "cli/help.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct values {
	bool quiet, overwrite;
	const char *output, *unit, *config;
	struct option_list meta;
	int64_t interval_ns, cores;
	double budget;
};

static const struct option options[] = {
	{"quiet", 'q', NULL, "no summary", OPTION_FLAG, offsetof(struct values, quiet)},
	{"overwrite", 0, NULL, "replace", OPTION_FLAG, offsetof(struct values, overwrite)},
	{"output", 'o', "FILE", "where to", OPTION_TEXT, offsetof(struct values, output)},
	{"unit", 0, "UNIT", "of memory", OPTION_CHOICE, offsetof(struct values, unit), .choices = "bytes|gigabytes"},
	{"meta", 0, "KEY=VALUE", "kept", OPTION_LIST, offsetof(struct values, meta)},
	{"interval", 'i', "DUR", "period", OPTION_DURATION, offsetof(struct values, interval_ns), 1e6, 3.6e12,
		"a duration from 1ms to 1h"},
	{"cores", 0, "N", "cores", OPTION_INTEGER, offsetof(struct values, cores), 1, 1e6, "a number of cores"},
	{"budget", 0, "PERCENT", "budget", OPTION_NUMBER, offsetof(struct values, budget), 0, 100, "a percentage"},
	{"config", 0, "FILE", "more", OPTION_TEXT, offsetof(struct values, config)},
};

enum { WORDS = 8 };
static const struct row {
	const char *teaches;
	const char *words[WORDS];
	const char *config; // contents of the file whose path replaces CONFIG in the words
	const char *error;  // part of the message; NULL: accepted
	struct values expected;
	int first;
} rows[] = {
	{"no options: defaults", {"ls", "-l"}, NULL, NULL, {0}, 0},
	{"everything from the first word that is no option belongs to the command", {"-q", "ls", "-q"}, NULL, NULL,
		{.quiet = true}, 1},
	{"-- ends the options", {"-q", "--", "-o"}, NULL, NULL, {.quiet = true}, 2},
	{"long option: the next word is its value", {"--output", "a b"}, NULL, NULL, {.output = "a b"}, 2},
	{"long option: the text after = is its value", {"--output=x=y"}, NULL, NULL, {.output = "x=y"}, 1},
	{"short option: the rest of its word or the next word is its value", {"-ox", "-i", "2s"}, NULL, NULL,
		{.output = "x", .interval_ns = 2000000000}, 3},
	{"short flags may be joined, an option with a value last", {"-qox"}, NULL, NULL, {.quiet = true, .output = "x"},
		1},
	{"option given twice: the last value counts", {"-o", "a", "-o", "b"}, NULL, NULL, {.output = "b"}, 4},
	{"list option given twice: values are collected", {"--meta", "a=1", "--meta", "b=2"}, NULL, NULL,
		{.meta = {{"a=1", "b=2"}, 2}}, 4},
	{"a single - is a word", {"-"}, NULL, NULL, {0}, 0},
	{"unknown long option: the error names it", {"--colour"}, NULL, "unknown option --colour", {0}, 0},
	{"unknown short option: the error names it", {"-qz"}, NULL, "unknown option -qz", {0}, 0},
	{"abbreviated option name: refused", {"--out", "x"}, NULL, "unknown option --out", {0}, 0},
	{"missing value: refused", {"--output"}, NULL, "--output: needs a value: FILE", {0}, 0},
	{"empty value: refused", {"--output="}, NULL, "--output: is empty", {0}, 0},
	{"value for a flag: refused", {"--quiet=1"}, NULL, "--quiet: takes no value", {0}, 0},
	{"duration without a unit: refused", {"-i", "5"}, NULL,
		"--interval: '5' is not valid; give a duration from 1ms to 1h", {0}, 0},
	{"duration outside its bounds: refused", {"-i", "100us"}, NULL, "--interval: '100us'", {0}, 0},
	{"duration equal to a bound: accepted", {"-i", "1ms"}, NULL, NULL, {.interval_ns = 1000000}, 2},
	{"fraction for a whole number: refused", {"--cores", "1.5"}, NULL, "--cores: '1.5'", {0}, 0},
	{"number out of range: the error states the range", {"--budget", "101"}, NULL,
		"--budget: '101' is not valid; give a percentage", {0}, 0},
	{"unknown choice: the error lists the valid ones", {"--unit", "GB"}, NULL,
		"--unit: 'GB' is not valid; give one of bytes|gigabytes", {0}, 0},
	{"abbreviated choice: refused", {"--unit", "byte"}, NULL, "--unit: 'byte'", {0}, 0},
	{"configuration file: sets any option", {"--config", "CONFIG"},
		"{\"quiet\": true, \"output\": \"f\", \"cores\": 3, \"budget\": 0.5, \"meta\": [\"a=1\"], \"interval\": \"1s\"}",
		NULL,
		{.quiet = true,
			.output = "f",
			.cores = 3,
			.budget = 0.5,
			.meta = {{"a=1"}, 1},
			.interval_ns = 1000000000},
		2},
	{"command line overrides the configuration file, in any order", {"-o", "x", "--config", "CONFIG"},
		"{\"output\": \"f\"}", NULL, {.output = "x"}, 4},
	{"--config of the measured command: not read", {"ls", "--config", "CONFIG"}, "not JSON", NULL, {0}, 0},
	{"--config after --: not read", {"--", "--config", "CONFIG"}, "not JSON", NULL, {0}, 1},
	{"option value that looks like --config: a value", {"-o", "--config", "ls"}, NULL, NULL, {.output = "--config"},
		2},
	{"configuration file: the error names an unknown key", {"--config", "CONFIG"}, "{\"colour\": 1}",
		"unknown option \"colour\"", {0}, 0},
	{"configuration file: a flag must be true or false", {"--config", "CONFIG"}, "{\"quiet\": 1}",
		"\"quiet\" must be true or false", {0}, 0},
	{"configuration file: false switches a flag off", {"--config", "CONFIG"}, "{\"quiet\": false}", NULL, {0}, 2},
	{"configuration file: a wrong value is refused as on the command line", {"--config", "CONFIG"},
		"{\"interval\": 5}", "--interval: '5'", {0}, 0},
	{"configuration file: a JSON error names file and line", {"--config", "CONFIG"}, "{\n\"quiet\":", "line 2", {0},
		0},
	{"configuration file: an array is refused", {"--config", "CONFIG"}, "[1]", "one JSON object", {0}, 0},
	{"configuration file: a missing file is refused", {"--config", "/nonexistent/x.json"}, NULL,
		"/nonexistent/x.json", {0}, 0},
};

static void make_config(const char *text, char *path)
{
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void assert_text(const char *value, const char *expected)
{
	if (expected == NULL)
		assert_null(value);
	else
		assert_string_equal(value, expected);
}

static void assert_values(const struct values *values, const struct values *expected)
{
	assert_int_equal(values->quiet, expected->quiet);
	assert_int_equal(values->overwrite, expected->overwrite);
	assert_text(values->output, expected->output);
	assert_text(values->unit, expected->unit);
	assert_int_equal(values->interval_ns, expected->interval_ns);
	assert_int_equal(values->cores, expected->cores);
	assert_true(values->budget == expected->budget);
	assert_int_equal(values->meta.n, expected->meta.n);
	for (size_t i = 0; i < expected->meta.n; i++)
		assert_string_equal(values->meta.items[i], expected->meta.items[i]);
}

static void check(void **state)
{
	const struct row *row = *state;
	char path[] = "/tmp/wattle-config-XXXXXX";
	if (row->config != NULL)
		make_config(row->config, path);
	char words[WORDS][64];
	char *argv[WORDS + 1] = {NULL};
	int argc = 0;
	for (; argc < WORDS && row->words[argc] != NULL; argc++) {
		text_copy(words[argc], sizeof(words[argc]),
			strcmp(row->words[argc], "CONFIG") == 0 ? path : row->words[argc]);
		argv[argc] = words[argc];
	}
	struct values values = {0};
	struct wattle_error error = {0};
	void *config;
	int first = -1;
	int r = options_parse(options, ARRAY_SIZE(options), "test", argc, argv, &values, &first, &config, &error);
	assert_int_equal(r, row->error != NULL ? -EINVAL : 0);
	if (row->error != NULL) {
		assert_non_null(strstr(error.text, row->error));
	} else {
		assert_int_equal(first, row->first);
		assert_values(&values, &row->expected);
	}
	option_config_free(config);
	if (row->config != NULL)
		unlink(path);
}

static void help_names_all(void **state)
{
	struct buf out;
	buf_init(&out, 1 << 16);
	options_help(options, ARRAY_SIZE(options), 100, &out);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		char name[64];
		snprintf(name, sizeof(name), "--%s", options[i].name);
		assert_non_null(strstr(out.data, name));
	}
	buf_finish(&out);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "help lists every option", help_names_all);
	return rows_run(&tests, "option");
}
