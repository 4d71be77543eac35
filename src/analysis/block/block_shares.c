#include "analysis/block/block_work.h"

#include "base/util.h"

#include <errno.h>

int shares_init(struct blocks_work *work)
{
	size_t n_domains = work->findings->n_domains, n = work->names.n;
	struct part_error *errors = arena_alloc(work->arena, n * n_domains, sizeof(*errors));
	work->outside_errors = arena_alloc(work->arena, n_domains, sizeof(*errors));
	if (errors == NULL || work->outside_errors == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < n; k++)
		work->blocks[k].self.errors = errors + k * n_domains;
	work->outside = (struct interval){.on = true, .since = checkpoints_hold(&work->checkpoints)};
	return 0;
}

void shares_pass(struct blocks_work *work)
{
	double now_j = checkpoints_current(&work->checkpoints)->target_j, more_j = now_j - work->seen_j;
	if (work->active_count == 0)
		work->outside_j += more_j;
	else
		work->one_j += more_j / work->active_count;
	work->seen_j = now_j;
}

static void interval_begin(struct blocks_work *work, struct interval *interval)
{
	*interval = (struct interval){.on = true,
		.since = checkpoints_hold(&work->checkpoints),
		.since_one_j = work->one_j};
}

// Energy and time of the interval; its errors are added to `errors`.
static struct share interval_end(struct blocks_work *work, struct interval *interval, struct part_error *errors)
{
	const struct checkpoint *now = checkpoints_current(&work->checkpoints),
				*since = &work->checkpoints.at[interval->since];
	struct share share = {.j = work->one_j - interval->since_one_j,
		.ns = (double)((uint64_t)now->t_ns - (uint64_t)since->t_ns)};
	double target_j = now->target_j - since->target_j;
	double fraction = target_j > 0 ? share.j / target_j : 1.0 / (work->active_count > 0 ? work->active_count : 1);
	if (now != since && work->checkpoints.any_energy)
		checkpoints_add_errors(&work->checkpoints, interval->since, fraction < 1 ? fraction : 1, errors);
	checkpoints_release(&work->checkpoints, interval->since);
	interval->on = false;
	return share;
}

static void change_active_count(struct blocks_work *work, int64_t by)
{
	uint32_t before = work->active_count;
	work->active_count = (uint32_t)(before + by);
	if (before == 0 && by > 0) {
		if (work->checkpoints.any_energy)
			checkpoints_add_errors(&work->checkpoints, work->outside.since, 1, work->outside_errors);
		checkpoints_release(&work->checkpoints, work->outside.since);
	} else if (before > 0 && work->active_count == 0) {
		interval_begin(work, &work->outside);
	}
}

static void give(struct blocks_work *work, const struct open_span *span, double j, double ns)
{
	struct share *self = &work->blocks[span->block].self;
	struct path *path = &work->paths.at[span->path];
	self->j += j;
	self->ns += ns;
	path->self_j += j;
	path->self_ns += ns;
}

// Closes the current interval of a process's ranges.
static void ranges_pause(struct blocks_work *work, struct work_process *process)
{
	if (!process->interval.on)
		return;
	struct share share = interval_end(work, &process->interval, process->share_of_ranges.errors);
	process->share_of_ranges.j += share.j;
	process->share_of_ranges.ns += share.ns;
	change_active_count(work, -(int64_t)process->ranges);
}

static void ranges_go_on(struct blocks_work *work, struct work_process *process)
{
	if (process->threads > 0 || process->ranges == 0)
		return;
	interval_begin(work, &process->interval);
	change_active_count(work, process->ranges);
}

static void list_thread(struct blocks_work *work, struct work_thread *thread)
{
	thread->listed = (uint32_t)work->n_busy;
	work->busy_threads[work->n_busy++] = (uint32_t)(thread - work->threads);
}

static void unlist_thread(struct blocks_work *work, const struct work_thread *thread)
{
	uint32_t last = work->busy_threads[--work->n_busy];
	work->busy_threads[thread->listed] = last;
	work->threads[last].listed = thread->listed;
}

