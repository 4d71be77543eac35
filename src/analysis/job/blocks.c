/* Code blocks over all ranks: the combined figures of each name, and their spread over ranks. */
#include "analysis/job/internal.h"

#include "analysis/names.h"
#include "base/util.h"

#include <errno.h>

struct entry { // figures of one block in one recording
	const char *name;
	uint32_t number; // number of the name
	size_t rank;
	const struct member *member;
	const struct block_finding *block; // either block or stored is set
	const struct stored_block *stored;
};

static size_t count_entries(const struct job_work *work)
{
	size_t n = 0;
	for (size_t i = 0; i < work->runs->n; i++) {
		const struct member *member = &work->members[i];
		if (!member->nested)
			n += member->from->blocks != NULL ? member->from->n_blocks : member->findings.n_blocks;
	}
	return n;
}

static void collect(const struct job_work *work, struct entry *entries)
{
	size_t n = 0;
	for (size_t i = 0; i < work->runs->n; i++) {
		const struct member *member = &work->members[i];
		if (member->nested)
			continue;
		for (size_t k = 0; member->from->blocks != NULL && k < member->from->n_blocks; k++)
			entries[n++] = (struct entry){.name = member->from->blocks[k].name,
				.member = member,
				.rank = member->rank,
				.stored = &member->from->blocks[k]};
		for (size_t k = 0; member->from->blocks == NULL && k < member->findings.n_blocks; k++)
			entries[n++] = (struct entry){.name = member->findings.blocks[k].name,
				.member = member,
				.rank = member->rank,
				.block = &member->findings.blocks[k]};
	}
}

