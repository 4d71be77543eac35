/* Completions for shells, and what they ask the program for. */
#pragma once

#include "base/buf.h"
#include "cli/command.h"

// What `wattle --completion SHELL` prints and the build installs; false: no such shell.
bool completion_print(const char *shell, struct buf *out);
/* wattle --complete WORD…: the words behind `wattle` up to the cursor, the last of which (it may be empty) is to be completed. The
 * first line says what can stand there: "words", which follow, a line each, with a tab and a few words about it; a kind of file; "target
 * N": from the N-th word on it is another program's command line. */
void completion_at(const struct command *const *commands, size_t n, int n_words, char **words, struct buf *out);
