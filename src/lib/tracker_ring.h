/* Where the spans of this process go while trackers run, and where those of the programs that it starts go. */
#pragma once

#include <stdbool.h>

struct tracker_ring {
	struct tracker_ring *below; // who came before and is still there
	char *ring;                 // owned: NULL: not entered
	char *ring_before;          // owned: where spans went; NULL: nowhere
	char *environment_before;   // owned: what WATTLE_RING was; NULL: not set
	bool is_in_environment;
};

/* The writer goes to `ring`, and WATTLE_RING is set unless keep_environment. A program that is recorded from outside as
 * well, or by several trackers, gives its spans to who came last. */
void tracker_ring_enter(struct tracker_ring *own, const char *ring, bool keep_environment);
// As if it had never come, in whatever order they leave.
void tracker_ring_leave(struct tracker_ring *own);
// In a forked child: only the memory.
void tracker_ring_forget(struct tracker_ring *own);
