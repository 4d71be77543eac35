/* Reading CSV (RFC 4180): quoted fields with commas, quotes and line breaks in them, either kind of line end, a byte
 * order mark. The text is cut up in place. */
#pragma once

#include "base/error.h"

#include <stddef.h>

struct csv {
	char *at;         // next byte; the text is the caller's
	const char *path; // for messages; borrowed
	int line;         // of the record that was read last, from 1
	int next_line;
};

void csv_init(struct csv *csv, char *text, const char *path); // the text is NUL-terminated
/* The fields of the next record that is not an empty line; how many there are, 0 at the end, -EINVAL with a sentence
 * that names the line: more than `max` fields, or a quote that is never closed. */
int csv_next(struct csv *csv, char **fields, int max, struct wattle_error *reterr);
