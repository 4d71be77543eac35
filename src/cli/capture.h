/* wattle sensors --capture DIR: this machine as a tree for tests, without what names it. */
#pragma once

#include "base/env.h"

// Says on stdout what was saved. EXIT_DONE, or EXIT_FAILED with a message.
int capture_machine(const struct wattle_env *env, const char *folder);
