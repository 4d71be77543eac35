/* Where the program wattle is that belongs to this library. */
#pragma once

#include <stddef.h>

/* `given` (options.program), else beside the library: ../bin or ../../bin of its folder, cli in the build tree, the
 * installed place; else in $PATH, unless the program is set-uid. -ENOENT, -ENAMETOOLONG; -EACCES: `given` can't be
 * executed. */
int tracker_program_find(const char *given, char *ret_path, size_t size);
