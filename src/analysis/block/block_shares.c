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
	work->outside = (struct stay){.on = true, .since = moments_hold(&work->moments)};
	return 0;
}

void shares_pass(struct blocks_work *work)
{
	double now_j = moments_now(&work->moments)->target_j, more_j = now_j - work->seen_j;
	if (work->parties == 0)
		work->outside_j += more_j;
	else
		work->one_j += more_j / work->parties;
	work->seen_j = now_j;
}

static void stay_begin(struct blocks_work *work, struct stay *stay)
{
	*stay = (struct stay){.on = true, .since = moments_hold(&work->moments), .since_one_j = work->one_j};
}

// Energy and time of the interval; its errors are added to `errors`.
static struct share stay_end(struct blocks_work *work, struct stay *stay, struct part_error *errors)
{
	const struct moment *now = moments_now(&work->moments), *since = &work->moments.at[stay->since];
	struct share share = {.j = work->one_j - stay->since_one_j,
		.ns = (double)((uint64_t)now->t_ns - (uint64_t)since->t_ns)};
	double target_j = now->target_j - since->target_j;
	double fraction = target_j > 0 ? share.j / target_j : 1.0 / (work->parties > 0 ? work->parties : 1);
	if (now != since && work->moments.any_energy)
		moments_add_errors(&work->moments, stay->since, fraction < 1 ? fraction : 1, errors);
	moments_let_go(&work->moments, stay->since);
	stay->on = false;
	return share;
}

static void change_parties(struct blocks_work *work, int64_t by)
{
	uint32_t before = work->parties;
	work->parties = (uint32_t)(before + by);
	if (before == 0 && by > 0) {
		if (work->moments.any_energy)
			moments_add_errors(&work->moments, work->outside.since, 1, work->outside_errors);
		moments_let_go(&work->moments, work->outside.since);
	} else if (before > 0 && work->parties == 0) {
		stay_begin(work, &work->outside);
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
	if (!process->stay.on)
		return;
	struct share share = stay_end(work, &process->stay, process->had.errors);
	process->had.j += share.j;
	process->had.ns += share.ns;
	change_parties(work, -(int64_t)process->ranges);
}

static void ranges_go_on(struct blocks_work *work, struct work_process *process)
{
	if (process->threads > 0 || process->ranges == 0)
		return;
	stay_begin(work, &process->stay);
	change_parties(work, process->ranges);
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
		struct share share = stay_end(work, &thread->stay, work->blocks[span->block].self.errors);
		give(work, span, share.j, share.ns);
	}
	thread->top = top;
	if (top != BLOCK_NONE)
		stay_begin(work, &thread->stay);
	if (before == BLOCK_NONE) {
		list_thread(work, thread);
		ranges_pause(work, process);
		process->threads++;
		change_parties(work, 1);
	} else if (top == BLOCK_NONE) {
		unlist_thread(work, thread);
		process->threads--;
		change_parties(work, -1);
		ranges_go_on(work, process);
	}
}

void shares_range_begin(struct blocks_work *work, struct open_span *range)
{
	struct work_process *process = &work->processes[range->process];
	ranges_pause(work, process);
	range->had_j = process->had.j;
	range->had_ns = process->had.ns;
	memcpy(range->had_errors, process->had.errors, work->findings->n_domains * sizeof(*range->had_errors));
	process->ranges++;
	ranges_go_on(work, process);
}

void shares_range_end(struct blocks_work *work, const struct open_span *range)
{
	struct work_process *process = &work->processes[range->process];
	ranges_pause(work, process);
	give(work, range, process->had.j - range->had_j, process->had.ns - range->had_ns);
	struct part_error *errors = work->blocks[range->block].self.errors;
	for (size_t d = 0; d < work->findings->n_domains; d++) {
		const struct part_error *now = &process->had.errors[d], *then = &range->had_errors[d];
		errors[d].variance_j2 += now->variance_j2 - then->variance_j2;
		errors[d].linear_j += now->linear_j - then->linear_j;
		errors[d].doubt_j += now->doubt_j - then->doubt_j;
	}
	process->ranges--;
	ranges_go_on(work, process);
}

void shares_end(struct blocks_work *work)
{
	change_parties(work, 1); // closes the interval outside of all blocks
}

// The error of a part of an energy; the part is assumed to have the same mixture of domains as the whole.
static double error_of(const struct blocks_work *work, const struct part_error *errors, double part_j,
	const double *domain_j, double whole_j)
{
	struct error_sum sum = {0};
	for (size_t d = 0; d < work->findings->n_domains; d++) {
		const struct domain_finding *domain = &work->findings->domains[d];
		if (!domain->in_total || work->moments.walks[d].attribution == NULL)
			continue;
		double j = whole_j > 0 ? part_j * domain_j[d] / whole_j : 0;
		error_sum_add(&sum, domain, part_error_j(&errors[d], domain, j), errors[d].doubt_j);
	}
	return error_sum_j(&sum);
}

void shares_finish(const struct blocks_work *work, uint32_t number, struct block_finding *finding)
{
	const struct share *self = &work->blocks[number].self;
	finding->self_time_s = self->ns / 1e9;
	finding->self_j = finding->self_error_j = (double)NAN;
	if (!work->moments.any_energy)
		return;
	finding->self_j = self->j;
	finding->self_error_j = error_of(work, self->errors, self->j, finding->domain_j, finding->total_j);
}

int shares_finish_outside(const struct blocks_work *work, struct findings *findings)
{
	findings->outside_j = findings->outside_error_j = (double)NAN;
	if (!work->moments.any_energy)
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
