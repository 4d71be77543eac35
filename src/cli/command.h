/* A command of the program: one file each, listed in commands.def. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/fields.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Command-line options from one table: parsing, --config files, --help (help.h) and the manual all read it. */

enum option_kind {
	OPTION_FLAG,     // bool
	OPTION_TEXT,     // const char *
	OPTION_LIST,     // struct option_list: may be given several times
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
	size_t offset;       // of the value in the caller's struct
	double least, most;  // NUMBER, INTEGER; DURATION in nanoseconds; both 0: no bounds
	const char *range;   // the bounds in words
	const char *choices; // CHOICE: "a|b|c"
};

/* Fills `values` (defaults are there already). Stops at the first word that is no option, or after "--"; its index is
 * *ret_first. -EINVAL with a sentence that names the option and says what would be right. `config` (may be NULL) is the
 * option that names a JSON file with any of the others: it is read first, so that the command line wins. What was read
 * from it lives as long as *ret_config, which the caller passes to option_config_free. */
int options_parse(const struct option *options, size_t n_options, const char *command, int argc, char **argv,
	void *values, int *ret_first, void **ret_config, struct wattle_error *reterr);
void option_config_free(void *config);
// Whether --help or -h is among the options; not where it is the value of one, or a word of the command behind them.
bool options_ask_help(const struct option *options, size_t n_options, int argc, char **argv);

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct command {
	const char *name;
	const char *usage;   // after "wattle NAME"
	const char *summary; // one line
	const char *details; // what else --help says, NULL: nothing
	const struct option *options;
	size_t n_options;
	const struct command *const *parts; // commands of two words that begin with this one ("cap list"); NULL: none
	size_t n_parts;
	int (*run)(const struct command *command, int argc, char **argv); // argv[0] is the word after the name
};

#define COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef COMMAND
extern const struct command command_cap_list, command_cap_get, command_cap_set, command_cap_reset, command_cap_tune;
extern const struct command command_store_init, command_store_status;

// "wattle: TEXT" on stderr; returns status.
int cli_fail(int status, const struct wattle_error *error);
int cli_no_memory(void); // says so; EXIT_FAILED
bool cli_wants_colour(const char *output); // NULL: standard output, if a terminal of somebody who does not mind
int cli_usage(const struct command *command, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void cli_warn(const char *text); // "wattle: warning: TEXT"
// Parses the options; when --help was asked or something is wrong it prints and returns false, with *ret_status.
bool cli_parse(const struct command *command, int argc, char **argv, void *values, int *ret_first, void **ret_config,
	int usage_status, int *ret_status);
// For commands whose words may stand before, between or after the options: words gets them all.
bool cli_parse_words(const struct command *command, int argc, char **argv, void *values, struct option_list *words,
	int *ret_status);
// `run` of a command that has parts: the part that argv[0] names, or its --help.
int cli_run_part(const struct command *command, int argc, char **argv);
// Whether both are there and one file; NULL and "-" are none.
bool cli_is_same_file(const char *a, const char *b);
// "can't write PATH" where it is one of the files that are read; false and *ret_status then.
bool cli_spares(const char *path, const char *const *inputs, size_t n, int *ret_status);
// What can't be written at the end would be a measurement lost: the file, or its folder, is looked at before it starts.
// path: NULL and "-" are well. A sentence that begins with the option.
int cli_check_writable(const char *option, const char *path, struct wattle_error *reterr);
// Prints a finished buffer to `path` ("-" or NULL: stdout); 0 or EXIT_FAILED with a message. Measurements stay: a database or
// a span file is not replaced.
int cli_write(const struct buf *out, const char *path);
// What a command prints: a buffer, and its end, which is cli_write and frees it.
struct buf cli_buf(void);
int cli_finish(struct buf *out, const char *path);

/* `wattle list --json`. */

extern const struct object_type list_type;

/* `wattle store status --json`. */

extern const struct object_type store_status_type; // data: struct pg_status
