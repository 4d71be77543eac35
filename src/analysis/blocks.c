#include "analysis/blocks.h"

#include "analysis/names.h"
#include "analysis/stats.h"
#include "analysis/uncertainty.h"
#include "base/util.h"

#include <errno.h>

struct interval {
	int64_t begin_ns, end_ns; // both ends belong to it
};

struct calls {               // of one block
	struct interval *at; // ordered by begin
	size_t n;
};

struct blocks {
	struct findings *findings;
	const struct columns *columns;
	const struct metering *metering;
};

static int by_begin(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static void sort_calls(struct calls *calls)
{
	for (size_t i = 1; i < calls->n; i++) {
		if (calls->at[i].begin_ns >= calls->at[i - 1].begin_ns)
			continue;
		qsort(calls->at, calls->n, sizeof(calls->at[0]), by_begin); // mostly they are in order already
		return;
	}
}

static bool has_ended(const struct run_span *span)
{
	return value_ok(span->end_ns) && span->end_ns >= span->begin_ns;
}

// Deals the ended spans out to their names. A block that was never left has no calls.
static int deal(const struct run *run, const struct names *names, struct arena *scratch, struct calls **ret_calls)
{
	struct calls *calls = arena_alloc(scratch, names->n, sizeof(*calls));
	struct interval *room = arena_alloc(scratch, run->n_spans, sizeof(*room));
	if (calls == NULL || room == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_spans; i++)
		calls[names->of[i]].n += has_ended(&run->spans[i]);
	for (size_t k = 0; k < names->n; k++) {
		calls[k].at = room;
		room += calls[k].n;
		calls[k].n = 0;
	}
	for (size_t i = 0; i < run->n_spans; i++) {
		const struct run_span *span = &run->spans[i];
		struct calls *c = &calls[names->of[i]];
		if (has_ended(span))
			c->at[c->n++] = (struct interval){span->begin_ns, span->end_ns};
	}
	for (size_t k = 0; k < names->n; k++)
		sort_calls(&calls[k]);
	*ret_calls = calls;
	return 0;
}

static struct slice samples_in(const struct run *run, struct interval interval)
{
	return slice_after(run->t_ns, run->n, interval.begin_ns - 1, interval.end_ns);
}

static void count_calls(const struct run *run, const struct calls *calls, struct block_finding *block)
{
	struct tally time_s = {0};
	for (size_t i = 0; i < calls->n; i++) {
		struct slice samples = samples_in(run, calls->at[i]);
		tally_add(&time_s, (double)(calls->at[i].end_ns - calls->at[i].begin_ns) / 1e9);
		block->non_empty_calls += samples.end > samples.begin;
	}
	block->calls = (int64_t)calls->n;
	block->compute_time_s = tally_value_stats(&time_s);
	if (calls->n == 0)
		block->compute_time_s.total = 0;
}

// Melts overlapping and touching calls together, in place.
static void unite(struct calls *calls)
{
	size_t n = 0;
	for (size_t i = 0; i < calls->n; i++) {
		if (n == 0 || calls->at[i].begin_ns > calls->at[n - 1].end_ns)
			calls->at[n++] = calls->at[i];
		else if (calls->at[i].end_ns > calls->at[n - 1].end_ns)
			calls->at[n - 1].end_ns = calls->at[i].end_ns;
	}
	calls->n = n;
}

static void measure_columns(const struct blocks *b, const struct calls *united, struct block_finding *block)
{
	const struct run *run = b->findings->run;
	struct tally tallies[COLUMN_COUNT] = {0};
	for (size_t i = 0; i < united->n; i++) {
		struct slice samples = samples_in(run, united->at[i]);
		block->timepoints += (int64_t)(samples.end - samples.begin);
		for (size_t c = 0; c < COLUMN_COUNT; c++)
			for (size_t k = samples.begin; k < samples.end; k++)
				tally_add(&tallies[c], b->columns->values[c][k]);
	}
	for (size_t c = 0; c < COLUMN_COUNT; c++)
		block->columns[c] = tally_value_stats(&tallies[c]);
}

// The target's part of a domain's energy while the block ran.
static double energy_in_j(const struct attribution *attribution, const struct calls *united, struct part_error *error)
{
	double sum_j = 0;
	for (size_t i = 0; i < united->n; i++) {
		const struct interval *call = &united->at[i];
		sum_j += attribution_at(attribution, call->end_ns).target_j -
			attribution_at(attribution, call->begin_ns).target_j;
		part_error_add(error, attribution, call->begin_ns, call->end_ns);
	}
	return sum_j;
}

static void measure_energy(const struct blocks *b, const struct calls *united, struct block_finding *block)
{
	const struct findings *f = b->findings;
	struct error_sum error = {0};
	block->total_j = (double)NAN;
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct domain_finding *domain = &f->domains[d];
		block->domain_j[d] = (double)NAN;
		if (isnan(domain->energy_j))
			continue;
		struct part_error part = {0};
		double j = energy_in_j(&b->metering->domains[d].attribution, united, &part);
		block->domain_j[d] = j;
		if (!domain->in_total)
			continue;
		block->total_j = isnan(block->total_j) ? j : block->total_j + j;
		error_sum_add(&error, domain, part_error_j(&part, domain, j), part.doubt_j);
	}
	block->error_j = isnan(block->total_j) ? (double)NAN : error_sum_j(&error);
}

static int make_one(const struct blocks *b, struct calls *calls, struct block_finding *block)
{
	const struct findings *f = b->findings;
	block->domain_j = arena_alloc(f->arena, f->n_domains, sizeof(double));
	if (block->domain_j == NULL)
		return -ENOMEM;
	count_calls(f->run, calls, block);
	unite(calls);
	measure_columns(b, calls, block);
	measure_energy(b, calls, block);
	return 0;
}

int blocks_make(struct findings *findings, const struct columns *columns, const struct metering *metering,
	struct arena *scratch)
{
	const struct run *run = findings->run;
	struct names names;
	struct calls *calls;
	if (run->n_spans == 0)
		return 0;
	if (names_make(&run->spans[0].name, sizeof(run->spans[0]), run->n_spans, scratch, &names) < 0 ||
		deal(run, &names, scratch, &calls) < 0)
		return -ENOMEM;
	findings->blocks = arena_alloc(findings->arena, names.n, sizeof(*findings->blocks));
	if (findings->blocks == NULL)
		return -ENOMEM;
	findings->n_blocks = names.n;
	struct blocks b = {.findings = findings, .columns = columns, .metering = metering};
	for (size_t k = 0; k < names.n; k++) {
		findings->blocks[k].name = names.text[k];
		if (make_one(&b, &calls[k], &findings->blocks[k]) < 0)
			return -ENOMEM;
	}
	return 0;
}
