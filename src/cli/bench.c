/* wattle bench: repeats commands in random order until their energy, time and power are known precisely enough. */
#include "cli/bench.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/redact.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "sampler/target.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT(member) .offset = offsetof(struct bench_options, member)

// clang-format off
static const struct option options_table[] = {
	{"runs", 'n', "N", "measured runs of each command (default 10); with --until the minimum", OPTION_INTEGER, AT(runs), .least = 1, .most = 10000, .range = "a number of runs from 1 to 10000"},
	{"warmup", 'w', "N", "warm-up runs of each command, not counted (default 1)", OPTION_INTEGER, AT(warmup), .least = 0, .most = 10000, .range = "a number of runs from 0 to 10000"},
	{"until", 0, "PERCENT", "repeat until the half-width of each confidence interval of the median\nenergy (of time, if energy is unknown) is below this percentage", OPTION_NUMBER, AT(until_percent), .least = 0.001, .most = 100, .range = "a percentage above 0, such as 2"},
	{"max-runs", 0, "N", "with --until: maximum number of runs (default 100)", OPTION_INTEGER, AT(max_runs), .least = BENCH_MIN_RUNS, .most = 10000, .range = "a number of runs from 5 to 10000"},
	{"settle", 0, "DUR", "maximum wait before each run for the machine to become as cool and\nidle as at the start; 0: don't wait; auto: as long as the previous\nrun took, at most 10s (default)", OPTION_TEXT, AT(stable_wait)},
	{"compare", 0, "WHICH", "first: compare each command with the first (default); all: all pairs", OPTION_CHOICE, AT(compare), .choices = "first|all"},
	{"seed", 0, "N", "random seed of the run order and of the intervals (default: random;\nthe result shows it)", OPTION_INTEGER, AT(seed), .least = 0, .most = 1e15, .range = "a whole number, 0 or more"},
	{"interval", 'i', "DUR", "sampling period of the runs, 1ms to 1h (default 100ms)", OPTION_DURATION, AT(interval_ns), .least = 1e6, .most = 3.6e12, .range = "a duration from 1ms to 1h, such as 100ms or 2s"},
	{"ignore-failure", 0, NULL, "include failed runs in the result", OPTION_FLAG, AT(ignore_failure)},
	{"show-output", 0, NULL, "show the output of the commands (default: only the last lines of a\ncommand that fails)", OPTION_FLAG, AT(show_output)},
	{"json", 0, "FILE", "write the result as JSON; - is standard output, in place of the text", OPTION_TEXT, AT(json)},
	{"output", 'o', "DIR", "keep the run files in this folder, as COMMAND-RUN.sqlite, numbered from 1", OPTION_TEXT, AT(output)},
	{"quiet", 'q', NULL, "don't print the table", OPTION_FLAG, AT(quiet)},
};
// clang-format on

/* ---- the commands ---- */

// Splits the words at ":::". *ret_firsts: the words of each command, NULL-terminated in place; the caller frees the array.
static int split(const struct command *command, int argc, char **argv, char ***ret_firsts[], size_t *ret_n)
{
	char ***firsts = calloc_array((size_t)argc + 1, sizeof(*firsts));
	if (firsts == NULL)
		return cli_no_memory();
	size_t n = 0;
	for (int first = 0, i = 0; i <= argc; i++) {
		bool ends = i == argc || strcmp(argv[i], ":::") == 0;
		if (ends && i == first) {
			free(firsts);
			return cli_usage(command, EXIT_USAGE,
				argc == 0 ? "no command given" : "a command is missing before or after ':::'");
		}
		if (!ends)
			continue;
		argv[i] = NULL; // argv[argc] is NULL already
		firsts[n++] = argv + first;
		first = i + 1;
	}
	*ret_firsts = firsts;
	*ret_n = n;
	return EXIT_DONE;
}

// `wattle bench ./a ./b` runs ./a with an argument; the user may have meant two commands.
static void explain_separator(char ***firsts, size_t n)
{
	if (n == 1 && firsts[0][1] != NULL && firsts[0][2] == NULL && strchr(firsts[0][1], '/') != NULL &&
		bench_find_command(firsts[0][1]) == EXIT_DONE)
		fprintf(stderr,
			"wattle bench: %s is measured with the argument %s; to compare two commands write ::: between them: "
			"wattle bench %s ::: %s\n",
			firsts[0][0], firsts[0][1], firsts[0][0], firsts[0][1]);
}

