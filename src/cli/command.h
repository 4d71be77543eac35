/* A command of the program: one file each, listed in commands.def. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "cli/option.h"

#include <stdbool.h>

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
