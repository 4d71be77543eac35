#include "span/reader/reader.h"

#include "base/util.h"

#include <errno.h>

enum { SLOTS_FIRST = 16, SLOTS_SPARSE = 8 };

/* ---- one table ---- */

static size_t home(const struct range_table *table, uint64_t number)
{
	return (size_t)keyed_hash_u64(&table->key, number) & (table->n_slots - 1);
}

static struct range_slot *find_slot(const struct range_table *table, uint64_t number)
{
	for (size_t i = home(table, number);; i = (i + 1) & (table->n_slots - 1)) {
		struct range_slot *slot = &table->slots[i];
		if (slot->state == RANGE_NONE || slot->number == number)
			return slot;
	}
}

static struct range_slot *find_in(const struct range_table *table, uint64_t number)
{
	if (table->n == 0)
		return NULL;
	struct range_slot *slot = find_slot(table, number);
	return slot->state != RANGE_NONE ? slot : NULL;
}

static int resize(struct range_table *table, size_t n_slots)
{
	struct range_table other = *table;
	if (table->n_slots == 0)
		other.key = hash_key_new();
	other.n_slots = n_slots;
	other.slots = calloc_array(n_slots, sizeof(*other.slots));
	if (other.slots == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < table->n_slots; i++)
		if (table->slots[i].state != RANGE_NONE)
			*find_slot(&other, table->slots[i].number) = table->slots[i];
	free(table->slots);
	*table = other;
	return 0;
}

static int add_to(struct range_table *table, const struct range_slot *added)
{
	if (table->n >= table->n_slots / 2 && resize(table, table->n_slots > 0 ? 2 * table->n_slots : SLOTS_FIRST) < 0)
		return -ENOMEM;
	*find_slot(table, added->number) = *added;
	table->n++;
	return 0;
}

static void remove_from(struct range_table *table, const struct range_slot *slot)
{
	table->n--;
	size_t mask = table->n_slots - 1, hole = (size_t)(slot - table->slots);
	// Moves up following entries that were displaced from their own slot.
	for (size_t i = (hole + 1) & mask; table->slots[i].state != RANGE_NONE; i = (i + 1) & mask) {
		size_t way = (i - home(table, table->slots[i].number)) & mask;
		if (way < ((i - hole) & mask))
			continue;
		table->slots[hole] = table->slots[i];
		hole = i;
	}
	table->slots[hole].state = RANGE_NONE;
}

/* The threshold is far below that for growing, so that alternating additions and removals do not resize. If out of
 * memory, the table stays large. */
static void shrink(struct range_table *table)
{
	size_t n_slots = table->n_slots;
	while (n_slots > SLOTS_FIRST && table->n < n_slots / SLOTS_SPARSE)
		n_slots /= 2;
	if (n_slots < table->n_slots)
		(void)resize(table, n_slots);
}

/* ---- ranges of a process ---- */

void span_ranges_finish(struct span_ranges *ranges)
{
	free(ranges->open.slots);
	free(ranges->early.slots);
	*ranges = (struct span_ranges){0};
}

struct range_slot *span_ranges_find(struct span_ranges *ranges, uint64_t number)
{
	struct range_slot *slot = find_in(&ranges->open, number);
	return slot != NULL ? slot : find_in(&ranges->early, number);
}

int span_ranges_add(struct span_ranges *ranges, const struct range_slot *added)
{
	bool is_open = added->state == RANGE_OPEN;
	if (add_to(is_open ? &ranges->open : &ranges->early, added) < 0)
		return -ENOMEM;
	ranges->n_unstored += is_open;
	return 0;
}

void span_ranges_remove(struct span_ranges *ranges, struct range_slot *slot)
{
	bool is_open = slot->state == RANGE_OPEN;
	struct range_table *table = is_open ? &ranges->open : &ranges->early;
	ranges->n_unstored -= is_open && !slot->row.stored;
	remove_from(table, slot);
	shrink(table);
}

size_t span_ranges_end_round(struct span_ranges *ranges, uint32_t round)
{
	struct range_table *early = &ranges->early;
	size_t before = early->n;
	for (size_t i = 0; early->n > 0 && i < early->n_slots;) {
		struct range_slot *slot = &early->slots[i];
		if (slot->state != RANGE_NONE && slot->round != round)
			remove_from(early, slot); // another entry may have moved to this slot: check it again
		else
			i++;
	}
	shrink(early);
	return before - early->n;
}

size_t span_ranges_take_open(struct span_ranges *ranges, struct span_row *rows, size_t room)
{
	size_t n = 0, mask = ranges->open.n_slots - 1;
	for (size_t i = 0; n < room && ranges->n_unstored > 0 && i < ranges->open.n_slots; i++) {
		struct range_slot *slot = &ranges->open.slots[ranges->take_at++ & mask];
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
	while (*at < ranges->open.n_slots + ranges->early.n_slots) {
		size_t i = (*at)++;
		struct range_slot *slot = i < ranges->open.n_slots ? &ranges->open.slots[i]
								   : &ranges->early.slots[i - ranges->open.n_slots];
		if (slot->state != RANGE_NONE)
			return slot;
	}
	return NULL;
}
