/* Loading a library with a list of symbols, each REQUIRED or OPTIONAL, with older names to fall back to.
 * An old driver then loses one metric, not the device. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum dl_need { DL_OPTIONAL, DL_REQUIRED };

struct dl_symbol {
	const char *names[4]; // newest first, NULL after the last
	size_t offset;        // of the function pointer in the caller's table
	enum dl_need need;
};

// Opens the first of the NULL-terminated `libraries` that loads and fills the function table; *ret_handle goes to
// dlclose. -ENOENT: no library; -ENOSYS: a REQUIRED symbol is missing (named in *reterr). OPTIONAL ones are left NULL.
int dl_open(const char *const *libraries, const struct dl_symbol *symbols, size_t n_symbols, void *table,
	void **ret_handle, struct wattle_error *reterr);
