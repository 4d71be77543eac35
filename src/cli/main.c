#include "cli/command.h"

#include "base/suggest.h"
#include "base/util.h"
#include "cap/lease.h"
#include "cli/help.h"
#include "cli/measure.h"
#include "store/sql.h"

#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
};

static void help(struct buf *out)
{
	buf_str(out,
		"usage: wattle COMMAND …\n\n"
		"Measures the energy and resources that a program uses, and attributes them to its "
		"code.\n\ncommands (`wattle COMMAND --help` describes each):\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		buf_printf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
}

static const struct command *find_command(const char *name)
{
	const char *new_name = deprecated_name(DEPRECATED_COMMAND, name, strlen(name));
	if (new_name != NULL)
		fprintf(stderr, "wattle: 'wattle %s' is deprecated; use 'wattle %s'\n", name, new_name);
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(new_name != NULL ? new_name : name, commands[i]->name) == 0)
			return commands[i];
	struct suggest suggest;
	char meant[SUGGEST_WORD_MAX + 32];
	suggest_begin(&suggest, name, strlen(name));
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		suggest_offer(&suggest, commands[i]->name, strlen(commands[i]->name));
	fprintf(stderr, "wattle: unknown command '%s'%s; `wattle --help` lists the commands\n", name,
		suggest_text(&suggest, "", meant));
	return NULL;
}

// wattle help COMMAND [PART]: as `wattle COMMAND [PART] --help`
static int help_of(int argc, char **argv)
{
	char asked[] = "--help";
	const struct command *command = find_command(argv[0]);
	if (command == NULL)
		return EXIT_USAGE;
	char *words[] = {argc > 1 ? argv[1] : asked, asked, NULL};
	return command->run(command, argc > 1 ? 2 : 1, words);
}

// wattle --manual [COMMAND]
static int manual(const char *name)
{
	const struct command *command = name != NULL ? find_command(name) : NULL;
	if (name != NULL && command == NULL)
		return EXIT_USAGE;
	struct buf out = cli_buf();
	if (command != NULL)
		manual_print_command(command, &out);
	else
		manual_print(commands, ARRAY_SIZE(commands), &out);
	return cli_finish(&out, "-");
}

static int completion(const char *shell)
{
	struct buf out = cli_buf();
	if (shell != NULL && completion_print(shell, &out))
		return cli_finish(&out, "-");
	fprintf(stderr, "wattle: --completion: give one of bash, zsh, fish\n");
	return EXIT_USAGE;
}

static void print_recovered(void *data, const char *text)
{
	fprintf(stderr, "wattle: %s\n", text);
}

/* Restores power limits whose owners were killed together with their guards. Without a journal this costs one failed open;
 * errors in environment variables are left to the command. */
static void recover_caps(void)
{
	struct wattle_env env;
	if (env_open(&env, NULL) < 0)
		return;
	cap_recover(&env, print_recovered, NULL);
	env_close(&env);
}

static int guard(int argc, char **argv)
{
	struct wattle_env env;
	if (env_open(&env, NULL) < 0)
		return EXIT_FAILED;
	int status = cap_guard_main(&env, argc, argv);
	env_close(&env);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	recover_caps();
	return command->run(command, argc, argv);
}

int main(int argc, char **argv)
{
	struct buf out = cli_buf();
	sql_set_up_program();
	if (argc < 2) {
		help(&out);
		fputs(out.data, stderr);
		buf_finish(&out);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		buf_printf(&out, "wattle %s\n", WATTLE_VERSION);
		return cli_finish(&out, "-");
	}
	if (strcmp(argv[1], "--manual") == 0)
		return manual(argv[2]);
	if (strcmp(argv[1], "--completion") == 0)
		return completion(argv[2]);
	if (strcmp(argv[1], "--complete") == 0) { // called by shell completions
		completion_at(commands, ARRAY_SIZE(commands), argc - 2, argv + 2, &out);
		return cli_finish(&out, "-");
	}
	if (strcmp(argv[1], "--cap-guard") == 0) // started by the holder of a limit, cap/lease.h
		return guard(argc - 2, argv + 2);
	if (strcmp(argv[1], "--sender") == 0) // started by a recorder, measure.h
		return uploader_main();
	if (strcmp(argv[1], "help") == 0 && argc > 2)
		return help_of(argc - 2, argv + 2);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
		help(&out);
		return cli_finish(&out, "-");
	}
	const struct command *command = find_command(argv[1]);
	return command != NULL ? run(command, argc - 2, argv + 2) : EXIT_USAGE;
}
