/* What NVML says of this machine's GPUs, as a file of cards for the fake library (tests/fakes/nvml/README.md). */
#pragma once

#include "base/buf.h"
#include "base/env.h"
#include "cli/pseudonym.h"

#include <stddef.h>

// Returns the number of GPUs described; 0 where there is no library, no driver or no GPU.
size_t capture_nvml(const struct wattle_env *env, struct pseudonyms *pseudonyms, struct buf *out);
