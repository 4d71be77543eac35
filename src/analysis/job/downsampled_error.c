/* Error of code blocks of a job of which only some samples were read. A block's energy is interpolated linearly between
 * two readings. Both ends of each stretch in which the block ran lie between readings, and the code before and after
 * may have used less or more power. The error therefore grows by the part of the block's time that is closer to an end
 * than the interval between readings: all of it for calls shorter than that interval, almost nothing for calls that
 * follow one another without a pause. */
#include "analysis/job/internal.h"

#include "base/util.h"

#include <errno.h>

struct call {
	uint32_t block;
	int64_t begin_ns, end_ns;
};

static int by_block_and_begin(const void *a, const void *b)
{
	const struct call *x = a, *y = b;
	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static size_t list_calls(const struct findings *f, struct call *calls)
{
	const struct run *run = f->run;
	const char *name = NULL;
	uint32_t block = UINT32_MAX;
	size_t n = 0;
	for (size_t i = 0; i < run->n_spans; i++) {
		const struct run_span *span = &run->spans[i];
		if (span->name != name) { // equal names share one pointer
			name = span->name;
			block = findings_block(f, name);
		}
		if (block != UINT32_MAX && value_ok(span->end_ns))
			calls[n++] = (struct call){block, span->begin_ns, span->end_ns};
	}
	qsort(calls, n, sizeof(*calls), by_block_and_begin);
	return n;
}

static void widen(struct block_finding *block, double part)
{
	block->error_j += part * fabs(block->total_j);
	block->self_error_j += part * fabs(block->self_j);
	block->resolved = is_resolved(block->total_j, block->error_j);
}

static void add_uncertainty_to_blocks(struct findings *f, const struct call *calls, size_t n, double every_s)
{
	const double pause_s = 0.05 * every_s; // too short to matter
	for (size_t i = 0; i < n;) {
		uint32_t block = calls[i].block;
		double intervals = 1, active_s = 0;
		int64_t end_ns = calls[i].begin_ns;
		for (; i < n && calls[i].block == block; i++) {
			intervals += (double)(calls[i].begin_ns - end_ns) / 1e9 > pause_s;
			int64_t from_ns = calls[i].begin_ns > end_ns ? calls[i].begin_ns : end_ns;
			active_s += calls[i].end_ns > from_ns ? (double)(calls[i].end_ns - from_ns) / 1e9 : 0;
			end_ns = calls[i].end_ns > end_ns ? calls[i].end_ns : end_ns;
		}
		widen(&f->blocks[block], active_s > 0 ? fmin(1, every_s * intervals / active_s) : 1);
	}
}

int downsampled_blocks_add_error(const struct job_work *work, struct member *member)
{
	struct arena *scratch = arena_new();
	struct call *calls = scratch != NULL ? arena_alloc(scratch, member->run.n_spans, sizeof(*calls)) : NULL;
	if (calls != NULL)
		add_uncertainty_to_blocks(&member->findings, calls, list_calls(&member->findings, calls),
			(double)work->runs->every_ns / 1e9);
	arena_free(scratch);
	return calls != NULL ? 0 : -ENOMEM;
}
