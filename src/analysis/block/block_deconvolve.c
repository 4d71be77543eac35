#include "analysis/block/block_work.h"

#include "base/util.h"

#include <errno.h>

enum {
	PIECES_MAX = 1000000,  // about half a second of deconvolution; above that energies are interpolated linearly
	ACTIVE_COUNT_MAX = 64, // at one instant
	BLOCKS_MAX = 256,      // with more names there are too few calls of each
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
			deconvolve_helps(work->findings, metering, calls[k].ns / 1e9 / (double)calls[k].n, calls[k].n))
			return true;
	return false;
}

void deconvolve_begin(struct blocks_work *work, const struct metering *metering)
{
	work->deconvolution.wanted = !work->findings->quick && work->checkpoints.any_energy &&
		work->names.n <= BLOCKS_MAX && work->run->n_spans <= PIECES_MAX / 2 && any_short(work, metering);
}

static void stop_deconvolving(struct deconvolution *deconvolution)
{
	free(deconvolution->pieces);
	*deconvolution = (struct deconvolution){0};
}

static void deal(struct blocks_work *work, const struct open_span *span)
{
	struct deconvolution *deconvolution = &work->deconvolution;
	if (!deconvolution->wanted)
		return;
	struct deconvolve_interval *pieces = array_reserve(deconvolution->pieces, deconvolution->n,
		&deconvolution->capacity, sizeof(*pieces), 4096);
	if (pieces == NULL || deconvolution->n == PIECES_MAX) {
		stop_deconvolving(deconvolution);
		return;
	}
	deconvolution->pieces = pieces;
	pieces[deconvolution->n++] = (struct deconvolve_interval){.begin_ns = deconvolution->complete_until_ns,
		.end_ns = checkpoints_current(&work->checkpoints)->t_ns,
		.column = span->path + 1,
		.weight = 1 / (float)work->active_count};
}

static void distribute_ranges(struct blocks_work *work)
{
	for (uint32_t p = 0; p < work->process_keys.n; p++)
		for (uint32_t index = work->processes[p].interval.on ? work->processes[p].last_range : BLOCK_NONE;
			index != BLOCK_NONE; index = work->open[index].below)
			deal(work, &work->open[index]);
}

void deconvolve_pass(struct blocks_work *work)
{
	struct deconvolution *deconvolution = &work->deconvolution;
	int64_t now_ns = checkpoints_current(&work->checkpoints)->t_ns;
	if (!deconvolution->wanted)
		return;
	if (work->active_count > ACTIVE_COUNT_MAX || work->process_keys.n > ACTIVE_COUNT_MAX) {
		stop_deconvolving(deconvolution);
		return;
	}
	if (work->active_count > 0 && now_ns > deconvolution->complete_until_ns) {
		for (size_t i = 0; i < work->n_busy; i++)
			deal(work, &work->open[work->threads[work->busy_threads[i]].top]);
		if (work->active_count > work->n_busy)
			distribute_ranges(work);
	}
	deconvolution->complete_until_ns = now_ns;
}

/* ---- results ---- */

