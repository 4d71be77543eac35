/* What wattled gives away once it has opened what it needs, so that a fault in it is worth little: capabilities, new
 * programs, most system calls, all files but those it works with. If the kernel or a container refuses one of these, the report names
 * it and wattled runs without it. Rules for files that are only partly accepted are an error: they could close the journal of limits. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct cap_devices;
struct wattle_env;

struct sandbox_report {
	char text[400]; // what was given away and what could not be, for the log
	bool is_whole;
};

// Room for so many descriptors, no core dumps, files that others can't write to. At start, while it is still allowed.
void sandbox_limit_resources(size_t n_descriptors);
struct sandbox_needs {
	const struct wattle_env *env;
	const struct cap_devices *devices; // their registers stay writable
	/* The devices include an NVIDIA GPU: keep CAP_SYS_ADMIN, which its driver requires for setting a limit, and access to the driver's
	 * device files. Nothing else needs a capability: root owns the files that wattled reads and writes. */
	bool has_nvidia;
	const char *socket; // removed at the end by this process; "": none
};
/* Create the folder of the journal first: Landlock needs existing files. Negative errno with a sentence: a path that exists got no Landlock
 * rule; the process is not sandboxed and must not serve. */
int sandbox_enter(const struct sandbox_needs *needs, struct sandbox_report *ret_report, struct wattle_error *reterr);
