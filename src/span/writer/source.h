/* Where the spans of this process go: to the recorder that WATTLE_RING names or that the process started itself, else to the
 * file of WATTLE_SPANS, else nowhere. A session is one such place for one time; span_writer_state is its number. */
#pragma once

#include "span/ring.h"

#include <stdbool.h>

struct span_source {
	bool is_file; // that of WATTLE_SPANS; else the recorder at this address:
	struct ring_address ring;
};

// false: the session is over.
bool span_source_get(int session, struct span_source *ret_source);
// Nobody answers any more, or the file can't be written for good: the whole process goes to the next place.
void span_source_failed(int session);
// WATTLE_SPANS; once, before any session.
void span_source_set_file(const char *path);
/* Ends the session, if there is one, and begins the next: with the recorder at this address, NULL: with the file, where there is one.
 * -EAGAIN: another thread is just doing so. */
int span_source_begin(const struct ring_address *ring);
// In a forked child.
void span_source_forked(void);

// Of WATTLE_SPANS, absolute, with %p still in it.
const char *span_source_path(void);
// Zeros where it can't be read.
const uint8_t *span_source_boot_id(void);
