#include "cli/completion_shells.h"

#include <string.h>

extern const char shell_bash[];

static const char *const kinds[] = {
	[WORD_ANYTHING] = "",
	[WORD_FILE] = "files",
	[WORD_FOLDER] = "folders",
	[WORD_RUN] = "runs",
	[WORD_NAMED_RUN] = "named_runs",
	[WORD_ONNX] = "onnx",
	[WORD_JSON] = "json",
	[WORD_DEVICE] = "devices",
	[WORD_PID] = "pids",
};

static void begin(struct buf *out, const char *name)
{
	buf_printf(out, "_wattle_%s() {\n\tcase $1 in\n", name);
}

static void end(struct buf *out)
{
	buf_str(out, "\tesac\n}\n");
}

// "run" or "cap set" as the words of a list: the last one.
static const char *last_word(const struct command *command)
{
	const char *blank = strrchr(command->name, ' ');
	return blank != NULL ? blank + 1 : command->name;
}

static void add_parts(struct buf *out, const char *of, const struct command *const *parts, size_t n)
{
	buf_printf(out, "\t'%s') echo", of);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, " %s", last_word(parts[i]));
	buf_str(out, " ;;\n");
}

static bool options_of(void *data, const struct command *command)
{
	struct buf *out = data;
	buf_printf(out, "\t'%s') echo --help", command->name);
	for (size_t i = 0; i < command->n_options; i++) {
		const struct option *option = &command->options[i];
		if (!option_is_offered(option))
			continue;
		buf_printf(out, " --%s", option->name);
		if (option->letter != 0)
			buf_printf(out, " -%c", option->letter);
	}
	buf_str(out, " ;;\n");
	return true;
}

// Something for each option that takes a value, so that the next word is known to be one.
static bool values_of(void *data, const struct command *command)
{
	struct buf *out = data;
	for (size_t i = 0; i < command->n_options; i++) {
		const struct option *option = &command->options[i];
		if (option->argument == NULL)
			continue;
		buf_printf(out, "\t'%s --%s'", command->name, option->name);
		if (option->letter != 0)
			buf_printf(out, " | '%s -%c'", command->name, option->letter);
		buf_str(out, ") echo ");
		int kind = word_kind_of(option->argument);
		if (option->kind == OPTION_CHOICE) {
			buf_str(out, "'=");
			for (const char *c = option->choices; *c != '\0'; c++)
				buf_char(out, *c == '|' ? ' ' : *c);
			buf_char(out, '\'');
		} else {
			buf_str(out,
				kind > 0            ? kinds[kind]
					: kind == 0 ? "anything"
						    : "unheard-of"); // a test looks for those
		}
		buf_str(out, " ;;\n");
	}
	return true;
}

static bool operands_rows(void *data, const struct command *command)
{
	struct operands operands = operands_of(command);
	for (size_t i = 0; i < operands.n; i++) {
		bool is_last = i + 1 == operands.n;
		buf_printf(data, "\t'%s '", command->name);
		if (is_last && operands.repeats)
			buf_str(data, "*");
		else
			buf_printf(data, "%zu", i);
		buf_printf(data, ") echo %s ;;\n", kinds[operands.at[i].kind]);
	}
	return true;
}

static bool counts(void *data, const struct command *command)
{
	buf_printf(data, "\t'%s') echo %zu ;;\n", command->name, operands_of(command).n);
	return true;
}

static bool takes(void *data, const struct command *command)
{
	struct operands operands = operands_of(command);
	if (operands.command != TAKES_NO_COMMAND)
		buf_printf(data, "\t'%s') echo %s ;;\n", command->name,
			operands.command == TAKES_COMMAND ? "anywhere" : "dashes");
	return true;
}

static bool parts_of(void *data, const struct command *command)
{
	if (command->n_parts > 0)
		add_parts(data, command->name, command->parts, command->n_parts);
	return true;
}

void completion_bash(const struct command *const *commands, size_t n, struct buf *out)
{
	buf_str(out, shell_bash);
	begin(out, "parts");
	add_parts(out, "", commands, n);
	visit_commands(commands, n, parts_of, out);
	end(out);
	begin(out, "options");
	buf_str(out, "\t'') echo --help --version ;;\n");
	visit_commands(commands, n, options_of, out);
	end(out);
	buf_str(out, "_wattle_value() { # COMMAND OPTION\n\tcase \"$1 $2\" in\n");
	visit_commands(commands, n, values_of, out);
	end(out);
	buf_str(out, "_wattle_operand() { # COMMAND N, from 0\n\tcase \"$1 $2\" in\n");
	visit_commands(commands, n, operands_rows, out);
	end(out);
	begin(out, "count");
	visit_commands(commands, n, counts, out);
	end(out);
	begin(out, "takes");
	visit_commands(commands, n, takes, out);
	end(out);
}
