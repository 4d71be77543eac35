#include "cli/command.h"

#include "base/util.h"
#include "cap/lease.h"
#include "cli/manual.h"

#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
};

static void help(FILE *to)
{
	fprintf(to,
		"usage: wattle COMMAND …\n\n"
		"Measures the energy and the resources that a program uses, and where in the program they go.\n\n"
		"commands (wattle COMMAND --help tells more):\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
}

static int manual(void)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	manual_print(commands, ARRAY_SIZE(commands), &out);
	int status = cli_write(&out, "-");
	buf_finish(&out);
	return status;
}

static void tell_recovered(void *data, const char *text)
{
	fprintf(stderr, "wattle: %s\n", text);
}

/* What owners of power limits left who were killed together with their guards. Without a journal, one failed open; a
 * bad variable is for the command to complain of. */
static void recover_caps(void)
{
	struct wattle_env env;
	if (env_open(&env, NULL) < 0)
		return;
	cap_recover(&env, tell_recovered, NULL);
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
	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("wattle %s\n", WATTLE_VERSION);
		return EXIT_DONE;
	}
	if (strcmp(argv[1], "--manual") == 0)
		return manual();
	if (strcmp(argv[1], "--cap-guard") == 0) // started by the owner of a limit, cap/lease.h
		return guard(argc - 2, argv + 2);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help(stdout);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strcmp(argv[1], commands[i]->name) == 0)
			return run(commands[i], argc - 2, argv + 2);
	fprintf(stderr, "wattle: unknown command '%s'; `wattle --help` lists the commands\n", argv[1]);
	return EXIT_USAGE;
}
