/* Errors that a person reads: a negative errno and one sentence.
 *
 * Inside a room, functions return 0 or positive for success and a negative errno for failure. Where a person must
 * act (a file, an option, a sensor) they also take `struct wattle_error *reterr`, which may be NULL and is written
 * once, at the depth that knows the name of the thing. The sentence says what is wrong and what would be right. */
#pragma once

struct wattle_error {
	int code;       // negative errno, 0 when nothing happened
	char text[600]; // one line, no newline at its end
};

// Writes *reterr (when not NULL) and returns `code`, so that `return error_set(reterr, -EINVAL, "…");` reads well.
int error_set(struct wattle_error *reterr, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
