#pragma once

#include <stdbool.h>

// WATTLE_DISABLE=1: every call is a no-op that succeeds. Set-uid programs ignore the variable.
bool is_disabled_by_environment(void);
