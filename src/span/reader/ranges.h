/* The ranges of one process that have begun and not ended. Begin and end may stand in the rings of different threads, which
 * are read one after the other: an end that is met before its begin waits until every ring has been read once more.
 *
 * Programs choose the numbers, so the tables are hashed by a key that they don't know, and shrink as ranges end: what a process
 * once had open, others need not pay for. */
#pragma once

#include "base/keyed_hash.h"
#include "span/row.h"

#include <stdbool.h>

enum range_state { RANGE_NONE, RANGE_OPEN, RANGE_EARLY_END };

struct range_slot {
	uint64_t number;
	enum range_state state;
	uint32_t round;      // RANGE_EARLY_END: when it was met
	struct span_row row; // of an early end only end_ns is known
};

struct range_table {
	struct range_slot *slots; // owned; open-addressed by number
	size_t n_slots, n;        // n of them in use
	struct hash_key key;      // made with the first slots
};

struct span_ranges {
	struct range_table open, early; // a number is in one of them at most
	size_t n_unstored;              // open ones that were not taken
	size_t take_at;                 // slot of `open` where the next search for those begins
};

void span_ranges_finish(struct span_ranges *ranges);
// What is known of a number: an open range or an early end; NULL: nothing. Valid until the next call.
struct range_slot *span_ranges_find(struct span_ranges *ranges, uint64_t number);
// `number` must not be known. -ENOMEM.
int span_ranges_add(struct span_ranges *ranges, const struct range_slot *added);
void span_ranges_remove(struct span_ranges *ranges, struct range_slot *slot);
// Every ring was read in `round`: an early end of an earlier round belongs to no range. How many were dropped.
size_t span_ranges_settle(struct span_ranges *ranges, uint32_t round);
// Copies open ranges that were not taken before.
size_t span_ranges_take_open(struct span_ranges *ranges, struct span_row *rows, size_t room);
// All that is known, one after the other, while nothing is added or removed; *at is 0 at first. NULL: there is no more.
struct range_slot *span_ranges_next(struct span_ranges *ranges, size_t *at);
