/* wattle sensors --calibrate-idle: the idle power of every measured domain, stored only if the machine was idle all the
 * time. */
#pragma once

#include "base/env.h"

/* Wants `seconds` of idleness in one piece and waits for them up to three times as long; says on stdout what was stored
 * or on stderr what is busy. EXIT_DONE or EXIT_FAILED. */
int calibrate_idle(const struct wattle_env *env, double seconds);
