/* Completions for shells, and what they ask the program for. */
#pragma once

#include "base/buf.h"
#include "cli/command.h"

// What `wattle --completion SHELL` prints and the build installs; false: no such shell.
bool completion_print(const char *shell, const struct command *const *commands, size_t n, struct buf *out);
// wattle --complete devices: names that `wattle cap` takes, a line each. Nothing where there are none; never a message.
void completion_list(const char *what, struct buf *out);
