#include "analysis/block/block_work.h"

#include "base/util.h"

#include <errno.h>

enum {
	PIECES_MAX = 1000000, // about half a second of folding; above that energies are interpolated linearly
	PARTIES_MAX = 64,     // at one instant
	BLOCKS_MAX = 256,     // with more names there are too few calls of each
};

static const double alone = 1e-6; // largest fraction of a block's energy that can belong to other blocks

/* ---- sharing over time ---- */

// Early test: calls are at least as long as the pieces into which they are cut.
static bool any_short(struct blocks_work *work, const struct metering *metering)
{
	const struct run *run = work->run;
	size_t n = work->names.n;
	struct calls_of {
		double ns;
		int64_t n;
	} *calls = arena_alloc(work->arena, n, sizeof(*calls));
	for (size_t i = 0; calls != NULL && i < run->n_spans; i++) {
		const struct run_span *span = &run->spans[i];
		if (!block_has_ended(span))
			continue;
		calls[work->names.of[i]].n++;
		calls[work->names.of[i]].ns += (double)((uint64_t)span->end_ns - (uint64_t)span->begin_ns);
	}
	for (size_t k = 0; calls != NULL && k < n; k++)
		if (calls[k].n > 0 &&
			fold_helps(work->findings, metering, calls[k].ns / 1e9 / (double)calls[k].n, calls[k].n))
			return true;
	return false;
}

void dealing_begin(struct blocks_work *work, const struct metering *metering)
{
	work->dealing.wanted = !work->findings->quick && work->moments.any_energy && work->names.n <= BLOCKS_MAX &&
		work->run->n_spans <= PIECES_MAX / 2 && any_short(work, metering);
}

static void give_up(struct dealing *dealing)
{
	free(dealing->pieces);
	*dealing = (struct dealing){0};
}

static void deal(struct blocks_work *work, const struct open_span *span)
{
	struct dealing *dealing = &work->dealing;
	if (!dealing->wanted)
		return;
	struct fold_piece *pieces = array_with_room(dealing->pieces, dealing->n, &dealing->room, sizeof(*pieces), 4096);
	if (pieces == NULL || dealing->n == PIECES_MAX) {
		give_up(dealing);
		return;
	}
	dealing->pieces = pieces;
	pieces[dealing->n++] = (struct fold_piece){.begin_ns = dealing->dealt_ns,
		.end_ns = moments_now(&work->moments)->t_ns,
		.column = span->path + 1,
		.weight = 1 / (float)work->parties};
}

static void deal_ranges(struct blocks_work *work)
{
	for (uint32_t p = 0; p < work->process_keys.n; p++)
		for (uint32_t place = work->processes[p].stay.on ? work->processes[p].last_range : BLOCK_NONE;
			place != BLOCK_NONE; place = work->open[place].below)
			deal(work, &work->open[place]);
}

void dealing_pass(struct blocks_work *work)
{
	struct dealing *dealing = &work->dealing;
	int64_t now_ns = moments_now(&work->moments)->t_ns;
	if (!dealing->wanted)
		return;
	if (work->parties > PARTIES_MAX || work->process_keys.n > PARTIES_MAX) {
		give_up(dealing);
		return;
	}
	if (work->parties > 0 && now_ns > dealing->dealt_ns) {
		for (size_t i = 0; i < work->n_busy; i++)
			deal(work, &work->open[work->threads[work->busy_threads[i]].top]);
		if (work->parties > work->n_busy)
			deal_ranges(work);
	}
	dealing->dealt_ns = now_ns;
}

/* ---- results ---- */

struct told {                   // columns and interpolated energy of one block
	uint32_t *inside, *own; // columns of the stacks that contain the block, and of those that end with it
	size_t n_inside, n_own;
	double inside_j; // by linear interpolation
};

static bool stack_has(const struct blocks_work *work, uint32_t path, uint32_t block)
{
	for (uint32_t i = path; work->paths.at[i].parent != PATH_NONE; i = work->paths.at[i].parent)
		if (work->paths.at[i].name == block)
			return true;
	return false;
}