static int by_name_and_rank(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static struct block_finding finding_of(const struct entry *entry)
{
	if (entry->block != NULL)
		return *entry->block;
	const struct stored_block *s = entry->stored;
	return (struct block_finding){.name = s->name,
#define BLOCK_COUNT(member, key, column, ...) .member = s->column,
#define BLOCK_FIGURE(member, column, ...) .member = s->column,
#include "metric/blocks.def"
	};
}

struct pooled { // statistics of several groups combined
	double n, total, squares, min, max;
};

// Combines groups by count, mean and population deviation; the differences between the groups' means are added.
static void pool(struct pooled *p, const struct value_stats *stats, int64_t count)
{
	if (count <= 0 || isnan(stats->mean))
		return;
	double n = (double)count, apart = p->n > 0 ? stats->mean - p->total / p->n : 0;
	p->squares += n * stats->std * stats->std + apart * apart * n * p->n / (n + p->n);
	p->min = p->n > 0 ? fmin(p->min, stats->min) : stats->min;
	p->max = p->n > 0 ? fmax(p->max, stats->max) : stats->max;
	p->total += stats->total;
	p->n += n;
}

static struct value_stats pooled_stats(const struct pooled *p)
{
	const double none = (double)NAN;
	if (p->n <= 0)
		return (struct value_stats){none, none, none, none, 0};
	return (struct value_stats){p->min, p->max, p->total / p->n, sqrt(p->squares / p->n), p->total};
}

static int64_t add_counts(int64_t total, int64_t one)
{
	return value_ok(total) && value_ok(one) ? total + one : VALUE_MISSING;
}

// The largest value over the entries that have calls; NaN if it is unknown for one of them. Add the total's calls
// first.
static double most(const struct block_finding *total, const struct block_finding *one, double most, double figure)
{
	if (total->calls == one->calls) // the first entry with calls, or none so far
		return figure;
	if (one->calls == 0)
		return most;
	return isnan(most) || isnan(figure) ? (double)NAN : fmax(most, figure);
}

// RANKS of blocks.def.
#define SUM(member) total->member + one.member
#define MOST(member) most(total, &one, total->member, one.member)

struct sums {
	double *time_s, *energy_j; // per rank; NaN: no call of the block, or unknown
	double *compared;          // scratch: the values of the ranks that are compared
};

// Adds up entries[0 … n), which all have one name.
static void add_up(const struct entry *entries, size_t n, const struct sums *sums, size_t n_ranks,
	struct block_finding *total)
{
	struct pooled times = {0};
	for (size_t i = 0; i < n_ranks; i++)
		sums->time_s[i] = sums->energy_j[i] = (double)NAN;
	for (size_t i = 0; i < n; i++) {
		const struct block_finding one = finding_of(&entries[i]);
		bool first = i == 0 || entries[i].rank != entries[i - 1].rank;
		double *time_s = &sums->time_s[entries[i].rank], *energy_j = &sums->energy_j[entries[i].rank];
		*time_s = first ? one.compute_time_s.total : *time_s + one.compute_time_s.total;
		*energy_j = first ? one.total_j : *energy_j + one.total_j;
		pool(&times, &one.compute_time_s, one.calls);
#define BLOCK_COUNT(member, ...) total->member = add_counts(total->member, one.member);
#define BLOCK_FIGURE(member, column, RANKS, ...) total->member = RANKS(member);
#define BLOCK_TIME(...)
#include "metric/blocks.def"
		if (one.method == BLOCK_FOLDED)
			total->method = BLOCK_FOLDED;
	}
	total->compute_time_s = pooled_stats(&times);
	if (isnan(total->total_j))
		total->method = BLOCK_NO_ENERGY;
	total->resolved = is_resolved(total->total_j, total->error_j);
}

// Ranks that ended early are left out: they made fewer calls, which is no load imbalance.
static struct spread spread_of_all(const double *values, const struct job_findings *job, double *scratch)
{
	for (size_t i = 0; i < job->n_ranks; i++)
		scratch[i] = job->ranks[i].ended_early ? (double)NAN : values[i];
	return spread_of(scratch, job->n_ranks);
}

// Column statistics over the samples inside the block, over all ranks.
static void pool_columns(const struct entry *entries, size_t n, struct block_finding *total)
{
	for (size_t c = 0; c < TRACKING_METRICS; c++) {
		const double none = (double)NAN;
		struct pooled pooled = {0};
		for (size_t i = 0; i < n; i++) {
			if (entries[i].block == NULL)
				continue; // stored block figures have no columns
			struct value_stats stats = entries[i].block->columns[c];
			stats.total = stats.mean * (double)entries[i].block->timepoints;
			pool(&pooled, &stats, entries[i].block->timepoints);
		}
		total->columns[c] = pooled_stats(&pooled);
		if (pooled.n <= 0)
			total->columns[c] = (struct value_stats){none, none, none, none, none};
	}
}

// Adds the energy by domain: each member's domains are domains of its machine, and these are domains of the job.
static void add_domains(const struct job_work *work, const struct entry *entries, size_t n, struct block_finding *total)
{
	const struct findings *all = &work->job->total;
	for (size_t d = 0; d < all->n_domains; d++)
		total->domain_j[d] = (double)NAN;
	for (size_t i = 0; i < n; i++) {
		const struct member *member = entries[i].member;
		const struct findings *f = &member->findings;
		for (size_t k = 0; entries[i].block != NULL && k < f->n_domains; k++) {
			size_t own = member->domain_of[f->domains[k].device - member->run.devices];
			size_t d = work->machines[member->machine].total_domain[own];
			double j = entries[i].block->domain_j[k];
			total->domain_j[d] = isnan(total->domain_j[d]) ? j : total->domain_j[d] + j;
		}
	}
}

static int by_unit_name(const void *a, const void *b)
{
	const struct block_unit *x = a, *y = b;
	return strcmp(x->name, y->name);
}

static void add_unit(struct block_finding *total, const struct block_finding *one, const struct block_unit *unit)
{
	size_t k = 0;
	while (k < total->n_units && strcmp(total->units[k].name, unit->name) != 0)
		k++;
	if (k == total->n_units)
		total->units[total->n_units++] = (struct block_unit){.name = unit->name};
	struct block_unit *sum = &total->units[k];
	sum->count += unit->count;
	sum->sum += unit->sum;
	// A metric that is no unit of work (such as a loss) has no energy per unit; NaN marks it until all entries are
	// added up.
	if (isnan(unit->j_per_unit) && unit->sum != 0 && !isnan(one->total_j))
		sum->j_per_unit = (double)NAN;
}

// Adds the metrics that all ranks reported inside the block. Stored block figures have no metrics; units from only some
// of the ranks would make the energy per unit too high.
static int add_units(const struct job_work *work, const struct entry *entries, size_t n, struct block_finding *total)
{
	size_t most = 0;
	for (size_t i = 0; i < n; i++) {
		if (entries[i].block == NULL)
			return 0;
		most += entries[i].block->n_units;
	}
	total->units = arena_alloc(work->arena, most, sizeof(*total->units));
	if (total->units == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < entries[i].block->n_units; k++)
			add_unit(total, entries[i].block, &entries[i].block->units[k]);
	for (size_t k = 0; k < total->n_units; k++) {
		struct block_unit *unit = &total->units[k];
		double units = isnan(unit->j_per_unit) || !(unit->sum > 0) ? (double)NAN : unit->sum;
		unit->j_per_unit = total->total_j / units;
		unit->error_j_per_unit = total->error_j / units;
	}
	if (total->n_units > 1)
		qsort(total->units, total->n_units, sizeof(*total->units), by_unit_name);
	return 0;
}

static int make(struct job_work *work, struct entry *entries, size_t n, const struct names *names)
{
	struct job_findings *job = work->job;
	struct sums sums = {.energy_j = arena_alloc(work->arena, job->n_ranks, sizeof(double)),
		.compared = arena_alloc(work->arena, job->n_ranks, sizeof(double))};
	double *times_s = arena_alloc(work->arena, names->n * job->n_ranks, sizeof(*times_s));
	double *domain_j = arena_alloc(work->arena, names->n * job->total.n_domains, sizeof(*domain_j));
	job->blocks = arena_alloc(work->arena, names->n, sizeof(*job->blocks));
	job->total.blocks = arena_alloc(work->arena, names->n, sizeof(*job->total.blocks));
	if (times_s == NULL || sums.energy_j == NULL || sums.compared == NULL || domain_j == NULL ||
		job->blocks == NULL || job->total.blocks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n;) {
		size_t end = i, k = job->n_blocks++;
		while (end < n && entries[end].number == entries[i].number)
			end++;
		struct block_finding *total = &job->total.blocks[k];
		*total = (struct block_finding){.name = entries[i].name,
			.domain_j = domain_j + k * job->total.n_domains};
		pool_columns(entries + i, end - i, total);
		sums.time_s = times_s + k * job->n_ranks;
		add_up(entries + i, end - i, &sums, job->n_ranks, total);
		add_domains(work, entries + i, end - i, total);
		if (add_units(work, entries + i, end - i, total) < 0)
			return -ENOMEM;
		job->blocks[k] = (struct job_block){.name = total->name,
			.calls = total->calls,
			.compute_time_s = total->compute_time_s,
			.time_s = spread_of_all(sums.time_s, job, sums.compared),
			.energy_j = spread_of_all(sums.energy_j, job, sums.compared),
			.rank_time_s = sums.time_s,
			.total_j = total->total_j,
			.error_j = total->error_j,
			.waits = waiting_is(work->options, total->name)};
		i = end;
	}
	job->total.n_blocks = job->n_blocks;
	return 0;
}

static void note_left_out(struct job_work *work)
{
	for (size_t i = 0; i < work->runs->n; i++) {
		const struct job_run *from = work->members[i].from;
		for (size_t k = 0; from->blocks != NULL && k < from->n_blocks; k++)
			work->job->block_energy_left_out |= isnan(from->blocks[k].energy_j);
	}
}

int job_blocks_make(struct job_work *work)
{
	size_t n = count_entries(work);
	if (n == 0)
		return 0;
	struct arena *scratch = arena_new();
	struct entry *entries = scratch != NULL ? arena_alloc(scratch, n, sizeof(*entries)) : NULL;
	struct names names;
	int r = -ENOMEM;
	if (entries != NULL) {
		collect(work, entries);
		r = names_make(&entries[0].name, sizeof(*entries), n, scratch, &names);
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		entries[i].number = names.of[i];
	if (r == 0) {
		qsort(entries, n, sizeof(*entries), by_name_and_rank);
		r = make(work, entries, n, &names);
		note_left_out(work);
	}
	arena_free(scratch);
	return r;
}
