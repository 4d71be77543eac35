#include "report/trace/internal.h"

#include "base/util.h"

/* ---- heap of the ends of open rows ---- */

static void swap(struct lane_end *a, struct lane_end *b)
{
	struct lane_end kept = *a;
	*a = *b;
	*b = kept;
}

static void sink(struct lane_end *ends, size_t n)
{
	for (size_t at = 0, child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && ends[child + 1].end_ns < ends[child].end_ns)
			child++;
		if (ends[at].end_ns <= ends[child].end_ns)
			return;
		swap(&ends[at], &ends[child]);
	}
}

static void rise(struct lane_end *ends, size_t at)
{
	for (; at > 0 && ends[at].end_ns < ends[(at - 1) / 2].end_ns; at = (at - 1) / 2)
		swap(&ends[at], &ends[(at - 1) / 2]);
}

static int add_end(struct lanes *lanes, int64_t end_ns, size_t lane)
{
	struct lane_end *larger = array_reserve(lanes->ends, lanes->n_ends, &lanes->ends_capacity, sizeof(*larger), 16);
	if (larger == NULL)
		return -1;
	lanes->ends = larger;
	lanes->ends[lanes->n_ends] = (struct lane_end){end_ns, lane};
	rise(lanes->ends, lanes->n_ends++);
	return 0;
}

static struct lane_end take_first_end(struct lanes *lanes)
{
	struct lane_end first = lanes->ends[0];
	lanes->ends[0] = lanes->ends[--lanes->n_ends];
	sink(lanes->ends, lanes->n_ends);
	return first;
}

/* ---- tree of free room in lanes ---- */

static int64_t free_from(const struct lane *lane)
{
	if (lane->n == 0)
		return INT64_MAX;
	const struct lane_row *innermost = lane->open[lane->n - 1];
	return innermost->is_range ? INT64_MIN : innermost->end_ns;
}

static void set_free_from(struct lanes *lanes, size_t lane, int64_t free_from_ns)
{
	size_t node = lanes->capacity + lane;
	lanes->place[node] = free_from_ns;
	while (node /= 2)
		lanes->place[node] = trace_later_ns(lanes->place[2 * node], lanes->place[2 * node + 1]);
}

// An unused lane has room for any row.
static int grow(struct lanes *lanes)
{
	size_t capacity = lanes->capacity > 0 ? 2 * lanes->capacity : 8;
	struct lane *items = realloc(lanes->items, capacity * sizeof(*items));
	if (items == NULL)
		return -1;
	lanes->items = items;
	int64_t *place = realloc(lanes->place, 2 * capacity * sizeof(*place));
	if (place == NULL)
		return -1;
	lanes->place = place;
	lanes->capacity = capacity;
	for (size_t i = 0; i < 2 * capacity; i++)
		place[i] = INT64_MAX;
	for (size_t i = 0; i < lanes->n; i++)
		set_free_from(lanes, i, free_from(&items[i]));
	return 0;
}

static size_t first_free(const struct lanes *lanes, int64_t end_ns)
{
	size_t node = 1;
	while (node < lanes->capacity)
		node = 2 * node + (lanes->place[2 * node] < end_ns);
	return node - lanes->capacity;
}

/* ---- beginning and ending rows ---- */

static void end_innermost(struct lanes *lanes, struct lane *lane)
{
	const struct lane_row *row = lane->open[--lane->n];
	if (row->end_ns != INT64_MAX)
		trace_slice_end(lanes->trace, lane->track, row->end_ns);
}

// True for a row without duration at the end of its parent span: it still nests in it.
static bool is_inside(const struct lanes *lanes, const struct lane_row *row, const struct lane_row *open)
{
	const struct run_span *spans = lanes->trace->run->spans;
	return row->end_ns == open->end_ns && spans[row->span].parent == spans[open->span].id;
}

static int end_until(struct lanes *lanes, const struct lane_row *row)
{
	struct lane_end kept = {0};
	size_t n_kept = 0; // ends of the lane that contains `row`: all at the same instant
	while (lanes->n_ends > 0 && lanes->ends[0].end_ns <= row->begin_ns) {
		struct lane_end end = take_first_end(lanes);
		struct lane *lane = &lanes->items[end.lane];
		if (is_inside(lanes, row, lane->open[lane->n - 1])) {
			kept = end;
			n_kept++;
			continue;
		}
		end_innermost(lanes, lane);
		set_free_from(lanes, end.lane, free_from(lane));
	}
	for (; n_kept > 0; n_kept--)
		if (add_end(lanes, kept.end_ns, kept.lane) < 0)
			return -1;
	return 0;
}

static int open_in(struct lanes *lanes, size_t index, const struct lane_row *row)
{
	struct lane *lane = &lanes->items[index];
	const struct lane_row **larger = array_reserve(lane->open, lane->n, &lane->capacity, sizeof(*larger), 4);
	if (larger == NULL)
		return -1;
	lane->open = larger;
	lane->open[lane->n++] = row;
	set_free_from(lanes, index, free_from(lane));
	return row->end_ns != INT64_MAX ? add_end(lanes, row->end_ns, index) : 0;
}

struct lane *lanes_put(struct lanes *lanes, const struct lane_row *row)
{
	if (end_until(lanes, row) < 0 || (lanes->n == lanes->capacity && grow(lanes) < 0))
		return NULL;
	size_t index = first_free(lanes, row->end_ns);
	if (index == lanes->n)
		lanes->items[lanes->n++] = (struct lane){0};
	return open_in(lanes, index, row) == 0 ? &lanes->items[index] : NULL;
}

void lanes_end_all(struct lanes *lanes)
{
	for (size_t i = 0; i < lanes->n; i++) {
		struct lane *lane = &lanes->items[i];
		while (lane->n > 0)
			end_innermost(lanes, lane);
		free(lane->open);
		set_free_from(lanes, i, INT64_MAX);
	}
	lanes->n = 0;
	lanes->n_ends = 0;
}

void lanes_free(struct lanes *lanes)
{
	lanes_end_all(lanes);
	free(lanes->items);
	free(lanes->place);
	free(lanes->ends);
}
