/* Where the spans of this process go while a tracker runs, and where those of the programs that it starts go. */
#pragma once

#include <stdbool.h>

struct tracker_ring {
	char *set;    // owned: what WATTLE_RING was set to; NULL: it was left alone
	char *before; // owned: what it was before; NULL: not set
	bool entered;
};

/* The writer goes to `ring`, and WATTLE_RING is set unless keep_environment. A program that is recorded from outside as
 * well, or by two trackers, gives its spans to who came last. */
void tracker_ring_enter(struct tracker_ring *where, const char *ring, bool keep_environment);
// As it was before, unless somebody else has come since.
void tracker_ring_leave(struct tracker_ring *where);
// In a forked child: only the memory.
void tracker_ring_forget(struct tracker_ring *where);
