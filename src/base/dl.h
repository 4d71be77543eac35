/* Loading of a library with a list of symbols, REQUIRED or OPTIONAL, each with older names as fallbacks. With an old driver
 * one metric is missing, not the device. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum dl_need { DL_OPTIONAL, DL_REQUIRED };

struct dl_symbol {
	const char *names[4]; // newest first, NULL after the last
	size_t offset;        // offset of the function pointer in the caller's table
	enum dl_need need;
};

// Opens the first of the NULL-terminated `libraries` that loads, and fills the function table; pass *ret_handle to dlclose.
// Returns -ENOENT without a library, -ENOSYS if a REQUIRED symbol is missing (named in *reterr). Missing OPTIONAL ones are
// NULL.
int dl_open(const char *const *libraries, const struct dl_symbol *symbols, size_t n_symbols, void *table,
	void **ret_handle, struct wattle_error *reterr);
