/* Puts rows into the order of a time in them, then of an id. Made for rows that nearly are: what some threads did, each in
 * order, side by side. Between room-mates. */
#pragma once

#include <stddef.h>

enum { SORT_NO_ID = -1 };

/* Rows of `size` bytes with an int64_t at each of the two offsets; SORT_NO_ID: rows of one time stay as they are. -ENOMEM,
 * and nothing was changed. */
int sort_rows(void *rows, size_t size, size_t n, size_t time_at, ptrdiff_t id_at);
