/* The two ways in which a device is changed, both with its entry in the journal before anything is written: to a limit,
 * and back. Called by who has the device's lease or byte 0 of its lock. */
#pragma once

#include "cap/journal.h"

/* Journals `next`, writes it, reads it back, journals what was read. `now`: the registers as they are. On failure what
 * was there is put back, or the sentence says that it could not be (then the journal still knows both). */
int change_apply(const struct journal *journal, enum journal_kind kind, struct journal_entry *entry,
	struct cap_device *device, const struct cap_setting *now, const struct cap_setting *next,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr);
/* Puts back what the entry says was there before, in the registers that hold what was or was about to be set, and reads
 * it back. The others were changed by somebody else and stay: was_foreign. Returns how many registers were written. */
int change_undo(const struct journal_entry *entry, struct cap_device *device, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr);

// Whether a register holds neither what was there before nor what is or is about to be set. Never on what can't be read
// back.
bool change_is_foreign(const struct journal_entry *entry, const struct cap_device *device,
	const struct cap_setting *now);
// Whether all registers of the first have the same value in the second. Both as they were read: to the last digit.
bool change_is_same(const struct cap_setting *one, const struct cap_setting *other);
// "300 W", "1410 MHz", "no limit"
enum { AMOUNT_SIZE = 40 };
const char *change_amount(const struct cap_device *device, const struct cap_setting *setting, char out[AMOUNT_SIZE]);
