#include "live/session.h"

#include "base/search.h"
#include "base/util.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

struct row_node {
	const struct monitor_process *process;
	double value;  // sort key
	size_t parent; // index of a node, or NO_NODE
	size_t first_child, next_sibling;
};
#define NO_NODE SIZE_MAX

void live_rows_finish(struct live_rows *rows)
{
	free(rows->rows);
	free(rows->nodes);
	*rows = (struct live_rows){0};
}

double live_sort_value(const struct monitor_process *process, enum live_sort sort)
{
	switch (sort) {
	case SORT_ENERGY:
		return process->energy_j;
	case SORT_CPU:
		return process->cpu_cores;
	case SORT_MEMORY:
		return value_to_double(process->rss_bytes, 1);
	case SORT_GPU:
		return process->gpu_percent;
	case SORT_GPU_MEMORY:
		return value_to_double(process->gpu_memory_bytes, 1);
	case SORT_PID:
		return (double)process->pid;
	case SORT_POWER:
	case SORTS:
		break;
	}
	return process->power_w;
}

/* ---- filter ---- */

static bool contains(const char *text, const char *part)
{
	return text != NULL && strcasestr(text, part) != NULL;
}

static bool is_wanted(const struct monitor_process *process, const struct live_ui *ui, const struct user_names *users)
{
	if (ui->only_target && ui->has_target && !process->is_target)
		return false;
	if (ui->filter[0] == '\0')
		return true;
	char pid[24];
	snprintf(pid, sizeof(pid), "%lld", (long long)process->pid);
	return contains(process->command, ui->filter) || contains(pid, ui->filter) ||
		(users != NULL && contains(users->name_of(users->data, process->uid), ui->filter));
}

/* ---- order ---- */

// Descending; pids ascending, because their size has no meaning. Unknown values last.
static int compare_values(double a, double b, const struct live_ui *ui)
{
	if (isnan(a) || isnan(b))
		return (int)isnan(a) - (int)isnan(b);
	int order = (a < b) - (a > b);
	bool is_turned = ui->reverse != (ui->sort == SORT_PID);
	return is_turned ? -order : order;
}

// Most processes are idle most of the time. Orders equal ones by CPU time, then memory, then pid, which keeps the order
// stable.
static int compare_equals(const struct monitor_process *a, const struct monitor_process *b)
{
	if (a->cpu_ns != b->cpu_ns)
		return a->cpu_ns > b->cpu_ns ? -1 : 1;
	if (a->rss_bytes != b->rss_bytes)
		return a->rss_bytes > b->rss_bytes ? -1 : 1;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

static int compare_nodes(const void *a, const void *b, void *data)
{
	const struct row_node *left = a, *right = b;
	int order = compare_values(left->value, right->value, data);
	return order != 0 ? order : compare_equals(left->process, right->process);
}

static int compare_pids(const void *a, const void *b)
{
	const struct row_node *left = a, *right = b;
	return (left->process->pid > right->process->pid) - (left->process->pid < right->process->pid);
}

static bool is_node_before(const void *item, const void *key)
{
	return ((const struct row_node *)item)->process->pid < *(const pid_t *)key;
}

static size_t find_pid(const struct row_node *nodes, size_t n, pid_t pid)
{
	size_t at = search_first(nodes, n, sizeof(*nodes), &pid, is_node_before);
	return at < n && nodes[at].process->pid == pid ? at : NO_NODE;
}

/* ---- tree ---- */

static void link_parents(struct row_node *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t parent = find_pid(nodes, n, nodes[i].process->ppid);
		nodes[i].parent = parent == i ? NO_NODE : parent;
	}
	// Reused pids can form a cycle of parents within one sample. Processes without a path to a root become roots.
	for (size_t i = 0; i < n; i++) {
		size_t steps = 0;
		for (size_t at = nodes[i].parent; at != NO_NODE && steps <= TREE_DEPTH_MAX * 64; at = nodes[at].parent)
			steps++;
		if (steps > TREE_DEPTH_MAX * 64)
			nodes[i].parent = NO_NODE;
	}
}

// Adds each node's own value to all its ancestors.
static void sum_up(struct row_node *nodes, size_t n, const double *own)
{
	for (size_t i = 0; i < n; i++)
		for (size_t at = nodes[i].parent; at != NO_NODE && !isnan(own[i]); at = nodes[at].parent)
			nodes[at].value = (isnan(nodes[at].value) ? 0 : nodes[at].value) + own[i];
}

static void link_children(struct row_node *nodes, size_t n, const size_t *order, size_t *ret_first)
{
	*ret_first = NO_NODE;
	for (size_t i = 0; i < n; i++)
		nodes[i].first_child = nodes[i].next_sibling = NO_NODE;
	for (size_t i = n; i-- > 0;) { // from last to first, because each is inserted at the head
		size_t at = order[i];
		size_t *head = nodes[at].parent == NO_NODE ? ret_first : &nodes[nodes[at].parent].first_child;
		nodes[at].next_sibling = *head;
		*head = at;
	}
}

struct by_value {
	const struct row_node *nodes;
	const struct live_ui *ui;
};

