/* The manual pages in roff, made from the tables of the commands. */
#pragma once

#include "base/buf.h"
#include "cli/command.h"

// wattle(1): what there is, and what holds for all commands.
void manual_print(const struct command *const *commands, size_t n_commands, struct buf *out);
// wattle-NAME(1), with the parts of a command of two words.
void manual_print_command(const struct command *command, struct buf *out);
