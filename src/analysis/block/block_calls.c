#include "analysis/block/block_work.h"

#include "base/util.h"

#include <errno.h>

static void open_block(struct blocks_work *work, uint32_t number)
{
	struct block_work *block = &work->blocks[number];
	block->since = checkpoints_hold(&work->checkpoints);
	block->listed = (uint32_t)work->n_open_blocks;
	work->open_blocks[work->n_open_blocks++] = number;
}

void calls_begin(struct blocks_work *work, const struct open_span *open, bool has_sample)
{
	const struct run_span *span = &work->run->spans[open->span];
	struct block_work *block = &work->blocks[open->block];
	tally_add(&block->time_s, (double)((uint64_t)span->end_ns - (uint64_t)span->begin_ns) / 1e9);
	block->non_empty_calls += has_sample;
	block->unwound += span->close == SPAN_UNWOUND;
	block->cut += span->close == SPAN_AT_THREAD_END || span->close == SPAN_AT_EXEC || span->close == SPAN_AT_DEATH;
	if (span->cpu_ns >= 0) {
		block->thread_cpu_ns += (double)span->cpu_ns;
		block->thread_cpu_known = true;
	}
	if (block->open++ == 0)
		open_block(work, open->block);
}

// Adds the target's energy and CPU time since the block was opened.
static void measure(struct blocks_work *work, uint32_t number)
{
	struct checkpoints *checkpoints = &work->checkpoints;
	const struct findings *f = work->findings;
	struct block_work *block = &work->blocks[number];
	const struct checkpoint *now = checkpoints_current(checkpoints), *since = &checkpoints->at[block->since];
	double *domain_j = f->blocks[number].domain_j;
	block->active_ns += (double)((uint64_t)now->t_ns - (uint64_t)since->t_ns);
	block->cpu_ns += now->cpu_ns - since->cpu_ns;
	block->cpu_unknown_ns += now->cpu_unknown_ns - since->cpu_unknown_ns;
	for (size_t d = 0; d < f->n_domains; d++) {
		if (checkpoints->walks[d].attribution == NULL)
			continue;
		domain_j[d] += checkpoints_point(checkpoints, checkpoints->now, d)->part.target_j -
			checkpoints_point(checkpoints, block->since, d)->part.target_j;
	}
	checkpoints_add_errors(checkpoints, block->since, 1, block->errors);
}

void calls_end(struct blocks_work *work, const struct open_span *open)
{
	struct block_work *block = &work->blocks[open->block];
	if (--block->open > 0)
		return;
	measure(work, open->block);
	checkpoints_release(&work->checkpoints, block->since);
	uint32_t last = work->open_blocks[--work->n_open_blocks];
	work->open_blocks[block->listed] = last;
	work->blocks[last].listed = block->listed;
}

int calls_sample(struct blocks_work *work, size_t sample)
{
	double row[TRACKING_METRICS];
	if (work->n_open_blocks > 0)
		columns_at(work->columns, sample, row);
	for (size_t i = 0; i < work->n_open_blocks; i++) {
		struct block_work *block = &work->blocks[work->open_blocks[i]];
		if (block->columns == NULL)
			block->columns = arena_alloc(work->arena, TRACKING_METRICS, sizeof(*block->columns));
		if (block->columns == NULL)
			return -ENOMEM;
		block->timepoints++;
		for (size_t c = 0; c < TRACKING_METRICS; c++)
			tally_add(&block->columns[c], row[c]);
	}
	return 0;
}

// Adds up a block's domains; *errors has one entry per domain.
static void energy(const struct blocks_work *work, const struct part_error *errors, struct block_finding *finding)
{
	const struct findings *f = work->findings;
	struct error_sum error = {0};
	finding->total_j = (double)NAN;
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct domain_finding *domain = &f->domains[d];
		double j = finding->domain_j[d];
		if (work->checkpoints.walks[d].attribution == NULL)
			finding->domain_j[d] = (double)NAN;
		else if (domain->in_total) {
			finding->total_j = isnan(finding->total_j) ? j : finding->total_j + j;
			error_sum_add(&error, domain, part_error_j(&errors[d], domain, j), errors[d].uncertainty_j);
		}
	}
	finding->error_j = isnan(finding->total_j) ? (double)NAN : error_sum_j(&error);
}

void calls_finish(const struct blocks_work *work, uint32_t number, struct block_finding *finding)
{
	const struct block_work *block = &work->blocks[number];
	finding->calls = block->time_s.n;
	finding->non_empty_calls = block->non_empty_calls;
	finding->timepoints = block->timepoints;
	finding->unwound = block->unwound;
	finding->cut = block->cut;
	finding->compute_time_s = tally_value_stats(&block->time_s);
	if (finding->calls == 0)
		finding->compute_time_s.total = 0;
	finding->active_s = block->active_ns / 1e9;
	finding->cpu_s = block->cpu_unknown_ns > 0 || work->run->n == 0 ? (double)NAN
											: block->cpu_ns / 1e9;
	finding->thread_cpu_s = block->thread_cpu_known ? block->thread_cpu_ns / 1e9 : (double)NAN;
	static const struct tally none = {0};
	for (size_t c = 0; c < TRACKING_METRICS; c++)
		finding->columns[c] = tally_value_stats(block->columns != NULL ? &block->columns[c] : &none);
	energy(work, block->errors, finding);
}
