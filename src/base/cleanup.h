/* Automatic release of local variables at the end of their scope. Use only for locals that are initialised where they are
 * declared. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free_(void *pointer)
{
	free(*(void **)pointer);
}
static inline void cleanup_close_(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
static inline void cleanup_fclose_(FILE **file)
{
	if (*file != NULL)
		fclose(*file);
}
static inline void cleanup_dir_(DIR **dir)
{
	if (*dir != NULL)
		closedir(*dir);
}

#define wattle_cleanup_free __attribute__((cleanup(cleanup_free_)))
#define wattle_cleanup_close __attribute__((cleanup(cleanup_close_)))
#define wattle_cleanup_fclose __attribute__((cleanup(cleanup_fclose_)))
#define wattle_cleanup_dir __attribute__((cleanup(cleanup_dir_)))

// Moves a descriptor out of a wattle_cleanup_close local.
static inline int take_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}
