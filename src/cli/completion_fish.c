#include "cli/completion_shells.h"

#include <string.h>

extern const char shell_fish[];

// What follows an option, or stands as a word.
static const char *const words[] = {
	[WORD_ANYTHING] = " -x",
	[WORD_FILE] = " -r -F",
	[WORD_FOLDER] = " -x -a '(__fish_complete_directories)'",
	[WORD_RUN] = " -x -a '(__wattle_files sqlite)'",
	[WORD_NAMED_RUN] = " -r -F",
	[WORD_ONNX] = " -x -a '(__wattle_files onnx)'",
	[WORD_JSON] = " -x -a '(__wattle_files json)'",
	[WORD_DEVICE] = " -x -a '(__wattle_devices)'",
	[WORD_PID] = " -x -a '(__fish_complete_pids)'",
};

static void add_quoted(struct buf *out, const char *text)
{
	buf_char(out, '\'');
	for (; *text != '\0'; text++) {
		if (*text == '\'' || *text == '\\')
			buf_char(out, '\\');
		buf_char(out, *text);
	}
	buf_char(out, '\'');
}

static void add_option(struct buf *out, const char *command, const struct option *option)
{
	buf_printf(out, "complete -c wattle -n '__wattle_at \"%s\"' -l %s", command, option->name);
	if (option->letter != 0)
		buf_printf(out, " -s %c", option->letter);
	if (option->kind == OPTION_CHOICE) {
		buf_str(out, " -x -a '");
		for (const char *c = option->choices; *c != '\0'; c++)
			buf_char(out, *c == '|' ? ' ' : *c);
		buf_char(out, '\'');
	} else if (option->argument != NULL) {
		int kind = word_kind_of(option->argument);
		buf_str(out, words[kind > 0 ? kind : WORD_ANYTHING]);
	}
	struct buf summary;
	buf_init(&summary, 4096);
	option_summary(option, &summary);
	if (summary.failed == 0 && summary.size > 0) {
		buf_str(out, " -d ");
		add_quoted(out, summary.data);
	}
	buf_finish(&summary);
	buf_char(out, '\n');
}

static void add_operands(struct buf *out, const struct command *command)
{
	struct operands operands = operands_of(command);
	for (size_t i = 0; i < operands.n; i++) {
		bool is_rest = operands.repeats && i + 1 == operands.n;
		if (operands.at[i].kind == WORD_ANYTHING)
			continue;
		const char *how = words[operands.at[i].kind];
		how += strncmp(how, " -x", 3) == 0 || strncmp(how, " -r", 3) == 0 ? 3 : 0; // it follows no option
		buf_printf(out, "complete -c wattle -n '%s \"%s\" %zu'%s\n",
			is_rest ? "__wattle_at_least" : "__wattle_at", command->name, i, how);
	}
	if (operands.command == TAKES_COMMAND)
		buf_printf(out,
			"complete -c wattle -n '__wattle_at_target \"%s\"' -a '(complete --do-complete=(commandline -ct))'\n",
			command->name);
}

static bool add_command(void *data, const struct command *command)
{
	struct buf *out = data;
	const char *blank = strchr(command->name, ' ');
	const char *word = blank != NULL ? blank + 1 : command->name;
	size_t length = blank != NULL ? (size_t)(blank - command->name) : 0;
	buf_printf(out, "\ncomplete -c wattle -n '__wattle_at \"%.*s\" 0' -a %s -d ", (int)length, command->name, word);
	add_quoted(out, command->summary);
	buf_printf(out, "\ncomplete -c wattle -n '__wattle_at \"%s\"' -l help -d 'say what it does'\n", command->name);
	for (size_t i = 0; i < command->n_options; i++)
		if (option_is_offered(&command->options[i]))
			add_option(out, command->name, &command->options[i]);
	add_operands(out, command);
	return true;
}

static bool parts_of(void *data, const struct command *command)
{
	if (strchr(command->name, ' ') != NULL)
		buf_printf(data, " '%s'", command->name);
	return true;
}

static bool values_of(void *data, const struct command *command)
{
	for (size_t i = 0; i < command->n_options; i++) {
		const struct option *option = &command->options[i];
		if (option->argument == NULL)
			continue;
		buf_printf(data, " \\\n\t\t'%s --%s'", command->name, option->name);
		if (option->letter != 0)
			buf_printf(data, " '%s -%c'", command->name, option->letter);
	}
	return true;
}

static bool count_of(void *data, const struct command *command)
{
	struct operands operands = operands_of(command);
	if (operands.command != TAKES_NO_COMMAND)
		buf_printf(data, "\t\tcase '%s'\n\t\t\techo %zu\n", command->name, operands.n);
	return true;
}

static bool takes_of(void *data, const struct command *command)
{
	struct operands operands = operands_of(command);
	if (operands.command != TAKES_NO_COMMAND)
		buf_printf(data, "\t\tcase '%s'\n\t\t\techo %s\n", command->name,
			operands.command == TAKES_COMMAND ? "anywhere" : "dashes");
	return true;
}

void completion_fish(const struct command *const *commands, size_t n, struct buf *out)
{
	buf_str(out, shell_fish);
	buf_str(out, "function __wattle_commands # of two words\n\tprintf '%s\\n'");
	visit_commands(commands, n, parts_of, out);
	buf_str(out, "\nend\nfunction __wattle_values # options that take one\n\tprintf '%s\\n'");
	visit_commands(commands, n, values_of, out);
	buf_str(out,
		"\nend\nfunction __wattle_count # words before another program's command line\n\tswitch \"$argv\"\n");
	visit_commands(commands, n, count_of, out);
	buf_str(out,
		"\tend\nend\nfunction __wattle_takes # such a command line, anywhere or after --\n\tswitch \"$argv\"\n");
	visit_commands(commands, n, takes_of, out);
	buf_str(out,
		"\tend\nend\n"
		"complete -c wattle -n '__wattle_at \"\"' -l help -d 'say what it does'\n"
		"complete -c wattle -n '__wattle_at \"\"' -l version -d 'say which one it is'\n");
	visit_commands(commands, n, add_command, out);
}
