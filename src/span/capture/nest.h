/* Which owner (NVTX domain, ITT domain) pushed what in this thread: the owners' stacks may cross, the ring has one. Kept as
 * runs of equal owners in a few bytes of static thread storage: no allocation and no lock, neither in a thread's destructors
 * nor in a signal handler (one that interrupts a push may have its range taken for the other owner's, no more). Where more
 * runs are open than fit, owners are no longer told apart until they are closed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { NEST_OWNERS = 0x8000 };

// Level of the new one in its owner's stack, from 0. silent: it is not recorded, its end will not be either.
int nest_push(uint16_t owner, bool silent);

struct nest_end {
	int level;        // of what ends, in its owner's stack
	uint32_t n_inner; // recorded ones that are open inside it
	bool silent;
};
// Ends the owner's innermost. False: it has none.
bool nest_pop(uint16_t owner, struct nest_end *ret_end);
