/* Merges spans that are too short to be visible with their neighbours, with the finest resolution that the number of
 * items allows. Merged spans are shorter than that resolution, so the picture looks like a complete one at a lower
 * zoom. */
#include "analysis/chart/lanes.h"

static double length_s(const struct chart_item *item)
{
	return item->to_s - item->from_s;
}

static bool joins(const struct chart_item *before, const struct chart_item *item, double finest_s)
{
	return item->to_s - before->from_s <= finest_s && !item->is_open && !before->is_open;
}

struct longest { // the longest span in the current item
	double s;
};

static void join(struct chart_item *before, const struct chart_item *item, struct longest *longest)
{
	if (length_s(item) > longest->s) {
		longest->s = length_s(item);
		before->span = item->span;
	}
	if (before->block != item->block)
		before->block = UINT32_MAX;
	before->to_s = item->to_s;
	before->count += item->count;
	before->energy_j += item->energy_j;
}

static size_t count_joined(const struct chart_lane *lane, double finest_s)
{
	size_t n = 0;
	struct chart_item last = {0};
	for (size_t i = 0; i < lane->n_items; i++) {
		const struct chart_item *item = &lane->items[i];
		if (n > 0 && joins(&last, item, finest_s)) {
			last.to_s = item->to_s;
			continue;
		}
		last = *item;
		n++;
	}
	return n;
}

static void join_lane(struct chart_lane *lane, double finest_s)
{
	size_t n = 0;
	struct longest longest = {0};
	for (size_t i = 0; i < lane->n_items; i++) {
		const struct chart_item item = lane->items[i];
		if (n > 0 && joins(&lane->items[n - 1], &item, finest_s)) {
			join(&lane->items[n - 1], &item, &longest);
			continue;
		}
		longest.s = length_s(&item);
		lane->items[n++] = item;
	}
	lane->n_items = n;
}

static size_t count_all(const struct charts *charts, double finest_s)
{
	size_t n = 0;
	for (size_t k = 0; k < charts->n_lanes; k++)
		n += count_joined(&charts->lanes[k], finest_s);
	return n;
}

void lanes_merge(struct charts *charts, size_t max_items)
{
	double finest_s = charts->axis.length_s / 1e6;
	if (charts->n_items <= max_items || !(finest_s > 0))
		return;
	while (finest_s < charts->axis.length_s && count_all(charts, finest_s) > max_items)
		finest_s *= 1.5;
	charts->n_items = 0;
	for (size_t k = 0; k < charts->n_lanes; k++) {
		join_lane(&charts->lanes[k], finest_s);
		charts->n_items += charts->lanes[k].n_items;
	}
}
