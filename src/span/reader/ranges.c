#include "span/reader/ranges.h"

#include "base/util.h"

#include <errno.h>

enum { SLOTS_FIRST = 16 };

// Programs count their ranges: neighbours in number must not be neighbours in the table.
static size_t home(const struct span_ranges *ranges, uint64_t number)
{
	uint64_t h = number * 0x9e3779b97f4a7c15;
	return (size_t)(h ^ h >> 32) & (ranges->n_slots - 1);
}

static struct range_slot *find_place(struct span_ranges *ranges, uint64_t number)
{
	for (size_t i = home(ranges, number);; i = (i + 1) & (ranges->n_slots - 1)) {
		struct range_slot *slot = &ranges->slots[i];
		if (slot->state == RANGE_NONE || slot->number == number)
			return slot;
	}
}

void span_ranges_finish(struct span_ranges *ranges)
{
	free(ranges->slots);
	*ranges = (struct span_ranges){0};
}

struct range_slot *span_ranges_find(struct span_ranges *ranges, uint64_t number)
{
	if (ranges->n == 0)
		return NULL;
	struct range_slot *slot = find_place(ranges, number);
	return slot->state != RANGE_NONE ? slot : NULL;
}

static int grow(struct span_ranges *ranges)
{
	if (ranges->n < ranges->n_slots / 2)
		return 0;
	struct span_ranges larger = *ranges;
	larger.n_slots = ranges->n_slots > 0 ? 2 * ranges->n_slots : SLOTS_FIRST;
	larger.slots = calloc_array(larger.n_slots, sizeof(*larger.slots));
	if (larger.slots == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < ranges->n_slots; i++)
		if (ranges->slots[i].state != RANGE_NONE)
			*find_place(&larger, ranges->slots[i].number) = ranges->slots[i];
	free(ranges->slots);
	*ranges = larger;
	return 0;
}

int span_ranges_add(struct span_ranges *ranges, const struct range_slot *added)
{
	if (grow(ranges) < 0)
		return -ENOMEM;
	*find_place(ranges, added->number) = *added;
	ranges->n++;
	ranges->n_early += added->state == RANGE_EARLY_END;
	ranges->n_unstored += added->state == RANGE_OPEN;
	return 0;
}

void span_ranges_remove(struct span_ranges *ranges, struct range_slot *slot)
{
	ranges->n--;
	ranges->n_early -= slot->state == RANGE_EARLY_END;
	ranges->n_unstored -= slot->state == RANGE_OPEN && !slot->row.stored;
	size_t mask = ranges->n_slots - 1, hole = (size_t)(slot - ranges->slots);
	// Those behind it that only stand there because their own place was taken move up.
	for (size_t i = (hole + 1) & mask; ranges->slots[i].state != RANGE_NONE; i = (i + 1) & mask) {
		size_t way = (i - home(ranges, ranges->slots[i].number)) & mask;
		if (way < ((i - hole) & mask))
			continue;
		ranges->slots[hole] = ranges->slots[i];
		hole = i;
	}
	ranges->slots[hole].state = RANGE_NONE;
}

size_t span_ranges_settle(struct span_ranges *ranges, uint32_t round)
{
	size_t before = ranges->n;
	for (size_t i = 0; ranges->n_early > 0 && i < ranges->n_slots;) {
		struct range_slot *slot = &ranges->slots[i];
		if (slot->state == RANGE_EARLY_END && slot->round != round)
			span_ranges_remove(ranges, slot); // another may have moved up: this place is looked at again
		else
			i++;
	}
	return before - ranges->n;
}

size_t span_ranges_take_open(struct span_ranges *ranges, struct span_row *rows, size_t room)
{
	size_t n = 0;
	for (size_t i = 0; n < room && ranges->n_unstored > 0 && i < ranges->n_slots; i++) {
		struct range_slot *slot = &ranges->slots[i];
		if (slot->state != RANGE_OPEN || slot->row.stored)
			continue;
		slot->row.stored = true;
		ranges->n_unstored--;
		rows[n++] = slot->row;
	}
	return n;
}

struct range_slot *span_ranges_next(struct span_ranges *ranges, size_t *at)
{
	while (*at < ranges->n_slots) {
		struct range_slot *slot = &ranges->slots[(*at)++];
		if (slot->state != RANGE_NONE)
			return slot;
	}
	return NULL;
}
