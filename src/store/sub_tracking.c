#include "store/sub_tracking.h"

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>

/* Files with short blocks often have millions of rows. So a row takes 16 bytes and is kept in file order, which is nearly
 * always the order of time: rows are distributed to groups and sorted only if necessary. */
struct mark {
	double time_s;
	uint32_t group, is_stop;
};

struct group_key { // no padding, because the key is compared as bytes
	int64_t pid;
	int64_t name; // name number
};

struct group { // calls of one block in one process
	int64_t pid;
	const char *name;
	uint32_t first, n; // index and number of its marks
};

struct marks {
	struct mark *rows; // owned
	size_t n, capacity;
	struct intern names, groups;
	struct group_key last; // key of the previous row
	int64_t last_group;
};

/* Reading */

static bool same_as_last(const struct marks *marks, const struct sub_tracking_row *row)
{
	return marks->n > 0 && marks->last.pid == row->pid &&
		strcmp(marks->names.keys[marks->last.name].bytes, row->name) == 0;
}

static int64_t group_of(struct marks *marks, const struct sub_tracking_row *row)
{
	if (same_as_last(marks, row))
		return marks->last_group;
	int64_t name = intern_number(&marks->names, row->name, strlen(row->name));
	if (name < 0)
		return name;
	marks->last = (struct group_key){row->pid, name};
	marks->last_group = intern_number(&marks->groups, &marks->last, sizeof(marks->last));
	return marks->last_group;
}

static int add_mark(void *data, const struct sub_tracking_row *row, struct wattle_error *reterr)
{
	struct marks *marks = data;
	struct mark *larger = array_reserve(marks->rows, marks->n, &marks->capacity, sizeof(*larger), 1024);
	if (larger == NULL || marks->n == UINT32_MAX)
		return -ENOMEM;
	marks->rows = larger;
	int64_t group = group_of(marks, row);
	if (group < 0)
		return -ENOMEM;
	marks->rows[marks->n++] = (struct mark){row->time_s, (uint32_t)group, row->is_stop};
	return 0;
}

/* Groups by name and process */

static int by_name_and_pid(const void *left, const void *right)
{
	const struct group *a = left, *b = right;
	int names = a->name == b->name ? 0 : strcmp(a->name, b->name);
	if (names != 0)
		return names;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

// `first` is the group's number until the groups are sorted.
static struct group *make_groups(const struct marks *marks)
{
	struct group *groups = calloc_array(marks->groups.n, sizeof(*groups));
	for (size_t g = 0; groups != NULL && g < marks->groups.n; g++) {
		const struct group_key *key = marks->groups.keys[g].bytes;
		groups[g] = (struct group){key->pid, marks->names.keys[key->name].bytes, (uint32_t)g, 0};
	}
	if (groups != NULL && marks->groups.n > 0)
		qsort(groups, marks->groups.n, sizeof(*groups), by_name_and_pid);
	return groups;
}

// Distributes the marks to their groups in file order: order[first .. first + n) per group.
static int deal(struct marks *marks, struct group *groups, uint32_t *order)
{
	wattle_cleanup_free uint32_t *output = calloc_array(marks->groups.n, sizeof(*output)); // next index, by group
	if (output == NULL)
		return -ENOMEM;
	for (size_t g = 0; g < marks->groups.n; g++)
		output[groups[g].first] = (uint32_t)g;
	for (size_t i = 0; i < marks->n; i++)
		groups[output[marks->rows[i].group]].n++;
	uint32_t first = 0;
	for (size_t g = 0; g < marks->groups.n; g++) {
		groups[g].first = first;
		first += groups[g].n;
		groups[g].n = 0;
	}
	for (size_t i = 0; i < marks->n; i++) {
		struct group *group = &groups[output[marks->rows[i].group]];
		order[group->first + group->n++] = (uint32_t)i;
	}
	return 0;
}

static int by_time(const void *left, const void *right, void *data)
{
	const struct mark *rows = data;
	uint32_t i = *(const uint32_t *)left, j = *(const uint32_t *)right;
	double a = rows[i].time_s, b = rows[j].time_s;
	if (a < b || a > b)
		return a < b ? -1 : 1;
	return i < j ? -1 : 1;
}

static void sort_marks(const struct marks *marks, uint32_t *order, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (marks->rows[order[i]].time_s >= marks->rows[order[i - 1]].time_s)
			continue;
		qsort_r(order, n, sizeof(*order), by_time, marks->rows);
		return;
	}
}

/* Pairing */

struct pairing {
	const struct marks *marks;
	const struct group *groups;
	uint32_t *order;
	struct sub_tracking_call *calls;
	uint32_t *below; // per call: the next open call of the stack
	size_t n, n_orphans;
	size_t orphan_group, orphan; // the first stray mark: order[stray]
};

enum { NONE = UINT32_MAX };

/* A stop without a start may precede the start of the same instant if the rows of a zero-length call were written in the other
 * order: swaps them. */
