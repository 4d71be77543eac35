/* Errors for users: a negative errno and one sentence.
 *
 * Inside a module, functions return 0 or a positive value for success and a negative errno for failure. If a user must act (a
 * file, an option, a sensor) they also take `struct wattle_error *reterr`. It may be NULL and is written once, at the level
 * that knows the name of the object. The sentence states what is wrong and what is valid. */
#pragma once

struct wattle_error {
	int code;       // negative errno, 0 without an error
	char text[600]; // one line, no newline at its end
};

// Writes *reterr (if not NULL) and returns `code`, for use as `return error_set(reterr, -EINVAL, "…");`.
int error_set(struct wattle_error *reterr, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
