/* Matches the code blocks of several sessions. Internal to this folder. */
#pragma once

#include "analysis/compare/compare.h"

struct block_warnings {
	struct arena *arena;
	const char **texts; // in the arena
	size_t n, capacity;
};
int block_warn(struct block_warnings *warnings, const char *format, ...)
	__attribute__((format(printf, 2, 3))); // -ENOMEM

/* (*ret_blocks)[s][k] for all sessions s is one block, (*ret_names)[k] its name: "a.py:7 -> a.py:9" where the names
 * differ. `first` is the session with which the others are compared. -EINVAL with a message, -ENOMEM. */
int block_match(const struct compare_session *sessions, size_t n_sessions, size_t first,
	const struct saved_block ****ret_blocks, const char ***ret_names, struct block_warnings *warnings,
	struct wattle_error *reterr);
