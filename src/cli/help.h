/* What the program says of itself: --help, the manual, completions. */
#pragma once

#include "base/buf.h"
#include "cli/command.h"

#include <stdbool.h>
#include <stddef.h>

/* What --help says, in lines that fit. */

// Columns of the terminal on standard output, at most those of an easily read line; these elsewhere.
size_t help_columns(void);
// Words filled into lines of `columns`. An empty line begins a paragraph, a line that begins with a blank stands as it is.
void help_paragraphs(const char *text, size_t columns, struct buf *out);
void options_help(const struct option *options, size_t n_options, size_t columns, struct buf *out);

/* The examples of examples.def, by command. */

struct example {
	const char *command, *line, *meaning;
};
// The next one of a command from *at on; NULL: no more. of_parts: of "cap set" for "cap" as well. Begin with *at = 0.
const struct example *example_next(const char *command, bool of_parts, size_t *at);

/* What the words of a command line stand for, read out of the tables that --help is made of: the argument of an option ("FILE",
 * "PID"), and the words of a usage ("DEVICE WATTS [-- CMD…]"). The completions of all shells are made of it. */

enum word_kind {
	WORD_ANYTHING,
	WORD_FILE,
	WORD_FOLDER,
	WORD_RUN,
	WORD_NAMED_RUN,
	WORD_ONNX,
	WORD_JSON,
	WORD_DEVICE,
	WORD_PID
};

enum { OPERANDS_MOST = 4 };
struct operands {
	struct operand {
		char name[32];
		enum word_kind kind;
	} at[OPERANDS_MOST];
	size_t n;
	bool repeats;                                                                 // the last one may come again
	enum { TAKES_NO_COMMAND, TAKES_COMMAND, TAKES_COMMAND_AFTER_DASHES } command; // CMD comes after them
};

// Of the argument of an option; -ENOENT: a word that is not in the vocabulary, which takes a row there then.
int word_kind_of(const char *name);
struct operands operands_of(const struct command *command);

// The help of an option as a few words on one line, without a newline.
void option_summary(const struct option *option, struct buf *out);

/* Completions for shells, and what they ask the program for. */

// What `wattle --completion SHELL` prints and the build installs; false: no such shell.
bool completion_print(const char *shell, struct buf *out);
/* wattle --complete WORD…: the words behind `wattle` up to the cursor, the last of which (it may be empty) is to be completed. The
 * first line says what can stand there: "words", which follow, a line each, with a tab and a few words about it; a kind of file; "target
 * N": from the N-th word on it is another program's command line. */
void completion_at(const struct command *const *commands, size_t n, int n_words, char **words, struct buf *out);

/* The JSON documents of schemas.def, in their order (schema.c). */

// NULL: no more.
const struct object_type *schema_document(size_t i, const char **ret_name);

/* The manual pages in roff, made from the tables of the commands. */

// wattle(1): what there is, and what holds for all commands.
void manual_print(const struct command *const *commands, size_t n_commands, struct buf *out);
// wattle-NAME(1), with the parts of a command of two words.
void manual_print_command(const struct command *command, struct buf *out);
