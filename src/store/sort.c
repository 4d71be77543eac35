#include "store/run_read.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 16 }; // runs of at most this many rows are sorted by insertion

struct key {
	int64_t t_ns;
	size_t at; // current index of the row
};

struct sorting {
	unsigned char *rows;
	size_t size, time_at;
	ptrdiff_t id_at;
	struct key *keys, *spare; // spare: space for half of the keys
};

static int64_t field(const struct sorting *s, size_t row, size_t offset)
{
	int64_t value;
	memcpy(&value, s->rows + row * s->size + offset, sizeof(value));
	return value;
}

// Whether b, which follows a now, must precede it.
static bool is_before(const struct sorting *s, const struct key *b, const struct key *a)
{
	if (b->t_ns != a->t_ns)
		return b->t_ns < a->t_ns;
	return s->id_at != SORT_NO_ID && field(s, b->at, (size_t)s->id_at) < field(s, a->at, (size_t)s->id_at);
}

static void sort_short(struct sorting *s, size_t from, size_t to)
{
	for (size_t i = from + 1; i < to; i++) {
		struct key key = s->keys[i];
		size_t at = i;
		for (; at > from && is_before(s, &key, &s->keys[at - 1]); at--)
			s->keys[at] = s->keys[at - 1];
		s->keys[at] = key;
	}
}

// Merges two sorted parts. Only the overlap moves, which is small if the rows were nearly in order.
static void merge(struct sorting *s, size_t from, size_t middle, size_t to)
{
	struct key *keys = s->keys;
	size_t low = from, high = middle;
	while (low < high) { // first row of the left part that must follow the first row of the right part
		size_t half = low + (high - low) / 2;
		if (is_before(s, &keys[middle], &keys[half]))
			high = half;
		else
			low = half + 1;
	}
	size_t n = middle - low;
	memcpy(s->spare, &keys[low], n * sizeof(*keys));
	size_t left = 0, right = middle;
	for (size_t at = low; left < n; at++)
		keys[at] = right < to && is_before(s, &keys[right], &s->spare[left]) ? keys[right++] : s->spare[left++];
}

static void sort_part(struct sorting *s, size_t from, size_t to)
{
	if (to - from <= SHORT) {
		sort_short(s, from, to);
		return;
	}
	size_t middle = from + (to - from) / 2;
	sort_part(s, from, middle);
	sort_part(s, middle, to);
	if (is_before(s, &s->keys[middle], &s->keys[middle - 1]))
		merge(s, from, middle, to);
}

// Moves the row of keys[i] to index i along each permutation cycle, so that no second array of rows is needed.
static void permute(const struct sorting *s, size_t n, unsigned char *spare)
{
	for (size_t i = 0; i < n; i++) {
		if (s->keys[i].at == i)
			continue;
		memcpy(spare, s->rows + i * s->size, s->size);
		size_t to = i;
		for (size_t from; (from = s->keys[to].at) != i; to = from) {
			memcpy(s->rows + to * s->size, s->rows + from * s->size, s->size);
			s->keys[to].at = to;
		}
		memcpy(s->rows + to * s->size, spare, s->size);
		s->keys[to].at = to;
	}
}

static bool is_sorted(const struct sorting *s, size_t n)
{
	struct key last = {0};
	for (size_t i = 0; i < n; i++) {
		struct key key = {field(s, i, s->time_at), i};
		if (i > 0 && is_before(s, &key, &last))
			return false;
		last = key;
	}
	return true;
}

int sort_rows(void *rows, size_t size, size_t n, size_t time_at, ptrdiff_t id_at)
{
	struct sorting s = {.rows = rows, .size = size, .time_at = time_at, .id_at = id_at};
	if (is_sorted(&s, n))
		return 0;
	s.keys = malloc(n * sizeof(*s.keys));
	s.spare = malloc((n / 2 + 1) * sizeof(*s.spare));
	unsigned char *spare = malloc(size);
	int r = s.keys != NULL && s.spare != NULL && spare != NULL ? 0 : -ENOMEM;
	if (r == 0) {
		for (size_t i = 0; i < n; i++)
			s.keys[i] = (struct key){field(&s, i, time_at), i};
		sort_part(&s, 0, n);
		permute(&s, n, spare);
	}
	free(s.keys);
	free(s.spare);
	free(spare);
	return r;
}
