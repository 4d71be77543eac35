// Chooses a colour index for each block, so that adjacent blocks in a picture differ.
#include "analysis/chart/builder.h"

#include "base/util.h"

#include <errno.h>

struct color_work {
	const struct findings *f;
	uint8_t *block_colors;  // per block; BLOCK_COLOR_NONE: none yet
	uint32_t *block;        // per stack; UINT32_MAX: a process
	uint32_t *first, *next; // linked lists of each block's stacks
	uint32_t *child, *sibling;
};

enum { BLOCK_COLOR_NONE = 255 };

// Bit set of the colours of the blocks directly around and inside a block.
static unsigned int taken_around(const struct color_work *w, uint32_t block)
{
	unsigned int taken = 0;
	for (uint32_t s = w->first[block]; s != STACK_NONE; s = w->next[s]) {
		uint32_t parent = w->f->stacks[s].parent;
		uint32_t around = parent != STACK_NONE ? w->block[parent] : UINT32_MAX;
		if (around != UINT32_MAX && w->block_colors[around] != BLOCK_COLOR_NONE)
			taken |= 1U << w->block_colors[around];
		for (uint32_t c = w->child[s]; c != STACK_NONE; c = w->sibling[c])
			if (w->block[c] != UINT32_MAX && w->block_colors[w->block[c]] != BLOCK_COLOR_NONE)
				taken |= 1U << w->block_colors[w->block[c]];
	}
	return taken;
}

static double rank_of(const struct block_finding *block)
{
	return isnan(block->total_j) ? block->compute_time_s.total - 1e18
				     : block->total_j; // unknown energies last, by time
}

static int by_energy(const void *a, const void *b, void *data)
{
	const struct findings *f = ((const struct color_work *)data)->f;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	double p = rank_of(&f->blocks[x]), q = rank_of(&f->blocks[y]);
	return p != q && !(isnan(p) && isnan(q)) ? (p < q || isnan(p) ? 1 : -1) : (x > y) - (x < y);
}

// The first eight blocks use each colour once; later ones take the next free colour after the previous one.
static void give(struct color_work *w, const uint32_t *order)
{
	unsigned int used = 0, next = 0;
	for (size_t i = 0; i < w->f->n_blocks; i++) {
		unsigned int taken = taken_around(w, order[i]) | (i < CHART_BLOCK_COLORS ? used : 0);
		unsigned int tint = next;
		for (unsigned int k = 0; k < CHART_BLOCK_COLORS && (taken >> tint & 1) != 0; k++)
			tint = (tint + 1) % CHART_BLOCK_COLORS;
		w->block_colors[order[i]] = (uint8_t)tint;
		used |= 1U << tint;
		next = (tint + 1) % CHART_BLOCK_COLORS;
	}
}

static void link_stacks(struct color_work *w)
{
	const struct findings *f = w->f;
	for (size_t b = 0; b < f->n_blocks; b++)
		w->first[b] = STACK_NONE;
	for (size_t s = 0; s < f->n_stacks; s++) {
		const struct stack_finding *stack = &f->stacks[s];
		w->child[s] = STACK_NONE;
		w->block[s] = stack->parent != STACK_NONE ? findings_block(f, stack->name) : UINT32_MAX;
		if (stack->parent != STACK_NONE) { // the parent precedes it
			w->sibling[s] = w->child[stack->parent];
			w->child[stack->parent] = (uint32_t)s;
		}
		if (w->block[s] == UINT32_MAX)
			continue;
		w->next[s] = w->first[w->block[s]];
		w->first[w->block[s]] = (uint32_t)s;
	}
}

int chart_block_colors(struct chart_work *work)
{
	const struct findings *f = work->findings;
	struct color_work w = {.f = f,
		.block_colors = arena_alloc(work->arena, f->n_blocks, 1),
		.block = arena_alloc(work->scratch, f->n_stacks, sizeof(*w.block)),
		.first = arena_alloc(work->scratch, f->n_blocks, sizeof(*w.first)),
		.next = arena_alloc(work->scratch, f->n_stacks, sizeof(*w.next)),
		.child = arena_alloc(work->scratch, f->n_stacks, sizeof(*w.child)),
		.sibling = arena_alloc(work->scratch, f->n_stacks, sizeof(*w.sibling))};
	uint32_t *order = arena_alloc(work->scratch, f->n_blocks, sizeof(*order));
	if (w.block_colors == NULL || w.block == NULL || w.first == NULL || w.next == NULL || w.child == NULL ||
		w.sibling == NULL || order == NULL)
		return -ENOMEM;
	for (size_t b = 0; b < f->n_blocks; b++) {
		w.block_colors[b] = BLOCK_COLOR_NONE;
		order[b] = (uint32_t)b;
	}
	link_stacks(&w);
	qsort_r(order, f->n_blocks, sizeof(*order), by_energy, &w);
	give(&w, order);
	work->charts->block_colors = w.block_colors;
	return 0;
}