static void collect(const struct blocks_work *work, uint32_t block, struct told *told)
{
	told->n_inside = told->n_own = 0;
	told->inside_j = 0;
	for (uint32_t i = 0; i < work->paths.keys.n; i++) {
		const struct path *path = &work->paths.at[i];
		if (path->parent == PATH_NONE || !stack_has(work, i, block))
			continue;
		told->inside[told->n_inside++] = i + 1;
		told->inside_j += path->self_j;
		if (path->name == block)
			told->own[told->n_own++] = i + 1;
	}
}

/* The stacks of a block give its total energy only if no other block used energy while it ran. A block that is alone in
 * its stacks then has one figure for both energies; for other blocks the better total is used that is not below the
 * block's own energy. */
static void take_total(const struct fold *fold, const struct told *told, struct block_finding *block)
{
	if (!(fabs(told->inside_j - block->total_j) <= alone * block->total_j))
		return;
	struct fold_energy energy = fold_energy_of(fold, told->inside, told->n_inside);
	bool own_alone = told->n_own == told->n_inside, room = block->total_j >= block->self_j;
	if (isnan(energy.j) || (!own_alone && room && energy.error_j >= block->error_j))
		return;
	block->total_j = energy.j;
	block->error_j = energy.error_j;
	block->method = BLOCK_FOLDED;
	for (size_t d = 0; d < fold->n_domains; d++) {
		if (fold->domains[d] == NULL || isnan(block->domain_j[d]))
			continue;
		double j = fold_domain_energy_of(fold, d, told->inside, told->n_inside).j;
		block->domain_j[d] = isnan(j) ? block->domain_j[d] : j;
	}
	block->resolved = is_resolved(block->total_j, block->error_j);
}

// Whether folding gives smaller errors of the blocks' own energies, over all blocks, than linear interpolation.
static bool tells_more(const struct blocks_work *work, const struct fold *fold, struct told *told)
{
	const struct findings *f = work->findings;
	double folded_j2 = 0, interpolated_j2 = 0;
	for (uint32_t k = 0; k < f->n_blocks; k++) {
		collect(work, k, told);
		struct fold_energy own = fold_energy_of(fold, told->own, told->n_own);
		folded_j2 += own.error_j * own.error_j;
		interpolated_j2 += f->blocks[k].self_error_j * f->blocks[k].self_error_j;
	}
	return folded_j2 < interpolated_j2; // false if unknown (NaN)
}

static void take(struct blocks_work *work, const struct fold *fold, struct told *told, struct findings *findings)
{
	static const uint32_t outside[] = {0};
	for (uint32_t k = 0; k < findings->n_blocks; k++) {
		struct block_finding *block = &findings->blocks[k];
		collect(work, k, told);
		struct fold_energy own = fold_energy_of(fold, told->own, told->n_own);
		block->self_j = told->n_own > 0 ? own.j : block->self_j;
		block->self_error_j = told->n_own > 0 ? own.error_j : block->self_error_j;
		if (told->n_own > 0)
			take_total(fold, told, block);
	}
	for (uint32_t i = 0; i < findings->n_stacks; i++)
		if (findings->stacks[i].parent != STACK_NONE)
			findings->stacks[i].self_j = fold_energy_of(fold, &(uint32_t){i + 1}, 1).j;
	struct fold_energy rest = fold_energy_of(fold, outside, 1);
	findings->outside_j = rest.j;
	findings->outside_error_j = rest.error_j;
}

int dealing_finish(struct blocks_work *work, const struct metering *metering, struct findings *findings)
{
	const struct dealing *dealing = &work->dealing;
	size_t n = work->paths.keys.n;
	if (!dealing->wanted || dealing->n == 0)
		return 0;
	struct arena *arena = arena_new(); // separate arena: folding needs much memory, which is freed afterwards
	if (arena == NULL)
		return -ENOMEM;
	struct told told = {.inside = arena_alloc(arena, n, sizeof(uint32_t)),
		.own = arena_alloc(arena, n, sizeof(uint32_t))};
	struct fold_timeline timeline = {dealing->pieces, dealing->n, n + 1};
	struct fold fold;
	int r = told.inside != NULL && told.own != NULL ? fold_make(findings, metering, &timeline, arena, &fold)
							: -ENOMEM;
	if (r == 0 && tells_more(work, &fold, &told))
		take(work, &fold, &told, findings);
	arena_free(arena);
	return r;
}
