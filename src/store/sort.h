/* Puts rows into the order of a time in them. Between room-mates. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sort_key {
	int64_t t_ns, id; // by time, then by id
	size_t at;        // where the row stands now
};

// Rows of `size` bytes; keys[i].at is i. Both are changed. -ENOMEM.
int sort_rows(void *rows, size_t size, struct sort_key *keys, size_t n);
