/* A command of the program: one file each, listed in commands.def. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/fields.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Command-line options from one table, which is the source of parsing, --config files, --help (help.h) and the manual. */

enum option_kind {
	OPTION_FLAG,     // bool
	OPTION_TEXT,     // const char *
	OPTION_LIST,     // struct option_list: may be repeated
	OPTION_DURATION, // int64_t nanoseconds: 100ms, 2s
	OPTION_NUMBER,   // double
	OPTION_INTEGER,  // int64_t
	OPTION_CHOICE,   // const char *, one of `choices`
};

enum { OPTION_LIST_MAX = 64 };
struct option_list {
	const char *items[OPTION_LIST_MAX + 1]; // NULL-terminated
	size_t n;
};

struct option {
	const char *name;     // without the dashes
	char letter;          // 0: none
	const char *argument; // as shown in help; NULL for flags
	const char *help;
	enum option_kind kind;
	size_t offset;       // offset of the value in the caller's struct
	double least, most;  // for NUMBER, INTEGER, and DURATION in nanoseconds; both 0: unbounded
	const char *range;   // the bounds as text
	const char *choices; // CHOICE, and a LIST that has them: "a|b|c"
	const char *bare;    // the value of --name alone, if =VALUE is optional; NULL: a value is needed
};

/* Parses options into `values`, which contains the defaults. Stops at the first word that is not an option, or after "--"; its
 * index is *ret_first. -EINVAL with a message that names the option and the valid values. `config` (may be NULL) is the option
 * that names a JSON file with any of the other options: it is read first, so the command line takes precedence. Values from the
 * file live as long as *ret_config, which the caller passes to option_config_free. */
int options_parse(const struct option *options, size_t n_options, const char *command, int argc, char **argv,
	void *values, int *ret_first, void **ret_config, struct wattle_error *reterr);
void option_config_free(void *config);
// Whether --help or -h is among the options, other than as the value of an option or an argument of the command after them.
bool options_request_help(const struct option *options, size_t n_options, int argc, char **argv);

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
	const char *name;
	const char *usage;   // text after "wattle NAME"
	const char *summary; // one line
	const char *details; // further text of --help; NULL: none
	const struct option *options;
	size_t n_options;
	const struct command *const *parts; // subcommands ("cap list"); NULL: none
	size_t n_parts;
	int (*run)(const struct command *command, int argc, char **argv); // argv[0] is the word after the command's name
};

enum deprecated_kind { DEPRECATED_COMMAND, DEPRECATED_OPTION };
// The current name of a command or option given by a deprecated one (deprecated.def); NULL: it is not one.
const char *deprecated_name(enum deprecated_kind kind, const char *old, size_t length);

#define COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef COMMAND
extern const struct command command_cap_list, command_cap_get, command_cap_set, command_cap_reset, command_cap_tune;
extern const struct command command_store_init, command_store_status;

// Prints "wattle: TEXT" on stderr; returns status.
int cli_fail(int status, const struct wattle_error *error);
int cli_no_memory(void); // prints a message; returns EXIT_FAILED
bool cli_use_colour(const char *output); // NULL: standard output; needs a terminal, and no NO_COLOR
int cli_usage(const struct command *command, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void cli_warn(const char *text); // prints "wattle: warning: TEXT" on stderr
// Parses the options. For --help, and on an error, prints the text and returns false with *ret_status.
bool cli_parse(const struct command *command, int argc, char **argv, void *values, int *ret_first, void **ret_config,
	int usage_status, int *ret_status);
// For commands whose operands may be before, between or after the options: `words` receives all operands.
bool cli_parse_operands(const struct command *command, int argc, char **argv, void *values, struct option_list *words,
	int *ret_status);
// `run` of a command with subcommands: runs the subcommand named by argv[0], or prints --help.
int cli_run_part(const struct command *command, int argc, char **argv);
// Whether both paths exist and are the same file; NULL and "-" never are.
bool cli_is_same_file(const char *a, const char *b);
// Fails with "can't write PATH" if the output is one of the input files; false and *ret_status then.
bool cli_check_not_input(const char *path, const char *const *inputs, size_t n, int *ret_status);
// The format of an output file: `given` (--format) or, if that is NULL, the one of `by_suffix` ("html|json") that is the
// file's suffix, in any case (.htm is html); otherwise "text".
const char *cli_format(const char *given, const char *output, const char *by_suffix);
// Checks before the measurement that its output can be written, so that no measurement is lost: tests the file or its folder.
// path: NULL and "-" always succeed. The message begins with the option.
int cli_check_writable(const char *option, const char *path, struct wattle_error *reterr);
// Writes a finished buffer to `path` ("-" or NULL: stdout); 0, or EXIT_FAILED with a message. Never replaces a database or a
// span file, which may contain measurements.
int cli_write(const struct buf *out, const char *path);
// A buffer for a command's output; cli_finish writes it with cli_write and frees it.
struct buf cli_buf(void);
int cli_finish(struct buf *out, const char *path);

/* `wattle list --json`. */

extern const struct object_type list_type;

/* `wattle store status --json`. */

extern const struct object_type store_status_type; // data: struct pg_status
