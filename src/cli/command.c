#include "cli/command.h"

#include "base/suggest.h"
#include "base/util.h"
#include "cli/help.h"
#include "report/table.h"
#include "store/output_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

int cli_fail(int status, const struct wattle_error *error)
{
	fprintf(stderr, "wattle: %s\n", error->text);
	return status;
}

int cli_no_memory(void)
{
	return cli_fail(EXIT_FAILED, &(struct wattle_error){.text = "out of memory"});
}

bool cli_use_colour(const char *output)
{
	return output == NULL && isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
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

// Warnings contain names from files, which terminals must not interpret.
void cli_warn(const char *text)
{
	struct buf harmless = cli_buf();
	text_add_printable(&harmless, text, strlen(text));
	fprintf(stderr, "wattle: warning: %s\n", harmless.data != NULL ? harmless.data : "");
	buf_finish(&harmless);
}

static void add_examples(const struct command *command, struct buf *out)
{
	size_t at = 0;
	const struct example *example = example_next(command->name, false, &at);
	if (example != NULL)
		buf_str(out, "\nexamples:\n");
	for (; example != NULL; example = example_next(command->name, false, &at))
		buf_printf(out, "  %s\n      %s\n", example->line, example->meaning);
}

static int print_help(const struct command *command)
{
	struct buf out = cli_buf();
	size_t columns = help_columns();
	buf_printf(&out, "usage: wattle %s %s\n\n%c%s.\n", command->name, command->usage,
		toupper((unsigned char)command->summary[0]), command->summary + 1);
	if (command->details != NULL) {
		buf_char(&out, '\n');
		help_paragraphs(command->details, columns, &out);
	}
	if (command->n_parts > 0)
		buf_printf(&out, "\nwattle %s SUBCOMMAND --help describes each subcommand:\n", command->name);
	for (size_t i = 0; i < command->n_parts; i++)
		buf_printf(&out, "  %-10s %s\n", command->parts[i]->name, command->parts[i]->summary);
	if (command->n_options > 0)
		buf_str(&out, "\noptions:\n");
	options_help(command->options, command->n_options, columns, &out);
	add_examples(command, &out);
	return cli_finish(&out, "-");
}

bool cli_parse(const struct command *command, int argc, char **argv, void *values, int *ret_first, void **ret_config,
	int usage_status, int *ret_status)
{
	*ret_config = NULL;
	if (options_request_help(command->options, command->n_options, argc, argv)) {
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

bool cli_parse_operands(const struct command *command, int argc, char **argv, void *values, struct option_list *words,
	int *ret_status)
{
	*words = (struct option_list){0};
	for (;;) {
		void *config; // unused: these commands have no --config
		int used;
		if (!cli_parse(command, argc, argv, values, &used, &config, EXIT_USAGE, ret_status))
			return false;
		argc -= used;
		argv += used;
		if (argc == 0)
			return true;
		if (words->n == OPTION_LIST_MAX) {
			*ret_status = cli_usage(command, EXIT_USAGE, "more than %d arguments", OPTION_LIST_MAX);
			return false;
		}
		words->items[words->n++] = argv[0];
		argc--;
		argv++;
	}
}

bool cli_is_same_file(const char *a, const char *b)
{
	struct stat x, y;
	return a != NULL && b != NULL && stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
		x.st_ino == y.st_ino;
}

bool cli_check_not_input(const char *path, const char *const *inputs, size_t n, int *ret_status)
{
	for (size_t i = 0; i < n; i++) {
		if (!cli_is_same_file(path, inputs[i]))
			continue;
		struct wattle_error error;
		error_set(&error, -EEXIST, "--output: %s is also an input; choose another name", path);
		*ret_status = cli_fail(EXIT_FAILED, &error);
		return false;
	}
	return true;
}

const char *cli_format(const char *given, const char *output, const char *by_suffix)
{
	static const char *const suffixes[][2] = {{".html", "html"}, {".htm", "html"}, {".json", "json"}};
	const char *suffix = output != NULL ? strrchr(output, '.') : NULL;
	for (size_t i = 0; given == NULL && suffix != NULL && i < ARRAY_SIZE(suffixes); i++)
		if (suffix > output && strcasecmp(suffix, suffixes[i][0]) == 0 && strstr(by_suffix, suffixes[i][1]) != NULL)
			given = suffixes[i][1];
	return given != NULL ? given : "text";
}

// Pipes and terminals are not opened, because a reader would see end of file. A missing file is created briefly, since a folder
// may look writable and accept no file (/proc, a full quota).
static int try_to_write(const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode) ? -EISDIR : access(path, W_OK) == 0 ? 0 : -errno;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno; // a symbolic link to a missing file, which will be created
	close(fd);
	unlink(path);
	return 0;
}

int cli_check_writable(const char *option, const char *path, struct wattle_error *reterr)
{
	if (path == NULL || strcmp(path, "-") == 0)
		return 0;
	if (file_type_is_measurements(path))
		return error_set(reterr, -EEXIST, "%s: %s contains measurements; choose another name", option, path);
	int r = try_to_write(path);
	return r == 0 ? 0 : error_set(reterr, r, "%s: can't write %s: %s", option, path, strerror(-r));
}

int cli_write(const struct buf *out, const char *path)
{
	const char *to = path != NULL ? path : "-";
	if (strcmp(to, "-") != 0 && file_type_is_measurements(to)) {
		fprintf(stderr, "wattle: can't write %s: it contains measurements; choose another name\n", to);
		return EXIT_FAILED;
	}
	int r = buf_write_file(out, to);
	if (r == 0)
		return EXIT_DONE;
	fprintf(stderr, "wattle: can't write %s: %s\n", strcmp(to, "-") == 0 ? "to standard output" : to, strerror(-r));
	return EXIT_FAILED;
}

struct buf cli_buf(void)
{
	struct buf out;
	buf_init(&out, 1 << 30);
	return out;
}

int cli_finish(struct buf *out, const char *path)
{
	int status = cli_write(out, path);
	buf_finish(out);
	return status;
}

int cli_run_part(const struct command *command, int argc, char **argv)
{
	void *config;
	int first, status;
	size_t in_front = strlen(command->name) + strlen(" ");
	for (size_t i = 0; argc > 0 && i < command->n_parts; i++)
		if (strcmp(argv[0], command->parts[i]->name + in_front) == 0)
			return command->parts[i]->run(command->parts[i], argc - 1, argv + 1);
	if (!cli_parse(command, argc, argv, NULL, &first, &config, EXIT_USAGE, &status)) // --help
		return status;
	if (argc == 0)
		return cli_usage(command, EXIT_USAGE, "a subcommand is missing");
	struct suggest suggest;
	char meant[SUGGEST_WORD_MAX + 32];
	suggest_begin(&suggest, argv[0], strlen(argv[0]));
	for (size_t i = 0; i < command->n_parts; i++)
		suggest_offer(&suggest, command->parts[i]->name + in_front, strlen(command->parts[i]->name + in_front));
	return cli_usage(command, EXIT_USAGE, "unknown subcommand '%s'%s", argv[0], suggest_text(&suggest, "", meant));
}
