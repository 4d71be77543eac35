/* A file, read in pieces, so that one of any length takes little memory. */
#pragma once

#include "store/csv.h"

#include <stdbool.h>

struct csv_file {
	struct csv csv; // over the whole records in text
	int fd;         // owned
	char *text;     // owned
	size_t size, capacity;
	size_t end; // of the whole records: a NUL stands there instead of `kept`
	char kept;
	bool all_read;
};

// -ENOENT …; close it in any case.
int csv_file_open(struct csv_file *file, const char *path, struct wattle_error *reterr);
// As csv_next; the fields live until the next call. -EINVAL also for bytes that are no text and for endless lines.
int csv_file_next(struct csv_file *file, char **fields, int max, struct wattle_error *reterr);
void csv_file_close(struct csv_file *file);
