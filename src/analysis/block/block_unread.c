/* Blocks that ended before this recorder began to read a sensor. Another rank of the job read the sensor at the time,
 * so here their energy is unknown, not 0 (energy/slice.h). */
#include "analysis/block/block_work.h"
#include "base/util.h"
#include "energy/slice.h"

#include <errno.h>

static int64_t *find_ends(const struct blocks_work *work)
{
	int64_t *end_ns = arena_alloc(work->arena, work->names.n, sizeof(*end_ns));
	for (size_t k = 0; end_ns != NULL && k < work->names.n; k++)
		end_ns[k] = VALUE_MISSING;
	for (size_t i = 0; end_ns != NULL && i < work->run->n_spans; i++) {
		int64_t *last_ns = &end_ns[work->names.of[i]], span_ns = work->run->spans[i].end_ns;
		if (value_ok(span_ns) && (!value_ok(*last_ns) || span_ns > *last_ns))
			*last_ns = span_ns;
	}
	return end_ns;
}

static bool is_unread(const struct run *run, const struct run_device *device, int64_t end_ns)
{
	size_t s = run->n_segments - 1;
	while (s > 0 && run->segments[s].start_ns >= end_ns)
		s--;
	return value_ok(end_ns) && end_ns <= sensor_owner_own_from_ns(run, device, s) &&
		end_ns > run->segments[s].start_ns;
}

static void forget(const struct findings *findings, struct block_finding *block)
{
	for (size_t d = 0; d < findings->n_domains; d++)
		if (findings->domains[d].in_total && !isnan(block->domain_j[d]))
			return;
	block->total_j = block->error_j = block->self_j = block->self_error_j = (double)NAN;
}

int blocks_clear_unread(const struct blocks_work *work, struct findings *findings)
{
	const struct run *run = work->run;
	const int64_t *end_ns = NULL;
	for (size_t d = 0; d < findings->n_domains && run->n_segments > 0; d++) {
		const struct run_device *device = findings->domains[d].device;
		if (device->seen_ns != NULL || sensor_owner_first_other(run, device) == NULL)
			continue;
		if (end_ns == NULL && (end_ns = find_ends(work)) == NULL)
			return -ENOMEM;
		for (size_t k = 0; k < findings->n_blocks; k++)
			if (is_unread(run, device, end_ns[k]))
				findings->blocks[k].domain_j[d] = (double)NAN;
	}
	for (size_t k = 0; end_ns != NULL && k < findings->n_blocks; k++)
		forget(findings, &findings->blocks[k]);
	return 0;
}
