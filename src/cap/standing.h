/* What limits that stay have in common with leases that are kept, and with those for some time. */
#pragma once

#include "cap/journal.h"

/* Gives the entry of a new standing limit what the one that there is hands on: what was there before the first, and its
 * owner. `now`: the registers before the new one. *ret_set: what the old one had set; empty: none that counts. */
int standing_inherit(const struct journal *journal, const char *stem, const struct cap_device *device,
	const struct cap_setting *now, struct journal_entry *entry, struct cap_setting *ret_set,
	struct wattle_error *reterr);
// Ends a limit for some time before its hour, and nothing else. 1: it had to; 0: there was none.
int standing_end_timed(const struct wattle_env *env, const struct cap_device *device, struct wattle_error *reterr);
