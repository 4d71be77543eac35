/* Self-documentation of the program: --help, the manual, completions. */
#pragma once

#include "base/buf.h"
#include "cli/command.h"

#include <stdbool.h>
#include <stddef.h>

/* Text of --help, wrapped to lines. */

// Columns of the terminal on standard output, limited to a readable width; that limit if there is no terminal.
size_t help_columns(void);
// Wraps words to lines of `columns`. An empty line starts a paragraph; a line that begins with a blank is kept as it is.
void help_paragraphs(const char *text, size_t columns, struct buf *out);
void options_help(const struct option *options, size_t n_options, size_t columns, struct buf *out);

/* The examples of examples.def, by command. */

struct example {
	const char *command, *line, *meaning;
};
// Returns the next example of a command from *at on; NULL: no more. of_parts: for "cap", also examples of "cap set". Start with
// *at = 0.
const struct example *example_next(const char *command, bool of_parts, size_t *at);

/* The kinds of words on a command line, read from the tables of --help: the argument of an option ("FILE", "PID"), and the
 * operands of a usage ("DEVICE WATTS [-- CMD…]"). The completions of all shells use them. */

enum word_kind {
	WORD_ANY,
	WORD_FILE,
	WORD_FOLDER,
	WORD_RUN,
	WORD_NAMED_RUN,
	WORD_ONNX,
	WORD_JSON,
	WORD_DEVICE,
	WORD_PID
};

enum { OPERANDS_MAX = 4 };
struct operands {
	struct operand {
		char name[32];
		enum word_kind kind;
	} at[OPERANDS_MAX];
	size_t n;
	bool repeats;                                                                 // the last operand may be repeated
	enum { TAKES_NO_COMMAND, TAKES_COMMAND, TAKES_COMMAND_AFTER_DASHES } command; // CMD follows the operands
};

// Kind of the argument of an option; -ENOENT: the word is not in the vocabulary and needs a row there.
int word_kind_of(const char *name);
struct operands operands_of(const struct command *command);

// The help of an option shortened to one line, without a newline.
void option_summary(const struct option *option, struct buf *out);

/* Completions for shells, and the queries of the completion scripts. */

// Writes the script that `wattle --completion SHELL` prints and the build installs; false: unknown shell.
bool completion_print(const char *shell, struct buf *out);
/* wattle --complete WORD…: the words after `wattle` up to the cursor; the last one (it may be empty) is to be completed. The
 * first output line is the kind of candidates: "words", followed by one line per word with a tab and a short description; a
 * kind of file; or "target N": from word N on, the words are another program's command line. */
void completion_at(const struct command *const *commands, size_t n, int n_words, char **words, struct buf *out);

/* The JSON documents of schemas.def, in their order (schema.c). */

// NULL: no more.
const struct object_type *schema_document(size_t i, const char **ret_name);

/* The manual pages in roff, generated from the tables of the commands. */

// wattle(1): overview, and what applies to all commands.
void manual_print(const struct command *const *commands, size_t n_commands, struct buf *out);
// wattle-NAME(1), including subcommands.
void manual_print_command(const struct command *command, struct buf *out);
