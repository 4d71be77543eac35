#include "cli/completion_shells.h"

#include <string.h>

extern const char shell_zsh[];

static const char *const actions[] = {
	[WORD_ANYTHING] = " ",
	[WORD_FILE] = "_files",
	[WORD_FOLDER] = "_files -/",
	[WORD_RUN] = "_wattle_runs",
	[WORD_NAMED_RUN] = "_wattle_named_runs",
	[WORD_ONNX] = "_files -g \"*.onnx(-.)\"",
	[WORD_JSON] = "_files -g \"*.json(-.)\"",
	[WORD_DEVICE] = "_wattle_devices",
	[WORD_PID] = "_pids",
};

/* Within '…' a quote needs a way out and back; in a description brackets and colons are _arguments' own. */
static void add_text(struct buf *out, const char *text, const char *escaped)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'') {
			buf_str(out, "'\\''");
			continue;
		}
		if (strchr(escaped, *text) != NULL)
			buf_char(out, '\\');
		buf_char(out, *text);
	}
}

static void add_description(struct buf *out, const struct option *option)
{
	struct buf text;
	buf_init(&text, 4096);
	option_summary(option, &text);
	if (text.failed == 0 && text.size > 0) {
		buf_char(out, '[');
		add_text(out, text.data, "[]:\\");
		buf_char(out, ']');
	}
	buf_finish(&text);
}

static void add_value(struct buf *out, const struct option *option)
{
	if (option->argument == NULL)
		return;
	int kind = word_kind_of(option->argument);
	buf_char(out, ':');
	add_text(out, option->argument, ":\\");
	buf_char(out, ':');
	if (option->kind != OPTION_CHOICE) {
		buf_str(out, actions[kind > 0 ? kind : WORD_ANYTHING]);
		return;
	}
	buf_char(out, '(');
	for (const char *c = option->choices; *c != '\0'; c++)
		buf_char(out, *c == '|' ? ' ' : *c);
	buf_char(out, ')');
}

// Of an option with a letter two, which exclude each other unless it may come again.
static void add_spec(struct buf *out, const struct option *option, bool is_letter)
{
	buf_str(out, " \\\n\t\t'");
	if (option->kind == OPTION_LIST)
		buf_char(out, '*');
	else if (option->letter != 0)
		buf_printf(out, "(-%c --%s)", option->letter, option->name);
	if (is_letter)
		buf_printf(out, "-%c%s", option->letter, option->argument != NULL ? "+" : "");
	else
		buf_printf(out, "--%s%s", option->name, option->argument != NULL ? "=" : "");
	add_description(out, option);
	add_value(out, option);
	buf_char(out, '\'');
}

#define PROGRAM_SPEC "(-)*:::program and its arguments: _normal"

// Where the program stands behind --, options may come up to that; its spec would end them with the first word.
static void add_program_behind_dashes(struct buf *out, const struct command *command)
{
	if (operands_of(command).command == TAKES_COMMAND_AFTER_DASHES)
		buf_str(out, "\tlocal -a program\n\t(( $words[(i)--] < CURRENT )) && program=('" PROGRAM_SPEC "')\n");
}

static void add_operands(struct buf *out, const struct command *command)
{
	struct operands operands = operands_of(command);
	for (size_t i = 0; i < operands.n; i++) {
		bool is_rest = operands.repeats && i + 1 == operands.n;
		if (is_rest)
			buf_str(out, " \\\n\t\t'*:");
		else
			buf_printf(out, " \\\n\t\t'%zu:", i + 1);
		add_text(out, operands.at[i].name, ":\\");
		buf_printf(out, ":%s'", actions[operands.at[i].kind]);
	}
	if (operands.command == TAKES_COMMAND)
		buf_str(out, " \\\n\t\t'" PROGRAM_SPEC "'");
	else if (operands.command == TAKES_COMMAND_AFTER_DASHES)
		buf_str(out, " \\\n\t\t$program");
}

static void begin_function(struct buf *out, const char *name)
{
	buf_str(out, "\n_wattle");
	if (name[0] != '\0')
		buf_char(out, '_');
	for (; *name != '\0'; name++)
		buf_char(out, *name == ' ' ? '_' : *name);
	buf_str(out, "() {\n");
}

// A word that says which function completes the others.
static void add_choice(struct buf *out, const char *name, const struct command *const *parts, size_t n)
{
	const char *blank = name[0] != '\0' ? " " : "";
	size_t length = strlen(name) + strlen(blank);
	begin_function(out, name);
	buf_str(out,
		"\tlocal curcontext=\"$curcontext\" state state_descr line\n\tlocal -A opt_args\n\tlocal -a commands\n"
		"\t_arguments -C '(- *)--help[say what it does]'");
	buf_str(out, name[0] == '\0' ? " '(- *)--version[say which one it is]'" : "");
	buf_str(out, " '1: :->command' '*:: :->words' && return\n\tcase $state in\n\tcommand)\n\t\tcommands=(");
	for (size_t i = 0; i < n; i++) {
		buf_str(out, "\n\t\t\t'");
		add_text(out, parts[i]->name + length, "");
		buf_char(out, ':');
		add_text(out, parts[i]->summary, ":\\");
		buf_char(out, '\'');
	}
	buf_printf(out,
		"\n\t\t)\n\t\t_describe -t commands 'wattle command' commands\n\t\t;;\n\twords)\n"
		"\t\tcurcontext=\"${curcontext%%:*:*}:wattle-$words[1]:\"\n\t\t_wattle_dispatch \"%s%s$words[1]\"\n"
		"\t\t;;\n\tesac\n}\n",
		name, blank);
}

static bool add_command(void *data, const struct command *command)
{
	struct buf *out = data;
	if (command->n_parts > 0) {
		add_choice(out, command->name, command->parts, command->n_parts);
		return true;
	}
	begin_function(out, command->name);
	add_program_behind_dashes(out, command);
	buf_str(out, "\t_arguments -s -S \\\n\t\t'(- *)--help[say what it does]'");
	for (size_t i = 0; i < command->n_options; i++) {
		const struct option *option = &command->options[i];
		if (!option_is_offered(option))
			continue;
		if (option->letter != 0)
			add_spec(out, option, true);
		add_spec(out, option, false);
	}
	add_operands(out, command);
	buf_str(out, "\n}\n");
	return true;
}

void completion_zsh(const struct command *const *commands, size_t n, struct buf *out)
{
	buf_str(out, shell_zsh);
	visit_commands(commands, n, add_command, out);
	add_choice(out, "", commands, n);
	// Loaded by compinit when it is wanted first, or read by hand.
	buf_str(out,
		"\nif [[ $funcstack[1] == _wattle ]]; then\n\t_wattle \"$@\"\nelse\n\tcompdef _wattle wattle\nfi\n");
}
