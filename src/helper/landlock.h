/* Restricts the files that the calling thread and its future threads can open (Landlock, Linux 5.13). Open files stay usable. */
#pragma once

#include <stddef.h>

enum file_use {
	FILES_READ,   // read a file, or all files below a folder
	FILES_WRITE,  // read and write existing files: registers, device files
	FILES_OWN,    // a folder: create, write, rename and remove files and folders in it
	FILES_REMOVE, // a folder: remove files from it
};

struct landlock {
	int fd;  // owned: the ruleset; -1: the kernel has no Landlock
	int abi; // its version; negative errno
	/* The first rule that could not be added, for an existing path. Without its rule a path is closed; an allowed path that is
	 * closed can leave a power limit set that nobody can restore. */
	int error; // positive errno; 0: there is none
	char failed_path[128];
};

void landlock_begin(struct landlock *ret_landlock);
// Adds a rule; ignores a missing file and records any other failure. at_fd: folder that `path` is relative to and cannot leave; AT_FDCWD: as in open(2).
void landlock_allow(struct landlock *landlock, int at_fd, const char *path, enum file_use use);
/* Enforces the rules and closes *landlock. Returns 0 or a positive errno; ENOSYS, EOPNOTSUPP: the kernel has no Landlock. Enforces nothing
 * and returns landlock->error if a rule could not be added. */
int landlock_enforce(struct landlock *landlock);