void shares_thread(struct blocks_work *work, struct work_thread *thread, uint32_t top)
{
	struct work_process *process = &work->processes[thread->process];
	uint32_t before = thread->top;
	if (before != BLOCK_NONE) {
		const struct open_span *span = &work->open[before];
		struct share share = interval_end(work, &thread->interval, work->blocks[span->block].self.errors);
		give(work, span, share.j, share.ns);
	}
	thread->top = top;
	if (top != BLOCK_NONE)
		interval_begin(work, &thread->interval);
	if (before == BLOCK_NONE) {
		list_thread(work, thread);
		ranges_pause(work, process);
		process->threads++;
		change_active_count(work, 1);
	} else if (top == BLOCK_NONE) {
		unlist_thread(work, thread);
		process->threads--;
		change_active_count(work, -1);
		ranges_go_on(work, process);
	}
}

void shares_range_begin(struct blocks_work *work, struct open_span *range)
{
	struct work_process *process = &work->processes[range->process];
	ranges_pause(work, process);
	range->begin_j = process->share_of_ranges.j;
	range->begin_ns_share = process->share_of_ranges.ns;
	memcpy(range->begin_errors, process->share_of_ranges.errors,
		work->findings->n_domains * sizeof(*range->begin_errors));
	process->ranges++;
	ranges_go_on(work, process);
}

void shares_range_end(struct blocks_work *work, const struct open_span *range)
{
	struct work_process *process = &work->processes[range->process];
	ranges_pause(work, process);
	give(work, range, process->share_of_ranges.j - range->begin_j,
		process->share_of_ranges.ns - range->begin_ns_share);
	struct part_error *errors = work->blocks[range->block].self.errors;
	for (size_t d = 0; d < work->findings->n_domains; d++) {
		const struct part_error *now = &process->share_of_ranges.errors[d], *then = &range->begin_errors[d];
		errors[d].variance_j2 += now->variance_j2 - then->variance_j2;
		errors[d].linear_j += now->linear_j - then->linear_j;
		errors[d].uncertainty_j += now->uncertainty_j - then->uncertainty_j;
	}
	process->ranges--;
	ranges_go_on(work, process);
}

void shares_end(struct blocks_work *work)
{
	change_active_count(work, 1); // closes the interval outside of all blocks
}

// The error of a part of an energy; the part is assumed to have the same mixture of domains as the whole.
static double error_of(const struct blocks_work *work, const struct part_error *errors, double part_j,
	const double *domain_j, double whole_j)
{
	struct error_sum sum = {0};
	for (size_t d = 0; d < work->findings->n_domains; d++) {
		const struct domain_finding *domain = &work->findings->domains[d];
		if (!domain->in_total || work->checkpoints.walks[d].attribution == NULL)
			continue;
		double j = whole_j > 0 ? part_j * domain_j[d] / whole_j : 0;
		error_sum_add(&sum, domain, part_error_j(&errors[d], domain, j), errors[d].uncertainty_j);
	}
	return error_sum_j(&sum);
}

void shares_finish(const struct blocks_work *work, uint32_t number, struct block_finding *finding)
{
	const struct share *self = &work->blocks[number].self;
	finding->self_time_s = self->ns / 1e9;
	finding->self_j = finding->self_error_j = (double)NAN;
	if (!work->checkpoints.any_energy)
		return;
	finding->self_j = self->j;
	finding->self_error_j = error_of(work, self->errors, self->j, finding->domain_j, finding->total_j);
}

int shares_finish_outside(const struct blocks_work *work, struct findings *findings)
{
	findings->outside_j = findings->outside_error_j = (double)NAN;
	if (!work->checkpoints.any_energy)
		return 0;
	double *domain_j = arena_alloc(work->arena, findings->n_domains, sizeof(*domain_j));
	if (domain_j == NULL)
		return -ENOMEM;
	for (size_t d = 0; d < findings->n_domains; d++)
		domain_j[d] = findings->domains[d].ledger.target_j;
	findings->outside_j = work->outside_j;
	findings->outside_error_j = error_of(work, work->outside_errors, work->outside_j, domain_j,
		findings->ledger.target_j);
	return 0;
}
