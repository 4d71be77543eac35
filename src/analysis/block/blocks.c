#include "analysis/block/blocks.h"

#include "analysis/bench/order.h"
#include "analysis/block/block_work.h"
#include "base/util.h"

#include <errno.h>

static int label_processes(struct blocks_work *work)
{
	const struct run *run = work->run;
	const char **commands = arena_alloc(work->arena, run->n_processes, sizeof(*commands));
	work->process_of = arena_alloc(work->arena, run->n_processes, sizeof(*work->process_of));
	if (commands == NULL || work->process_of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_processes; i++) {
		uint32_t n = keys_number(&work->pids, (uint32_t)run->processes[i].pid);
		if (n == KEYS_NONE)
			return -ENOMEM;
		work->process_of[n] = (uint32_t)i; // if a pid was reused, its latest process
		commands[i] = run->processes[i].command != NULL ? run->processes[i].command : "?";
	}
	return run->n_processes > 0
		? names_make(commands, sizeof(*commands), run->n_processes, work->arena, &work->labels)
		: 0;
}

static int allocate(struct blocks_work *work, struct findings *findings)
{
	size_t n = work->names.n, n_domains = findings->n_domains;
	double *domain_j = arena_alloc(findings->arena, n * n_domains, sizeof(*domain_j));
	struct part_error *errors = arena_alloc(work->arena, n * n_domains, sizeof(*errors));
	findings->blocks = arena_alloc(findings->arena, n, sizeof(*findings->blocks));
	work->blocks = arena_alloc(work->arena, n, sizeof(*work->blocks));
	work->open_blocks = arena_alloc(work->arena, n, sizeof(*work->open_blocks));
	if (domain_j == NULL || errors == NULL || findings->blocks == NULL || work->blocks == NULL ||
		work->open_blocks == NULL)
		return -ENOMEM;
	findings->n_blocks = n;
	for (size_t k = 0; k < n; k++) {
		findings->blocks[k].name = work->names.text[k];
		findings->blocks[k].domain_j = domain_j + k * n_domains;
		work->blocks[k].errors = errors + k * n_domains;
	}
	return 0;
}

static const char *stack_name(const struct blocks_work *work, const struct path *path, struct arena *arena)
{
	if (path->parent != PATH_NONE)
		return work->names.text[path->name];
	if (path->name < work->labels.n)
		return work->labels.text[path->name];
	if (path->name == work->labels.n)
		return "unknown process";
	return arena_printf(arena, "pid %u", path->name - (uint32_t)work->labels.n);
}

static int keep_stacks(const struct blocks_work *work, struct findings *findings)
{
	size_t n = work->paths.keys.n;
	struct stack_finding *stacks = arena_alloc(findings->arena, n, sizeof(*stacks));
	if (stacks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct path *path = &work->paths.at[i];
		stacks[i] = (struct stack_finding){.parent = path->parent,
			.name = stack_name(work, path, findings->arena),
			.self_j = work->checkpoints.any_energy ? path->self_j : (double)NAN,
			.self_time_s = path->self_ns / 1e9};
		if (stacks[i].name == NULL)
			return -ENOMEM;
	}
	findings->stacks = stacks;
	findings->n_stacks = n;
	return 0;
}

// 95th percentile of a block's call durations. It is the duration of one call, not interpolated.
static int percentiles(const struct blocks_work *work, struct findings *findings)
{
	const struct run *run = work->run;
	double *times_s = arena_alloc(work->arena, run->n_spans, sizeof(*times_s));
	size_t *ends = arena_alloc(work->arena, findings->n_blocks, sizeof(*ends)), end = 0;
	if (times_s == NULL || ends == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < findings->n_blocks; end += (size_t)findings->blocks[k++].calls)
		ends[k] = end; // for now the index at which its times begin
	for (const struct run_span *span = run->spans; span < run->spans + run->n_spans; span++)
		if (block_has_ended(span))
			times_s[ends[work->names.of[span - run->spans]]++] = (double)((uint64_t)span->end_ns -
										     (uint64_t)span->begin_ns) /
				1e9;
	for (size_t k = 0; k < findings->n_blocks; k++) {
		size_t n = (size_t)findings->blocks[k].calls;
		findings->blocks[k].p95_s = n > 0 ? order_select(times_s + ends[k] - n, n, n - 1 - n / 20)
						  : (double)NAN;
	}
	return 0;
}

static int make(struct blocks_work *work, const struct metering *metering, struct findings *findings)
{
	const struct run *run = work->run;
	if (names_make(&run->spans[0].name, sizeof(run->spans[0]), run->n_spans, work->arena, &work->names) < 0 ||
		allocate(work, findings) < 0 || label_processes(work) < 0 || units_init(work) < 0)
		return -ENOMEM;
	deconvolve_begin(work, metering);
	if (blocks_sweep(work) < 0)
		return -ENOMEM;
	for (size_t k = 0; k < findings->n_blocks; k++) {
		struct block_finding *block = &findings->blocks[k];
		calls_finish(work, (uint32_t)k, block);
		shares_finish(work, (uint32_t)k, block);
	}
	if (percentiles(work, findings) < 0 || blocks_clear_unread(work, findings) < 0)
		return -ENOMEM;
	for (size_t k = 0; k < findings->n_blocks; k++) {
		struct block_finding *block = &findings->blocks[k];
		block->method = isnan(block->total_j) ? BLOCK_NO_ENERGY : BLOCK_INTERPOLATED;
		block->resolved = is_resolved(block->total_j, block->error_j);
	}
	if (shares_finish_outside(work, findings) < 0 || keep_stacks(work, findings) < 0 ||
		deconvolve_finish(work, metering, findings) < 0)
		return -ENOMEM;
	return units_finish(work, findings);
}

static void finish(struct blocks_work *work)
{
	checkpoints_finish(&work->checkpoints);
	keys_finish(&work->thread_keys);
	keys_finish(&work->process_keys);
	keys_finish(&work->pids);
	keys_finish(&work->units.ids);
	keys_finish(&work->units.keys);
	paths_finish(&work->paths);
	free(work->threads);
	free(work->processes);
	free(work->open);
	free(work->units.sums);
	free(work->busy_threads);
	free(work->deconvolution.pieces);
}

int blocks_make(struct findings *findings, const struct columns *columns, const struct windows *windows,
	const struct metering *metering, struct arena *scratch)
{
	struct blocks_work work = {.findings = findings,
		.run = findings->run,
		.columns = columns,
		.arena = scratch,
		.free_open = BLOCK_NONE};
	findings->outside_j = findings->outside_error_j = (double)NAN;
	if (findings->run->n_spans == 0)
		return 0;
	if (findings->run->n_spans >= BLOCK_NONE || findings->run->n_user_metrics >= BLOCK_NONE)
		return -ENOMEM;
	int r = checkpoints_init(&work.checkpoints, findings, metering, windows, scratch);
	if (r == 0)
		r = make(&work, metering, findings);
	finish(&work);
	return r;
}