static bool move_start_earlier(const struct pairing *p, size_t at, size_t end)
{
	const struct mark *rows = p->marks->rows;
	for (size_t i = at + 1; i < end && rows[p->order[i]].time_s <= rows[p->order[at]].time_s; i++) {
		if (rows[p->order[i]].is_stop)
			continue;
		uint32_t start = p->order[i];
		p->order[i] = p->order[at];
		p->order[at] = start;
		return true;
	}
	return false;
}

// Pairs last in, first out. The end of a call that is never stopped stays unknown.
static void pair(struct pairing *p, size_t g)
{
	const struct group *group = &p->groups[g];
	size_t end = (size_t)group->first + group->n;
	uint32_t top = NONE;
	for (size_t i = group->first; i < end; i++) {
		if (p->marks->rows[p->order[i]].is_stop && top == NONE && !move_start_earlier(p, i, end)) {
			if (p->n_orphans++ == 0) {
				p->orphan_group = g;
				p->orphan = i;
			}
			continue;
		}
		const struct mark *mark = &p->marks->rows[p->order[i]];
		if (mark->is_stop) {
			p->calls[top].end_s = mark->time_s;
			top = p->below[top];
		} else {
			p->calls[p->n] = (struct sub_tracking_call){group->pid, group->name, mark->time_s, (double)NAN};
			p->below[p->n] = top;
			top = (uint32_t)p->n++;
		}
	}
}

// The message shows the pair that gpu_tracker's analyzer would show, in the time order of each process.
static int refuse_orphan(const struct pairing *p, const char *path, struct wattle_error *reterr)
{
	const struct group *group = &p->groups[p->orphan_group];
	char stop[40], next[40] = "";
	num_format_double(stop, sizeof(stop), p->marks->rows[p->order[p->orphan]].time_s);
	bool last = p->orphan + 1 == (size_t)group->first + group->n;
	const struct group *other = last ? group + 1 : group;
	bool has_next = !last || (p->orphan_group + 1 < p->marks->groups.n && other->name == group->name);
	if (!has_next)
		return error_set(reterr, -EINVAL, "%s: block '%.80s' is stopped at %s in process %lld without a start",
			path, group->name, stop, (long long)group->pid);
	num_format_double(next, sizeof(next), p->marks->rows[p->order[p->orphan + 1]].time_s);
	if (last)
		return error_set(reterr, -EINVAL,
			"%s: block '%.80s': timestamp pair (%s, %s) with differing process IDs: %lld and %lld: a stop "
			"without a start",
			path, group->name, stop, next, (long long)group->pid, (long long)other->pid);
	return error_set(reterr, -EINVAL,
		"%s: block '%.80s': timestamp pair (%s, %s) of process ID %lld: a stop before its start", path,
		group->name, stop, next, (long long)group->pid);
}

static int pair_all(struct marks *marks, struct arena *arena, const struct group *groups, uint32_t *order,
	struct pairing *p)
{
	size_t n_starts = 0;
	for (size_t i = 0; i < marks->n; i++)
		n_starts += !marks->rows[i].is_stop;
	*p = (struct pairing){.marks = marks, .groups = groups, .order = order};
	p->calls = arena_alloc(arena, n_starts, sizeof(*p->calls));
	p->below = calloc_array(n_starts, sizeof(*p->below));
	if (p->calls == NULL || p->below == NULL) {
		free(p->below);
		return -ENOMEM;
	}
	for (size_t g = 0; g < marks->groups.n; g++) {
		sort_marks(marks, order + groups[g].first, groups[g].n);
		pair(p, g);
	}
	free(p->below);
	return 0;
}

static int make_calls(struct marks *marks, struct arena *arena, const char *path, struct sub_tracking_call **ret_calls,
	size_t *ret_n, size_t *ret_n_strays, struct wattle_error *reterr)
{
	wattle_cleanup_free struct group *groups = make_groups(marks);
	wattle_cleanup_free uint32_t *order = calloc_array(marks->n, sizeof(*order));
	struct pairing p;
	if (groups == NULL || order == NULL || deal(marks, groups, order) < 0 ||
		pair_all(marks, arena, groups, order, &p) < 0)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	if (p.n_orphans > 0 && ret_n_strays == NULL)
		return refuse_orphan(&p, path, reterr);
	*ret_calls = p.calls;
	*ret_n = p.n;
	if (ret_n_strays != NULL)
		*ret_n_strays = p.n_orphans;
	return 0;
}

int sub_tracking_read(const char *path, struct arena *arena, struct sub_tracking_call **ret_calls, size_t *ret_n,
	size_t *ret_n_strays, struct wattle_error *reterr)
{
	struct marks marks = {0};
	intern_init(&marks.names, arena);
	intern_init(&marks.groups, arena);
	int r = sub_tracking_each(path, add_mark, &marks, reterr);
	if (r == 0)
		r = make_calls(&marks, arena, path, ret_calls, ret_n, ret_n_strays, reterr);
	intern_finish(&marks.groups);
	intern_finish(&marks.names);
	free(marks.rows);
	return r;
}