// Checked before the first run, so that a bench does not fail at its third command an hour later.
static int check_commands(char ***firsts, size_t n)
{
	explain_separator(firsts, n);
	for (size_t c = 0; c < n; c++) {
		int status = bench_find_command(firsts[c][0]);
		if (status == EXIT_DONE)
			continue;
		fprintf(stderr, "wattle: %s: %s; nothing was run\n", firsts[c][0][0] != '\0' ? firsts[c][0] : "''",
			status == EXIT_NOT_FOUND ? "command not found" : "can't be executed");
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

/* ---- options ---- */

// Keeps run files of another bench. Errors that can be detected before the first run are reported here.
static int make_folder(const char *folder, struct wattle_error *reterr)
{
	char first[4096];
	struct stat about;
	if (folder == NULL)
		return 0;
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		return error_set(reterr, -errno, "--output: can't create the folder %s: %s", folder, strerror(errno));
	if (stat(folder, &about) != 0 || !S_ISDIR(about.st_mode))
		return error_set(reterr, -ENOTDIR, "--output: %s is not a folder; choose another name", folder);
	if (access(folder, W_OK | X_OK) != 0)
		return error_set(reterr, -errno, "--output: can't write into %s: %s", folder, strerror(errno));
	int length = snprintf(first, sizeof(first), "%s/1-001.sqlite", folder);
	if (length >= 0 && (size_t)length < sizeof(first) && access(first, F_OK) == 0)
		return error_set(reterr, -EEXIST, "--output: %s exists already; choose another folder", first);
	return 0;
}

static int check_options(const struct bench_options *options, double *ret_wait_s, struct wattle_error *reterr)
{
	int r = bench_stable_parse(options->stable_wait, ret_wait_s, reterr);
	if (r < 0)
		return r;
	bool to_stdout = options->json != NULL && strcmp(options->json, "-") == 0;
	if (to_stdout && options->show_output)
		return error_set(reterr, -EINVAL,
			"--show-output: can't be combined with --json -; write the JSON to a file");
	if (!isnan(options->until_percent) && value_ok(options->runs) && options->runs > options->max_runs)
		return error_set(reterr, -EINVAL, "--runs: %lld is more than --max-runs, %lld; raise --max-runs",
			(long long)options->runs, (long long)options->max_runs);
	r = cli_check_writable("--json", options->json, reterr);
	return r < 0 ? r : make_folder(options->output, reterr);
}

static uint64_t make_seed(const struct bench_options *options)
{
	uint32_t seed = 0; // 32 bits, so that users can type it again
	if (value_ok(options->seed))
		return (uint64_t)options->seed;
	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		seed = (uint32_t)getpid();
	return seed;
}

/* ---- results ---- */

static int print(const struct bench_result *result, const struct bench_options *options)
{
	bool to_stdout = options->json != NULL && strcmp(options->json, "-") == 0;
	int status = EXIT_DONE;
	struct buf out = cli_buf();
	if (!options->quiet && !to_stdout) {
		bench_text(result, &out, cli_use_colour(NULL));
		status = cli_write(&out, "-");
	}
	buf_clear(&out);
	if (options->json != NULL) {
		bench_json(result, &out);
		int written = cli_write(&out, options->json);
		status = status != EXIT_DONE ? status : written;
	}
	buf_finish(&out);
	return status;
}

static int conclude(struct bench_loop *loop, int status)
{
	struct bench_result *result = loop->result;
	size_t n = result->findings.n_commands;
	result->stability = loop->stable_wait->figures;
	if (result->rounds == 0) {
		if (result->end == BENCH_INTERRUPTED)
			fputs("wattle: interrupted before the first round was complete\n", stderr);
		return status;
	}
	for (size_t c = 0; c < n; c++)
		result->commands[c].error_j = bench_loop_error_j(loop, c);
	if (bench_analyse(result->series, n, result->all_pairs, result->seed, &result->findings) < 0)
		return cli_no_memory();
	int printed = print(result, loop->options);
	bench_findings_finish(&result->findings);
	return status != EXIT_DONE ? status : printed;
}

static int bench(const struct bench_options *options, double settle_s, struct bench_result *result)
{
	struct bench_signals signals;
	struct bench_runner runner;
	struct bench_stable_wait stable_wait = {0};
	struct bench_loop loop = {
		.options = options,
		.runner = &runner,
		.signals = &signals,
		.stable_wait = &stable_wait,
		.result = result,
		.shows_progress = !options->quiet && isatty(STDERR_FILENO),
	};
	struct wattle_error error = {0};
	bench_signals_take(&signals);
	int r = bench_runner_open(&runner, options, &signals, &error);
	if (r == 0)
		r = bench_stable_open(&stable_wait, settle_s, &signals, &error);
	if (r == 0)
		r = bench_loop_open(&loop, &error);
	int64_t start_ns = clock_now_ns();
	int status = r == 0 ? bench_loop_run(&loop) : cli_fail(EXIT_FAILED, &error);
	result->elapsed_s = (double)(clock_now_ns() - start_ns) * 1e-9;
	if (r == 0)
		status = conclude(&loop, status);
	bench_loop_close(&loop);
	bench_stable_close(&stable_wait);
	bench_runner_close(&runner);
	bench_signals_restore(&signals);
	return status;
}

static int bench_commands(const struct bench_options *options, double settle_s, char ***firsts, size_t n)
{
	struct bench_result result = {
		.findings = {.n_commands = n},
		.series = calloc_array(n, sizeof(*result.series)),
		.commands = calloc_array(n, sizeof(*result.commands)),
		.warmup = (size_t)options->warmup,
		.seed = make_seed(options),
		.until_percent = options->until_percent,
		.width_percent = (double)NAN,
		.all_pairs = strcmp(options->compare, "all") == 0,
	};
	bool whole = result.series != NULL && result.commands != NULL;
	for (size_t c = 0; c < n && whole; c++) {
		result.commands[c].argv = firsts[c];
		result.commands[c].shown = redact_argv((const char *const *)firsts[c], false);
		result.commands[c].text = command_line_text((const char *const *)result.commands[c].shown);
		whole = result.commands[c].text != NULL;
	}
	int status = whole ? bench(options, settle_s, &result) : cli_no_memory();
	for (size_t c = 0; c < n && result.commands != NULL; c++) {
		free((char *)(uintptr_t)result.commands[c].text);
		free((void *)(uintptr_t)result.commands[c].shown);
	}
	free(result.commands);
	free(result.series);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct bench_options options = {
		.stable_wait = "auto",
		.compare = "first",
		.runs = VALUE_MISSING,
		.seed = VALUE_MISSING,
		.warmup = 1,
		.max_runs = 100,
		.interval_ns = 100 * NS_PER_MS,
		.until_percent = (double)NAN,
	};
	void *config; // unused: no --config here
	int first, status;
	if (!cli_parse(command, argc, argv, &options, &first, &config, EXIT_USAGE, &status))
		return status;
	wattle_cleanup_free char ***firsts = NULL;
	size_t n = 0;
	status = split(command, argc - first, argv + first, &firsts, &n);
	if (status == EXIT_DONE)
		status = check_commands(firsts, n);
	if (status != EXIT_DONE)
		return status;
	struct wattle_error error = {0};
	double settle_s;
	if (check_options(&options, &settle_s, &error) < 0) {
		fprintf(stderr, "wattle bench: %s\n", error.text);
		return EXIT_USAGE;
	}
	return bench_commands(&options, settle_s, firsts, n);
}

const struct command command_bench = {
	.name = "bench",
	.usage = "[OPTIONS] [--] CMD [ARG…] [::: CMD [ARG…]]…",
	.summary = "repeat commands in random order and test which differences are significant",
	.details =
		"Prints the median of energy, time and power of each command with a 95 % confidence "
		"interval, and whether\neach command differs from the first. Each run is measured as by "
		"`wattle run`, with an empty standard input.\nCtrl-C ends the measurement and prints the "
		"complete rounds. The exit status is 0; 1 if a command or wattle\nfailed, or a command can't "
		"be found or executed; 2 for wrong usage; 128+N after signal N.",
	.options = options_table,
	.n_options = ARRAY_SIZE(options_table),
	.run = run,
};
