/* What wattled gives away once it has opened what it needs, so that a fault in it is worth little: capabilities, new
 * programs, most system calls. What the kernel or a container does not let it give away is said and no reason to
 * stop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sandbox_report {
	char text[400]; // what was given away and what could not be, for the log
	bool is_whole;
};

// Room for so many descriptors, no core dumps, files that others can't write to. At start, while it is still allowed.
void sandbox_limit_resources(size_t n_descriptors);
/* keep_admin: CAP_SYS_ADMIN stays, which NVIDIA's driver asks for before it sets a limit. Of root's other rights
 * none is needed: the files it reads and writes are root's own. */
void sandbox_enter(bool keep_admin, struct sandbox_report *ret_report);
