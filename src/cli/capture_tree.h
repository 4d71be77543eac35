/* Copies chosen files of one root (/sys or /proc) into a folder, so that the copy has the same shape: a link on the way to
 * a file becomes a link, what it leads to a folder of its own. Nothing outside of the root is followed or read. */
#pragma once

#include "cli/pseudonym.h"

#include <stdbool.h>
#include <stddef.h>

struct capture_tree {
	const char *name; // "sys": of the folder
	int root_fd;      // borrowed
	int out_fd;       // owned: the folder
	struct pseudonyms *pseudonyms;
	struct buf *unreadable; // a line a file: "sys/path<TAB>mode<TAB>why"
	size_t n_files, n_bytes, n_links, n_unreadable, n_left_out;
};

// How the contents of a file are changed before they are saved.
typedef void (*capture_filter)(struct pseudonyms *pseudonyms, const char *text, size_t size, struct buf *out);

/* All files that match `folder`/`file`, both with shell patterns. `sleeper`: file below `folder` with the runtime status
 * of a device that reading would wake; NULL: none. `filter` NULL: what names the machine is replaced. `wanted` NULL: all
 * folders. */
struct capture_request {
	const char *folder, *file, *sleeper;
	capture_filter filter;
	bool (*wanted)(int root_fd, const char *folder);
};
void capture_tree_add(struct capture_tree *tree, const struct capture_request *request);
