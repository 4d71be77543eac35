/* The rows of a sub-tracking file one by one, CSV or SQLite by its ending. Between room-mates. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct sub_tracking_row { // a start or a stop of a block; texts live until the next row
	int64_t pid;
	const char *name;
	bool is_stop;
	double time_s;
	const char *time_text; // as the CSV has it; NULL: SQLite
};

// Ends the reading by a negative errno, with a sentence if it is not -ENOMEM.
typedef int (*sub_tracking_take)(void *data, const struct sub_tracking_row *row, struct wattle_error *reterr);

/* Hands over all rows in the order of the file. -ENOENT …, -EINVAL with a sentence that names the line, and what `take`
 * returns. */
int sub_tracking_each(const char *path, sub_tracking_take take, void *data, struct wattle_error *reterr);

// ".csv" or ".sqlite", the ending by which such a file is known; NULL: neither.
const char *sub_tracking_ending(const char *path);
