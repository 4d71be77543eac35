/* The metrics as a file for the textfile collector of node_exporter, replaced whole at each look: whoever reads it sees the figures of one
 * look or of the next, never half of them. */
#pragma once

#include "base/error.h"
#include "serve/view.h"

struct textfile {
	const char *path; // borrowed; NULL: none is wanted
	struct buf text;
	int failed;  // why the last try failed: negative errno; 0: it did not
	int lock_fd; // owned, where there is a path: of PATH.lock, which only this user can open
	bool is_written;
};

// -EINVAL: no name that is read; -EBUSY: another one writes it. With a sentence.
int textfile_open(struct textfile *file, const char *path, struct wattle_error *reterr);
void textfile_write(struct textfile *file, const struct view *view);
// Takes the file away if we wrote it: gauges of who has ended would be told for ever.
void textfile_close(struct textfile *file);
