/* A file each; all print the part in shell/ and then their tables. */
#pragma once

#include "cli/operands.h"

void completion_bash(const struct command *const *commands, size_t n, struct buf *out);
void completion_zsh(const struct command *const *commands, size_t n, struct buf *out);
void completion_fish(const struct command *const *commands, size_t n, struct buf *out);
