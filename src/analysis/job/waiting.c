/* Time in which a rank waits for others: while a waiting block is open, in any thread. */
#include "analysis/job/internal.h"

#include "base/util.h"

#include <errno.h>
#include <fnmatch.h>

/* Calls that return when other ranks have done something. A collective also moves data; the network's part of its time
 * can't be separated from outside. */
const char *const job_waiting_names[] = {"MPI_Barrier", "MPI_Ibarrier", "MPI_Wait*", "MPI_Probe", "MPI_Mprobe",
	"MPI_Recv", "MPI_Mrecv", "MPI_Sendrecv*", "MPI_Ssend", "MPI_Allreduce", "MPI_Reduce*", "MPI_Allgather*",
	"MPI_Alltoall*", "MPI_Bcast", "MPI_Gather*", "MPI_Scatter*", "MPI_Scan", "MPI_Exscan", "MPI_Neighbor_*",
	"MPI_Win_fence", "MPI_Win_wait", "*barrier*", "*all_reduce*", "*allreduce*", "*all_gather*", "*allgather*",
	"*reduce_scatter*", "*all_to_all*", "*alltoall*", "*broadcast_coalesced*", "*wait_for_*", "wait", "waiting",
	NULL};

bool waiting_is(const struct job_options *options, const char *block)
{
	const char *const *patterns = options != NULL && options->waiting != NULL ? options->waiting
										  : job_waiting_names;
	for (; *patterns != NULL; patterns++)
		if (fnmatch(*patterns, block, FNM_CASEFOLD) == 0)
			return true;
	return false;
}

struct interval {
	int64_t from_ns, to_ns;
};

static int by_begin(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static void add_interval(struct member *member, const struct interval *interval)
{
	member->waiting_s += (double)(interval->to_ns - interval->from_ns) / 1e9;
}

static void add_union(struct member *member, struct interval *all, size_t n)
{
	qsort(all, n, sizeof(*all), by_begin);
	struct interval open = all[0];
	for (size_t i = 1; i < n; i++) {
		if (all[i].from_ns > open.to_ns) {
			add_interval(member, &open);
			open = all[i];
		} else if (all[i].to_ns > open.to_ns) {
			open.to_ns = all[i].to_ns;
		}
	}
	add_interval(member, &open);
}

static int64_t within(const struct member *member, int64_t t_ns)
{
	return t_ns < member->start_ns ? member->start_ns : t_ns > member->end_ns ? member->end_ns : t_ns;
}

// Waiting time from spans. Spans that were open when the rank died last until then.
static int from_spans(const struct job_work *work, struct member *member, struct arena *scratch)
{
	const struct run *run = &member->run;
	struct interval *all = arena_alloc(scratch, run->n_spans, sizeof(*all));
	size_t n = 0;
	const char *name = NULL;
	bool waits = false;
	if (all == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_spans; i++) {
		const struct run_span *span = &run->spans[i];
		if (span->name != name) { // equal names share one pointer
			name = span->name;
			waits = waiting_is(work->options, name);
		}
		if (waits)
			all[n++] = (struct interval){within(member, span->begin_ns),
				within(member, value_ok(span->end_ns) ? span->end_ns : member->end_ns)};
	}
	if (n == 0)
		return 0;
	member->waiting_s = 0;
	add_union(member, all, n);
	return 0;
}

/* The target's energy while a waiting block was the innermost one, so that nested waits count once. Block energies are
 * better than linear interpolation between two samples, because waits are short and many. */
static void energy(const struct job_work *work, struct member *member)
{
	const struct findings *f = &member->findings;
	double sum_j = 0;
	if (isnan(member->waiting_s))
		return;
	for (size_t i = 0; i < f->n_blocks; i++) {
		const struct block_finding *block = &f->blocks[i];
		if (waiting_is(work->options, block->name))
			sum_j += block->self_error_j < block->self_j || block->self_j == 0 ? block->self_j
											   : (double)NAN;
	}
	member->waiting_j = sum_j; // unknown if one block's energy is not resolved
}

/* Waiting time of blocks that were stored as figures: time in which a waiting block was the innermost one, so that
 * nested waits count once. Several threads can wait at the same time. */
static void from_blocks(const struct job_work *work, struct member *member)
{
	double waiting_s = (double)NAN, waiting_j = (double)NAN;
	for (size_t i = 0; i < member->from->n_blocks; i++) {
		const struct stored_block *block = &member->from->blocks[i];
		if (!waiting_is(work->options, block->name))
			continue;
		waiting_s = (isnan(waiting_s) ? 0 : waiting_s) + fmin(block->self_time_s, block->active_s);
		waiting_j = (isnan(waiting_j) ? 0 : waiting_j) + block->self_j;
	}
	member->waiting_s = fmin(waiting_s, (double)(member->end_ns - member->start_ns) / 1e9);
	if (isnan(waiting_s))
		member->waiting_s = (double)NAN;
	member->waiting_j = waiting_j;
}

int waiting_make(struct job_work *work, struct member *member)
{
	if (member->from->blocks != NULL) {
		from_blocks(work, member);
		return 0;
	}
	struct arena *scratch = arena_new();
	int r = scratch != NULL ? from_spans(work, member, scratch) : -ENOMEM;
	arena_free(scratch);
	energy(work, member);
	return r;
}
