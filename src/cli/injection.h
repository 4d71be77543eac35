/* Capture of unmodified programs: NVTX and ITT load a library that the environment names, and that library writes spans. */
#pragma once

#include "cli/measure.h"

enum { ASSIGNMENTS_MAX = 8 };

struct assignments { // what the command's environment has on top of ours, as target_start wants it
	char *items[ASSIGNMENTS_MAX + 1]; // owned, NULL-terminated
	size_t n;
};

// -ENOMEM.
int assignments_add(struct assignments *assignments, const char *name, const char *value, struct wattle_error *reterr);
void assignments_free(struct assignments *assignments);

/* What --nvtx and --itt ask for; nothing if neither was given. -ENOENT: the capture library is not where this program was
 * built or installed. Says on stderr when a library that the user's own environment names has to give way. */
int injection_assign(const struct measure_options *options, struct assignments *assignments, struct wattle_error *reterr);
// "--nvtx" or "--itt" if one of them was given, else NULL.
const char *injection_option(const struct measure_options *options);
