/* Ranges that are open by what the program calls them: a domain and an id of its own (ITT's overlapped tasks, regions and
 * frames). Lock-free, bounded; a range beyond the bound is not recorded. */
#pragma once

#include "span/capture/itt_abi.h"

#include <stdint.h>

enum itt_range_kind { ITT_OVERLAPPED, ITT_REGION, ITT_FRAME, ITT_EVENT };

uint64_t itt_range_key(enum itt_range_kind kind, const void *domain, const struct itt_id *id);
void itt_range_begin(uint64_t key, const char *name);
void itt_range_end(uint64_t key); // one that is not open: nothing