struct block_columns {          // columns and interpolated energy of one block
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

static void collect(const struct blocks_work *work, uint32_t block, struct block_columns *columns)
{
	columns->n_inside = columns->n_own = 0;
	columns->inside_j = 0;
	for (uint32_t i = 0; i < work->paths.keys.n; i++) {
		const struct path *path = &work->paths.at[i];
		if (path->parent == PATH_NONE || !stack_has(work, i, block))
			continue;
		columns->inside[columns->n_inside++] = i + 1;
		columns->inside_j += path->self_j;
		if (path->name == block)
			columns->own[columns->n_own++] = i + 1;
	}
}

/* The stacks of a block give its total energy only if no other block used energy while it ran. If all these stacks end in
 * the block itself, this is also its own energy. Otherwise the total with the smaller error is used, if it is not below
 * the block's own energy. */
static void take_total(const struct fold *fold, const struct block_columns *columns, struct block_finding *block)
{
	if (!(fabs(columns->inside_j - block->total_j) <= alone * block->total_j))
		return;
	struct deconvolve_energy energy = deconvolve_energy_of(fold, columns->inside, columns->n_inside);
	bool own_alone = columns->n_own == columns->n_inside, capacity = block->total_j >= block->self_j;
	if (isnan(energy.j) || (!own_alone && capacity && energy.error_j >= block->error_j))
		return;
	block->total_j = energy.j;
	block->error_j = energy.error_j;
	block->method = BLOCK_FOLDED;
	for (size_t d = 0; d < fold->n_domains; d++) {
		if (fold->domains[d] == NULL || isnan(block->domain_j[d]))
			continue;
		double j = deconvolve_domain_energy_of(fold, d, columns->inside, columns->n_inside).j;
		block->domain_j[d] = isnan(j) ? block->domain_j[d] : j;
	}
	block->resolved = is_resolved(block->total_j, block->error_j);
}

// Whether deconvolution gives smaller errors of the blocks' own energies, over all blocks, than linear interpolation.
static bool is_better_resolved(const struct blocks_work *work, const struct fold *fold, struct block_columns *columns)
{
	const struct findings *f = work->findings;
	double folded_j2 = 0, interpolated_j2 = 0;
	for (uint32_t k = 0; k < f->n_blocks; k++) {
		collect(work, k, columns);
		struct deconvolve_energy own = deconvolve_energy_of(fold, columns->own, columns->n_own);
		folded_j2 += own.error_j * own.error_j;
		interpolated_j2 += f->blocks[k].self_error_j * f->blocks[k].self_error_j;
	}
	return folded_j2 < interpolated_j2; // false if unknown (NaN)
}

static void take(struct blocks_work *work, const struct fold *fold, struct block_columns *columns,
	struct findings *findings)
{
	static const uint32_t outside[] = {0};
	for (uint32_t k = 0; k < findings->n_blocks; k++) {
		struct block_finding *block = &findings->blocks[k];
		collect(work, k, columns);
		struct deconvolve_energy own = deconvolve_energy_of(fold, columns->own, columns->n_own);
		block->self_j = columns->n_own > 0 ? own.j : block->self_j;
		block->self_error_j = columns->n_own > 0 ? own.error_j : block->self_error_j;
		if (columns->n_own > 0)
			take_total(fold, columns, block);
	}
	for (uint32_t i = 0; i < findings->n_stacks; i++)
		if (findings->stacks[i].parent != STACK_NONE)
			findings->stacks[i].self_j = deconvolve_energy_of(fold, &(uint32_t){i + 1}, 1).j;
	struct deconvolve_energy rest = deconvolve_energy_of(fold, outside, 1);
	findings->outside_j = rest.j;
	findings->outside_error_j = rest.error_j;
}

int deconvolve_finish(struct blocks_work *work, const struct metering *metering, struct findings *findings)
{
	const struct deconvolution *deconvolution = &work->deconvolution;
	size_t n = work->paths.keys.n;
	if (!deconvolution->wanted || deconvolution->n == 0)
		return 0;
	struct arena *arena = arena_new(); // separate arena: deconvolution needs much memory, which is freed afterwards
	if (arena == NULL)
		return -ENOMEM;
	struct block_columns columns = {.inside = arena_alloc(arena, n, sizeof(uint32_t)),
		.own = arena_alloc(arena, n, sizeof(uint32_t))};
	struct deconvolve_timeline timeline = {deconvolution->pieces, deconvolution->n, n + 1};
	struct fold fold;
	int r = columns.inside != NULL && columns.own != NULL
		? deconvolve_make(findings, metering, &timeline, arena, &fold)
		: -ENOMEM;
	if (r == 0 && is_better_resolved(work, &fold, &columns))
		take(work, &fold, &columns, findings);
	arena_free(arena);
	return r;
}
