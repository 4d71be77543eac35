/* What an owner and its guard say to each other: one order, one answer, a struct journal_entry whenever the journal gets
 * one, and GUARD_DONE. Both are the same program,
 * started a moment apart; `size` finds out where they are not (a new version was installed in between). */
#pragma once

#include "cap/owner.h"

enum { GUARD_PIDFD, GUARD_JOURNAL, GUARD_FDS }; // descriptors that go with the order
enum { GUARD_DONE = 'd' };

struct guard_order {
	uint32_t size;
	enum cap_what what;
	struct cap_keeper keeper; // whom to wait for
	int64_t for_ns;           // 0: wait for the keeper's death; else: set `value` on the device `id` for so long
	double value;
	struct cap_owner owner; // whom people know, of that
	char id[CAP_ID_SIZE];
	char journal_path[600]; // for messages
};

struct guard_answer {
	int32_t code; // 0 or negative errno, then why in `text`
	struct cap_outcome outcome;
	char text[600];
};
