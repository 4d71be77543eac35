#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Opens the folder; with `make`, creates it and its parents if necessary. Returns a descriptor; -ENOENT without a message if it does
 * not exist and `make` is false; -EPERM if this is root and another user could change the journal; other negative errnos with a
 * message. */
int journal_folder_open(const char *path, bool make, struct wattle_error *reterr);
