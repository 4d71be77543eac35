/* The manual page in roff, made from the tables of the commands. */
#pragma once

#include "base/buf.h"
#include "cli/command.h"

void manual_print(const struct command *const *commands, size_t n_commands, struct buf *out);
