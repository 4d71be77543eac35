/* Where an export goes: a file that appears whole or not at all, a pipe or device, or stdout; written in pieces, so
 * that a run of any length takes little memory. Between room-mates. */
#pragma once

#include "base/buf.h"
#include "store/place.h"

struct export_out {
	struct buf text; // append here, then call export_out_more
	struct place place;
	int fd; // borrowed from place, stdout, or owned
	bool owned;
	int failed; // negative errno, sticky
};

int export_out_open(struct export_out *out, const char *path, bool overwrite, struct wattle_error *reterr);
// Passes on what has come together, now and then.
void export_out_more(struct export_out *out);
// The rest, and the name. Closes in any case.
int export_out_close(struct export_out *out, const char *path, struct wattle_error *reterr);
// -EEXIST with a sentence if something stands there and may not be replaced.
int export_check_free(const char *path, bool overwrite, struct wattle_error *reterr);
