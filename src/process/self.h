/* This process itself. */
#pragma once

#include <stdint.h>

// Resident memory, out of the real /proc whatever stands for that; VALUE_MISSING where it can't be read.
int64_t self_rss_bytes(void);
