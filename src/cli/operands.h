/* What the words of a command line stand for, read out of the tables that --help is made of: the argument of an option ("FILE",
 * "PID"), and the words of a usage ("DEVICE WATTS [-- CMD…]"). The completions of all shells are made of it. */
#pragma once

#include "cli/command.h"

#include <stdbool.h>
#include <stddef.h>

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
