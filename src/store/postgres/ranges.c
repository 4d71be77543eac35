#include "store/postgres/send.h"

#include "base/search.h"
#include "base/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static int insert(struct ranges *ranges, size_t at, struct range range)
{
	struct range *larger = array_reserve(ranges->items, ranges->n, &ranges->capacity, sizeof(*larger), 64);
	if (larger == NULL)
		return -ENOMEM;
	ranges->items = larger;
	memmove(larger + at + 1, larger + at, (ranges->n - at) * sizeof(*larger));
	larger[at] = range;
	ranges->n++;
	return 0;
}

static bool ends_before(const void *item, const void *key)
{
	return ((const struct range *)item)->to < *(const int64_t *)key;
}

// Index of the first range that ends at or after the number; n: none.
static size_t find(const struct ranges *ranges, int64_t number)
{
	return search_first(ranges->items, ranges->n, sizeof(*ranges->items), &number, ends_before);
}

bool ranges_have(const struct ranges *ranges, int64_t number)
{
	size_t at = find(ranges, number);
	return at < ranges->n && ranges->items[at].from <= number;
}

static void join_next(struct ranges *ranges, size_t at)
{
	if (at + 1 >= ranges->n || ranges->items[at].to < ranges->items[at + 1].from - 1)
		return;
	ranges->items[at].to = ranges->items[at + 1].to;
	memmove(ranges->items + at + 1, ranges->items + at + 2, (ranges->n - at - 2) * sizeof(*ranges->items));
	ranges->n--;
}

int ranges_add(struct ranges *ranges, int64_t number)
{
	if (number == INT64_MAX) // the end of a PostgreSQL range is exclusive
		return -EINVAL;
	size_t at = find(ranges, number);
	if (at < ranges->n && ranges->items[at].from <= number)
		return 0;
	if (at > 0 && ranges->items[at - 1].to == number - 1) {
		ranges->items[at - 1].to = number;
		join_next(ranges, at - 1);
		return 0;
	}
	if (at < ranges->n && ranges->items[at].from == number + 1) {
		ranges->items[at].from = number;
		return 0;
	}
	return insert(ranges, at, (struct range){number, number});
}

int ranges_parse(const char *text, struct ranges *ret_ranges)
{
	struct ranges ranges = {0};
	for (const char *at = text; at != NULL && (at = strchr(at, '[')) != NULL; at++) {
		int64_t from, end; // end: exclusive
		int length = 0;
		if (sscanf(at, "[%" SCNd64 ",%" SCNd64 ")%n", &from, &end, &length) != 2 || length == 0 ||
			end <= from || (ranges.n > 0 && from <= ranges.items[ranges.n - 1].to)) {
			ranges_finish(&ranges);
			return -EINVAL;
		}
		if (insert(&ranges, ranges.n, (struct range){from, end - 1}) < 0) {
			ranges_finish(&ranges);
			return -ENOMEM;
		}
	}
	*ret_ranges = ranges;
	return 0;
}

void ranges_write(const struct ranges *ranges, struct buf *out)
{
	buf_char(out, '{');
	for (size_t i = 0; i < ranges->n; i++)
		buf_printf(out, "%s[%" PRId64 ",%" PRId64 ")", i > 0 ? "," : "", ranges->items[i].from,
			ranges->items[i].to + 1);
	buf_char(out, '}');
}

void ranges_finish(struct ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct ranges){0};
}
