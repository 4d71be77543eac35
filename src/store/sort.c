#include "store/sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
	const struct sort_key *a = left, *b = right;
	if (a->t_ns != b->t_ns)
		return a->t_ns < b->t_ns ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->at < b->at ? -1 : 1;
}

static bool is_sorted(const struct sort_key *keys, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (compare(&keys[i - 1], &keys[i]) > 0)
			return false;
	return true;
}

// The row that keys[i] names goes to place i, along each cycle: no second array of rows is needed.
static void permute(unsigned char *rows, size_t size, struct sort_key *keys, size_t n, unsigned char *spare)
{
	for (size_t i = 0; i < n; i++) {
		if (keys[i].at == i)
			continue;
		memcpy(spare, rows + i * size, size);
		size_t to = i;
		for (size_t from; (from = keys[to].at) != i; to = from) {
			memcpy(rows + to * size, rows + from * size, size);
			keys[to].at = to;
		}
		memcpy(rows + to * size, spare, size);
		keys[to].at = to;
	}
}

int sort_rows(void *rows, size_t size, struct sort_key *keys, size_t n)
{
	if (is_sorted(keys, n))
		return 0;
	unsigned char *spare = malloc(size);
	if (spare == NULL)
		return -ENOMEM;
	qsort(keys, n, sizeof(*keys), compare);
	permute(rows, size, keys, n, spare);
	free(spare);
	return 0;
}