static int compare_places(const void *a, const void *b, void *data)
{
	const struct by_value *by = data;
	const struct row_node *left = &by->nodes[*(const size_t *)a], *right = &by->nodes[*(const size_t *)b];
	int order = compare_values(left->value, right->value, by->ui);
	return order != 0 ? order : compare_equals(left->process, right->process);
}

// Writes the tree top down, parents before children. Iterative, because process chains may be long.
static void flatten(struct live_rows *rows, size_t first)
{
	struct row_node *nodes = rows->nodes;
	size_t depth = 0;
	uint32_t branch_bits = 0;
	for (size_t at = first; at != NO_NODE;) {
		bool is_last = nodes[at].next_sibling == NO_NODE;
		uint8_t drawn = (uint8_t)(depth < TREE_DEPTH_MAX ? depth : TREE_DEPTH_MAX);
		rows->rows[rows->n++] = (struct live_row){.process = nodes[at].process,
			.branch_bits = branch_bits,
			.depth = drawn,
			.is_last = is_last};
		if (nodes[at].first_child != NO_NODE) {
			if (depth < TREE_DEPTH_MAX)
				branch_bits = is_last ? branch_bits & ~(1U << depth) : branch_bits | 1U << depth;
			depth++;
			at = nodes[at].first_child;
			continue;
		}
		while (at != NO_NODE && nodes[at].next_sibling == NO_NODE) {
			at = nodes[at].parent;
			depth -= depth > 0;
		}
		at = at == NO_NODE ? NO_NODE : nodes[at].next_sibling;
	}
}

static int make_tree(struct live_rows *rows, size_t n, const struct live_ui *ui)
{
	struct row_node *nodes = rows->nodes;
	double *own = calloc_array(n, sizeof(*own));
	size_t *order = calloc_array(n, sizeof(*order)), first;
	if (own == NULL || order == NULL) {
		free(own);
		free(order);
		return -ENOMEM;
	}
	qsort(nodes, n, sizeof(*nodes), compare_pids);
	for (size_t i = 0; i < n; i++) {
		own[i] = nodes[i].value;
		order[i] = i;
	}
	link_parents(nodes, n);
	if (ui->sort != SORT_PID)
		sum_up(nodes, n, own);
	struct by_value by = {nodes, ui};
	qsort_r(order, n, sizeof(*order), compare_places, &by);
	link_children(nodes, n, order, &first);
	flatten(rows, first);
	free(own);
	free(order);
	return 0;
}

/* ---- rows ---- */

static int reserve(struct live_rows *rows, size_t n)
{
	if (n <= rows->capacity)
		return 0;
	live_rows_finish(rows);
	rows->rows = calloc_array(n, sizeof(*rows->rows));
	rows->nodes = calloc_array(n, sizeof(*rows->nodes));
	if (rows->rows == NULL || rows->nodes == NULL) {
		live_rows_finish(rows);
		return -ENOMEM;
	}
	rows->capacity = n;
	return 0;
}

int live_rows_make(struct live_rows *rows, const struct monitor_sample *now, const struct live_ui *ui,
	const struct user_names *users)
{
	rows->n = 0;
	if (reserve(rows, now->n_processes) < 0)
		return -ENOMEM;
	size_t n = 0;
	for (size_t i = 0; i < now->n_processes; i++) {
		const struct monitor_process *process = &now->processes[i];
		if (is_wanted(process, ui, users))
			rows->nodes[n++] = (struct row_node){.process = process,
				.value = live_sort_value(process, ui->sort)};
	}
	if (n == 0)
		return 0;
	if (ui->tree)
		return make_tree(rows, n, ui);
	struct live_ui order = *ui;
	qsort_r(rows->nodes, n, sizeof(*rows->nodes), compare_nodes, &order);
	for (size_t i = 0; i < n; i++)
		rows->rows[i] = (struct live_row){.process = rows->nodes[i].process, .is_last = true};
	rows->n = n;
	return 0;
}

static int row_of(const struct live_rows *rows, pid_t pid)
{
	for (size_t i = 0; pid != 0 && i < rows->n; i++)
		if (rows->rows[i].process->pid == pid)
			return (int)i;
	return -1;
}

static int limit(int value, int low, int high)
{
	return value > high ? high : value < low ? low : value;
}

int live_rows_select(const struct live_rows *rows, struct live_ui *ui, int height)
{
	int n = (int)rows->n, at = row_of(rows, ui->selected);
	int moves = ui->moves + ui->pages * (height > 1 ? height - 1 : 1);
	ui->moves = ui->pages = 0;
	if (n == 0 || height < 1) {
		ui->first = 0;
		return -1;
	}
	if (moves != 0) {
		// The first move selects the visible row at the top or bottom.
		at = at >= 0 ? at + moves : moves > 0 ? ui->first + moves - 1 : ui->first + height + moves;
		at = limit(at, 0, n - 1);
		ui->selected = rows->rows[at].process->pid;
	}
	if (at >= 0)
		ui->first = limit(ui->first, at - height + 1, at);
	ui->first = limit(ui->first, 0, n > height ? n - height : 0);
	return at;
}
