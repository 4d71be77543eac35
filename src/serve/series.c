#include "serve/totals.h"

static const double NEW_PARTS = 2;                 // new series per minute, multiple of `most`; at least SERIES_NEW_MIN
static const int64_t SWAP_NS = 60 * NS_PER_S;      // minimum time between reassignments of rows
static const size_t SWAP_PART = 10;                // at most `most` / SWAP_PART + 1 rows are reassigned at once
static const double SWAP_RATIO = 2;                // a new consumer needs this multiple of the weakest row's use

static struct series *at(struct series_list list, size_t i)
{
	return (struct series *)((char *)list.rows + i * list.row_size);
}

size_t series_count(struct series_list list, enum series_state state)
{
	size_t n = 0;
	for (size_t i = 0; i < list.n; i++)
		n += at(list, i)->state == state;
	return n;
}

struct series *series_weakest(struct series_list list)
{
	struct series *weakest = NULL;
	for (size_t i = 0; i < list.n; i++)
		if (at(list, i)->state == SERIES_SHOWN && (weakest == NULL || at(list, i)->recent < weakest->recent))
			weakest = at(list, i);
	return weakest;
}

void series_leave(struct series *series, uint64_t sample, int64_t t_ns)
{
	series->state = SERIES_LEAVING;
	series->left_sample = sample;
	series->left_ns = t_ns;
}

void series_begin_sample(struct series_bounds *bounds, int64_t t_ns)
{
	const double whole = fmax(NEW_PARTS * (double)bounds->most, SERIES_NEW_MIN), minute_ns = 60e9;
	double grown = bounds->new_left + whole * (double)(t_ns - bounds->sampled_ns) / minute_ns;
	bounds->new_left = bounds->has_begun ? fmin(grown, whole) : whole;
	bounds->swaps_left = t_ns - bounds->swapped_ns >= SWAP_NS ? bounds->most / SWAP_PART + 1 : 0;
	bounds->sampled_ns = t_ns;
	bounds->has_begun = true;
}

bool series_take_new(struct series_bounds *bounds)
{
	if (bounds->new_left < 1)
		return false;
	bounds->new_left--;
	return true;
}

bool series_make_room(struct series_bounds *bounds, struct series_list list, double recent, uint64_t sample,
	int64_t t_ns)
{
	if (series_count(list, SERIES_SHOWN) < bounds->most)
		return true;
	struct series *loser = bounds->swaps_left > 0 ? series_weakest(list) : NULL;
	if (loser == NULL || !(recent > SWAP_RATIO * loser->recent))
		return false;
	series_leave(loser, sample, t_ns);
	bounds->swapped_ns = t_ns;
	bounds->swaps_left--;
	return true;
}
