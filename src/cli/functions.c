/* wattle functions: energy and CPU time by function of a run that was recorded with --profile. */
#include "cli/command.h"

#include "base/util.h"
#include "report/documents.h"
#include "report/report.h"
#include "task/task.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { TOP_TEXT = 20 };

struct values {
	const char *format, *output, *weight;
	bool tree;
	int64_t top;
};

static const struct option options[] = {
	{"format", 0, "FORMAT",
		"text, json, folded (stacks for flame graphs) or pprof (for `go tool\npprof`; default: json if FILE "
		"ends in .json, else text)",
		OPTION_CHOICE, .offset = offsetof(struct values, format), .choices = "text|json|folded|pprof"},
	{"tree", 0, NULL, "with text: the call tree", OPTION_FLAG, .offset = offsetof(struct values, tree)},
	{"weight", 0, "energy|time", "order, and weight of folded stacks (default energy where it is known)",
		OPTION_CHOICE, .offset = offsetof(struct values, weight), .choices = "energy|time"},
	{"top", 0, "N", "with text and json: the first N functions (default: 20 in text, all in\njson)", OPTION_INTEGER,
		.offset = offsetof(struct values, top), .least = 1, .most = 1e9,
		.range = "a number of functions, 1 or more"},
	{"output", 'o', "FILE", "output file (default: standard output)", OPTION_TEXT,
		.offset = offsetof(struct values, output)},
};

struct input {
	const char *path;
	struct arena *arena;
	struct run run;
	struct findings findings;
	struct run_profile_data profile;
	struct function_names names;
	struct functions_finding functions;
};

/* ---- outputs ---- */

static int compress_into(struct buf *out, const struct buf *plain)
{
	enum { GZIP = 16 };
	z_stream stream = {0};
	if (plain->size > UINT_MAX ||
		deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	unsigned char chunk[65536];
	int r = Z_OK;
	stream.next_in = (unsigned char *)plain->data;
	stream.avail_in = (uInt)plain->size;
	while (r == Z_OK) {
		stream.next_out = chunk;
		stream.avail_out = sizeof(chunk);
		r = deflate(&stream, Z_FINISH);
		buf_add(out, chunk, sizeof(chunk) - stream.avail_out);
	}
	deflateEnd(&stream);
	return r == Z_STREAM_END ? 0 : -EIO;
}

static int write_pprof(const struct input *input, struct buf *out)
{
	struct buf plain = cli_buf();
	int r = functions_pprof(&input->functions, &input->names, input->arena, &plain);
	if (r == 0)
		r = plain.failed;
	if (r == 0)
		r = compress_into(out, &plain);
	buf_finish(&plain);
	return r;
}

static int by_time(const void *a, const void *b)
{
	const struct function_finding *x = a, *y = b;
	return (x->self_cpu_s < y->self_cpu_s) - (x->self_cpu_s > y->self_cpu_s);
}

static int print(const struct values *values, struct input *input)
{
	struct functions_finding *functions = &input->functions;
	struct buf out = cli_buf();
	bool is_text = strcmp(values->format, "text") == 0;
	bool is_time = values->weight != NULL ? strcmp(values->weight, "time") == 0 : isnan(functions->target_j);
	bool colour = cli_use_colour(values->output);
	size_t top = values->top > 0 ? (size_t)values->top : is_text ? TOP_TEXT : SIZE_MAX;
	int r = 0;
	if (is_time && functions->n_functions > 0)
		qsort(functions->functions, functions->n_functions, sizeof(*functions->functions), by_time);
	if (strcmp(values->format, "folded") == 0)
		functions_folded(functions, input->names.names, is_time, &out);
	else if (strcmp(values->format, "pprof") == 0)
		r = write_pprof(input, &out);
	else if (values->tree)
		functions_tree_text(functions, input->names.names, is_time, &out, colour);
	else if (is_text)
		functions_text(functions, top, is_time, &out, colour);
	else
		functions_json(functions, top, &out);
	out.failed = out.failed != 0 ? out.failed : r;
	return cli_finish(&out, values->output);
}

/* ---- input ---- */

static int compute(const struct values *values, struct input *input)
{
	struct wattle_error error = {0};
	int r = run_load_profile(input->path, input->arena, &input->profile, &error);
	if (r == 0 && input->profile.event == NULL)
		r = error_set(&error, -ENODATA, "%s has no profile; record it with wattle run --profile", input->path);
	if (r == 0)
		r = function_names_make(&input->profile, input->arena, &input->names);
	if (r == 0)
		r = functions_make(&input->findings, &input->profile, &input->names, input->arena, &input->functions);
	if (r < 0 && error.text[0] == '\0')
		error_set(&error, r, "%s: %s", input->path, strerror(-r));
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : print(values, input);
}

static int functions_of(const struct values *values, const char *path)
{
	struct wattle_error error = {0};
	struct input input = {.path = path};
	if (load_findings(path, &input.run, &input.findings, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	input.arena = arena_new();
	int status = input.arena != NULL ? compute(values, &input) : cli_no_memory();
	arena_free(input.arena);
	findings_finish(&input.findings);
	run_finish(&input.run);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct option_list words;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	values.format = cli_format(values.format, values.output, "json");
	if (words.n != 1)
		return cli_usage(command, EXIT_USAGE,
			words.n == 0 ? "no run file given" : "more than one run file given");
	bool is_text = strcmp(values.format, "text") == 0, is_json = strcmp(values.format, "json") == 0;
	if (values.tree && !is_text)
		return cli_usage(command, EXIT_USAGE, "--tree is for --format text");
	if (values.top > 0 && (values.tree || !(is_text || is_json)))
		return cli_usage(command, EXIT_USAGE, "--top is for lists of functions (text without --tree, json)");
	if (strcmp(values.format, "pprof") == 0 && values.output == NULL && isatty(STDOUT_FILENO))
		return cli_usage(command, EXIT_USAGE,
			"--format pprof writes binary data, which a terminal can't show: give -o FILE");
	if (!cli_check_not_input(values.output, words.items, 1, &status))
		return status;
	return functions_of(&values, words.items[0]);
}

const struct command command_functions = {
	.name = "functions",
	.usage = "RUN [--format text|json|folded|pprof] [--tree] [--weight energy|time] [--top N] [-o FILE]",
	.summary = "print energy and CPU time per function of a profiled run",
	.details =
		"RUN is a run file that was recorded with --profile. Names come from the files of the program, which are "
		"read now:\nan address whose file has changed since, or has no symbols, is shown as [module+0xoffset].",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
