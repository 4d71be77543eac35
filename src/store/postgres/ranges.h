/* A set of numbers as ranges, written as PostgreSQL's int8multirange is: which spans have been sent. Those that end later than
 * others which began later make the holes, so there are about as many ranges as spans that run. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	int64_t from, to; // both belong to it
};

struct ranges { // ascending, never touching each other
	struct range *items; // owned
	size_t n, capacity;
};

int ranges_parse(const char *text, struct ranges *ret_ranges); // "{[1,5),[7,9)}"; NULL: empty. -EINVAL, -ENOMEM
void ranges_write(const struct ranges *ranges, struct buf *out);
void ranges_finish(struct ranges *ranges);
int ranges_add(struct ranges *ranges, int64_t number); // quick at the end. -EINVAL: the largest one; -ENOMEM
bool ranges_have(const struct ranges *ranges, int64_t number);
