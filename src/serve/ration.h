/* New series a minute: whoever scrapes keeps each for hours, however short its life was. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RATION_PARTS = 2,  // so many times as many new rows a minute as there may be rows at once
	RATION_LEAST = 20, // … and at least so many
};

struct ration {
	double left; // rows that may be new
	int64_t t_ns;
	bool has_begun;
};

static inline double ration_whole(size_t rows)
{
	return rows * RATION_PARTS > RATION_LEAST ? (double)(rows * RATION_PARTS) : RATION_LEAST;
}

static inline void ration_look(struct ration *ration, size_t rows, int64_t t_ns)
{
	const double whole = ration_whole(rows), minute_ns = 60e9;
	double grown = ration->has_begun ? ration->left + whole * (double)(t_ns - ration->t_ns) / minute_ns : whole;
	*ration = (struct ration){.left = grown < whole ? grown : whole, .t_ns = t_ns, .has_begun = true};
}

// False: there are enough of this minute.
static inline bool ration_take(struct ration *ration)
{
	if (ration->left < 1)
		return false;
	ration->left--;
	return true;
}
