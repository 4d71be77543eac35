/* wattle model: parameters and multiply-adds of a model, computed from its ONNX file alone. */
#include "cli/command.h"

#include "base/num.h"
#include "base/util.h"
#include "model/model.h"
#include "report/documents.h"

#include <stdlib.h>
#include <string.h>

struct values {
	const char *format, *output;
	int64_t batch;
	struct option_list dims;
};

static const struct option options[] = {
	{"format", 0, "text|json", "output format (default: json if FILE ends in .json, else text)", OPTION_CHOICE,
		.offset = offsetof(struct values, format), .choices = "text|json"},
	{"batch", 0, "N", "batch size (default: as stored; 1 if the file leaves it open)", OPTION_INTEGER,
		.offset = offsetof(struct values, batch), .least = 1, .most = INT32_MAX, .range = "1 or more"},
	{"dim", 0, "NAME=SIZE", "size of a dimension of an input that the file leaves open (repeatable)", OPTION_LIST,
		.offset = offsetof(struct values, dims)},
	{"output", 'o', "FILE", "output file (default: standard output)", OPTION_TEXT,
		.offset = offsetof(struct values, output)},
};

static bool split(const struct command *command, const struct option_list *words, struct arena *arena,
	struct model_dim *dims, int *ret_status)
{
	for (size_t i = 0; i < words->n; i++) {
		char *name = arena_text(arena, words->items[i]);
		char *equals = name != NULL ? strrchr(name, '=') : NULL;
		if (name == NULL) {
			*ret_status = cli_no_memory();
			return false;
		}
		if (equals == NULL || equals == name || num_parse_i64(equals + 1, &dims[i].size) < 0 ||
			dims[i].size < 0) {
			*ret_status = cli_usage(command, EXIT_USAGE,
				"--dim: '%.200s' is not NAME=SIZE, such as sequence=128", words->items[i]);
			return false;
		}
		*equals = '\0';
		dims[i].name = name;
	}
	return true;
}

static int print(const struct values *values, const char *file, const struct model_figures *figures)
{
	struct buf out = cli_buf();
	if (strcmp(values->format, "json") == 0)
		model_json(figures, &out);
	else
		model_text(figures, file, &out, cli_use_colour(values->output));
	return cli_finish(&out, values->output);
}

static int model(const struct command *command, const struct values *values, const char *file, struct arena *arena)
{
	struct model_dim dims[OPTION_LIST_MAX];
	int status;
	if (!split(command, &values->dims, arena, dims, &status))
		return status;
	const struct model_options wanted = {.batch = values->batch, .dims = dims, .n_dims = values->dims.n};
	struct model_figures figures;
	struct wattle_error error = {0};
	if (model_read(file, &wanted, arena, &figures, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	return print(values, file, &figures);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {.batch = VALUE_MISSING};
	struct option_list words;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	values.format = cli_format(values.format, values.output, "json");
	if (words.n != 1)
		return cli_usage(command, EXIT_USAGE, "one FILE.onnx is needed");
	if (!cli_check_not_input(values.output, words.items, 1, &status))
		return status;
	struct arena *arena = arena_new();
	status = arena != NULL ? model(command, &values, words.items[0], arena) : cli_no_memory();
	arena_free(arena);
	return status;
}

const struct command command_model = {
	.name = "model",
	.usage = "FILE.onnx [--format text|json] [--batch N] [--dim NAME=SIZE]… [-o FILE]",
	.summary = "count parameters and multiply-adds of an ONNX model per layer",
	.details =
		"Reads the graph without the weights, which may be in the file or in separate files. Unknown "
		"values are n/a (null), never 0.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
