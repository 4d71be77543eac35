#include "cli/command.h"

#include "base/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cli_fail(int status, const struct wattle_error *error)
{
	fprintf(stderr, "wattle: %s\n", error->text);
	return status;
}

int cli_usage(const struct command *command, int status, const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "wattle %s: %s; usage: wattle %s %s\n", command->name, text, command->name, command->usage);
	return status;
}

void cli_warn(const char *text)
{
	fprintf(stderr, "wattle: warning: %s\n", text);
}

static int print_help(const struct command *command)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	buf_printf(&out, "usage: wattle %s %s\n\n%s.\n", command->name, command->usage, command->summary);
	if (command->details != NULL)
		buf_printf(&out, "\n%s\n", command->details);
	if (command->n_options > 0)
		buf_str(&out, "\noptions:\n");
	options_help(command->options, command->n_options, &out);
	int status = cli_write(&out, "-");
	buf_finish(&out);
	return status;
}

bool cli_parse(const struct command *command, int argc, char **argv, void *values, int *ret_first, void **ret_config,
	int usage_status, int *ret_status)
{
	*ret_config = NULL;
	if (argc > 0 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
		*ret_status = print_help(command);
		return false;
	}
	struct wattle_error error = {0};
	int r = options_parse(command->options, command->n_options, command->name, argc, argv, values, ret_first,
		ret_config, &error);
	if (r == 0)
		return true;
	fprintf(stderr, "wattle %s: %s\n", command->name, error.text[0] != '\0' ? error.text : strerror(-r));
	*ret_status = usage_status;
	return false;
}

bool cli_parse_words(const struct command *command, int argc, char **argv, void *values, struct option_list *words,
	int *ret_status)
{
	*words = (struct option_list){0};
	for (;;) {
		void *config; // these commands have no --config
		int used;
		if (!cli_parse(command, argc, argv, values, &used, &config, EXIT_USAGE, ret_status))
			return false;
		argc -= used;
		argv += used;
		if (argc == 0)
			return true;
		if (words->n == OPTION_LIST_MAX) {
			*ret_status = cli_usage(command, EXIT_USAGE, "more than %d words", OPTION_LIST_MAX);
			return false;
		}
		words->items[words->n++] = argv[0];
		argc--;
		argv++;
	}
}

int cli_check_writable(const char *option, const char *path, struct wattle_error *reterr)
{
	if (path == NULL || strcmp(path, "-") == 0)
		return 0;
	char folder[4096];
	const char *slash = strrchr(path, '/');
	size_t length = slash == NULL ? 0 : (size_t)(slash - path) + (slash == path);
	if (length >= sizeof(folder))
		return error_set(reterr, -ENAMETOOLONG, "%s: the path is too long", option);
	memcpy(folder, path, length);
	folder[length] = '\0';
	bool exists = access(path, F_OK) == 0;
	if (access(exists ? path : length > 0 ? folder : ".", W_OK) == 0)
		return 0;
	return error_set(reterr, -errno, "%s: can't write %s: %s", option, path, strerror(errno));
}

int cli_write(const struct buf *out, const char *path)
{
	const char *to = path != NULL ? path : "-";
	int r = buf_write_file(out, to);
	if (r == 0)
		return EXIT_DONE;
	fprintf(stderr, "wattle: can't write %s: %s\n", strcmp(to, "-") == 0 ? "to standard output" : to, strerror(-r));
	return EXIT_FAILED;
}
