/* Merges several recordings into one: those of all ranks of a machine, or of all machines of a job. Counters and gauges
 * of their targets are added at common instants; the machine's own figures (busy and idle time, memory in use) count
 * once per machine.
 *
 * The common instants are the samples of one recording at a time: of those running, the one that continues longest.
 * Counters of the others are interpolated there, gauges keep their last known value. */
#include "analysis/job/internal.h"

#include "base/checked_arith.h"
#include "base/util.h"

#include <errno.h>

struct lifetime { // a target's life: one segment of one recording
	const struct run *run;
	size_t segment;
	int64_t shift_ns, start_ns, end_ns; // shifted
	struct slice samples;
};

struct instant { // of the common grid
	int64_t t_ns;
	uint32_t lifetime, sample; // source
};

struct overlap {
	const struct merge *merge;
	struct arena *arena;
	struct lifetime *lifetimes; // n_lifetimes, sorted by start
	size_t n_lifetimes;
	struct instant *grid;
	size_t n;
	struct run *run; // the result
};

/* ---- lives and segments ---- */

static int by_start(const void *a, const void *b)
{
	const struct lifetime *x = a, *y = b;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static int find_lifetimes(struct overlap *m)
{
	const struct merge *all = m->merge;
	size_t most = 0;
	for (size_t i = 0; i < all->n_parts; i++)
		most += all->parts[i].run->n_segments;
	m->lifetimes = arena_alloc(m->arena, most, sizeof(*m->lifetimes));
	if (m->lifetimes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < all->n_parts; i++) {
		const struct part_run *part = &all->parts[i];
		for (size_t s = 0; s < part->run->n_segments; s++) {
			const struct run_segment *segment = &part->run->segments[s];
			int64_t end_ns = segment->end_ns > segment->start_ns ? segment->end_ns : segment->start_ns;
			m->lifetimes[m->n_lifetimes++] = (struct lifetime){.run = part->run,
				.segment = s,
				.shift_ns = part->shift_ns,
				.start_ns = segment->start_ns + part->shift_ns,
				.end_ns = end_ns + part->shift_ns,
				.samples = slice_samples(part->run, s)};
		}
	}
	qsort(m->lifetimes, m->n_lifetimes, sizeof(*m->lifetimes), by_start);
	return 0;
}

// Figures at the end of a recording, by the way in which those of several are merged. Figures in neither list follow
// from the samples.
#define FIGURE(field) offsetof(struct run_segment, field)
static const size_t sums[] = {FIGURE(samples), FIGURE(lost_samples), FIGURE(main_cpu_ns), FIGURE(descendants_cpu_ns),
	FIGURE(referee_cpu_ns), FIGURE(processes_seen), FIGURE(processes_sampled), FIGURE(read_bytes),
	FIGURE(written_bytes), FIGURE(major_faults), FIGURE(minor_faults), FIGURE(voluntary_switches),
	FIGURE(involuntary_switches), FIGURE(self_cpu_ns), FIGURE(self_wakeups), FIGURE(lost_spans),
	FIGURE(unwound_spans)};
static const size_t maxima[] = {FIGURE(main_peak_rss_bytes), FIGURE(self_max_rss_bytes)};

static int64_t *figure_of(struct run_segment *segment, size_t offset)
{
	return (int64_t *)(void *)((char *)segment + offset);
}

static int64_t figure_in(const struct run_segment *segment, size_t offset)
{
	return *(const int64_t *)(const void *)((const char *)segment + offset);
}

// The first nonzero exit code, which marks a failure; else VALUE_MISSING if one is unknown.
static int64_t worse_exit(int64_t a, int64_t b)
{
	if (value_ok(a) && a != 0)
		return a;
	if (value_ok(b) && b != 0)
		return b;
	return value_ok(a) ? b : a;
}

static void add_lifetime(struct run_segment *sum, const struct lifetime *lifetime)
{
	const struct run_segment *segment = &lifetime->run->segments[lifetime->segment];
	sum->end_ns = lifetime->end_ns > sum->end_ns ? lifetime->end_ns : sum->end_ns;
	sum->complete = sum->complete && segment->complete;
	sum->exit_code = worse_exit(sum->exit_code, segment->exit_code);
	for (size_t i = 0; i < ARRAY_SIZE(sums); i++) {
		int64_t *all = figure_of(sum, sums[i]), one = figure_in(segment, sums[i]);
		*all = value_sum(*all, one);
	}
	for (size_t i = 0; i < ARRAY_SIZE(maxima); i++) {
		int64_t *all = figure_of(sum, maxima[i]), one = figure_in(segment, maxima[i]);
		*all = !value_ok(*all) || !value_ok(one) ? VALUE_MISSING : one > *all ? one : *all;
	}
	if (sum->cpu_method == NULL)
		sum->cpu_method = segment->cpu_method;
	else if (segment->cpu_method != NULL && strcmp(segment->cpu_method, sum->cpu_method) != 0)
		sum->cpu_method = "mixed";
}

static struct run_segment segment_from(const struct lifetime *lifetime, int64_t id)
{
	const struct run_segment *first = &lifetime->run->segments[lifetime->segment];
	struct run_segment segment = {.id = id,
		.start_ns = lifetime->start_ns,
		.end_ns = lifetime->end_ns,
		.wall_start_ns = run_wall_ns(lifetime->run, first->start_ns),
		.boot_start_ns = VALUE_MISSING,
		.pid = VALUE_MISSING,
		.exit_code = 0,
		.command_json = first->command_json,
		.complete = true,
		.peak_rss_bytes = VALUE_MISSING};
	return segment;
}

// The union of all lives; lives less than one sample apart are merged.
static int make_segments(struct overlap *m)
{
	struct run *run = m->run;
	run->segments = arena_alloc(m->arena, m->n_lifetimes, sizeof(*run->segments));
	if (run->segments == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_lifetimes; i++) {
		const struct lifetime *lifetime = &m->lifetimes[i];
		struct run_segment *last = run->n_segments > 0 ? &run->segments[run->n_segments - 1] : NULL;
		if (last == NULL || lifetime->start_ns - last->end_ns > m->merge->interval_ns) {
			last = &run->segments[run->n_segments];
			*last = segment_from(lifetime, (int64_t)++run->n_segments);
		}
		add_lifetime(last, lifetime);
	}
	for (size_t s = 0; s < run->n_segments; s++) // a single target's figure; a sum over targets has no peak
		run->segments[s].peak_rss_bytes = VALUE_MISSING;
	return 0;
}

/* ---- the grid ---- */

static const struct lifetime *next_leader(const struct overlap *m, int64_t covered_ns)
{
	const struct lifetime *best = NULL;
	for (size_t i = 0; i < m->n_lifetimes; i++) {
		const struct lifetime *lifetime = &m->lifetimes[i];
		if (lifetime->end_ns <= covered_ns)
			continue;
		if (best != NULL && lifetime->start_ns > covered_ns && lifetime->start_ns > best->start_ns)
			break;
		if (best == NULL || lifetime->end_ns > best->end_ns)
			best = lifetime;
	}
	return best;
}

static int make_grid(struct overlap *m)
{
	size_t most = 0;
	for (size_t i = 0; i < m->n_lifetimes; i++)
		most += m->lifetimes[i].samples.end - m->lifetimes[i].samples.begin;
	m->grid = arena_alloc(m->arena, most, sizeof(*m->grid));
	if (m->grid == NULL || most > UINT32_MAX)
		return -ENOMEM;
	int64_t covered_ns = INT64_MIN, last_ns = INT64_MIN;
	for (const struct lifetime *lifetime; (lifetime = next_leader(m, covered_ns)) != NULL;
		covered_ns = lifetime->end_ns) {
		for (size_t i = lifetime->samples.begin; i < lifetime->samples.end; i++) {
			int64_t t_ns = lifetime->run->t_ns[i] + lifetime->shift_ns;
			if (t_ns <= last_ns)
				continue;
			m->grid[m->n++] = (struct instant){t_ns, (uint32_t)(lifetime - m->lifetimes), (uint32_t)i};
			last_ns = t_ns;
		}
	}
	return 0;
}

/* ---- columns ---- */

// A life's values of a metric, at ascending instants.
struct follow {
	const struct lifetime *lifetime;
	struct run_values values;
	size_t before, after; // samples with a value around the instant
	int64_t first;        // the first value; VALUE_MISSING: none
};

static size_t next_known(const struct follow *f, size_t from)
{
	while (from < f->lifetime->samples.end && !value_ok(values_at(f->values, from)))
		from++;
	return from;
}

static struct follow follow_begin(const struct lifetime *lifetime, enum run_metric metric)
{
	struct follow f = {.lifetime = lifetime, .values = run_column(lifetime->run, metric)};
	f.before = f.after = next_known(&f, lifetime->samples.begin);
	f.first = f.after < lifetime->samples.end ? values_at(f.values, f.after) : VALUE_MISSING;
	return f;
}

static int64_t time_of(const struct follow *f, size_t sample)
{
	return f->lifetime->run->t_ns[sample] + f->lifetime->shift_ns;
}

static void follow_to(struct follow *f, int64_t t_ns)
{
	while (f->after < f->lifetime->samples.end && time_of(f, f->after) <= t_ns) {
		f->before = f->after;
		f->after = next_known(f, f->after + 1);
	}
}

static int64_t counter_at(const struct follow *f, int64_t t_ns)
{
	int64_t from_ns = time_of(f, f->before), from = values_at(f->values, f->before);
	if (f->after >= f->lifetime->samples.end || f->after == f->before || t_ns <= from_ns)
		return from;
	double part = (double)(t_ns - from_ns) / (double)(time_of(f, f->after) - from_ns);
	return value_sum(from, llround(part * ((double)values_at(f->values, f->after) - (double)from)));
}

// Growth since the life's first sample; after its end it stays constant.
static void add_counter(const struct overlap *m, const struct lifetime *lifetime, enum run_metric metric, int64_t *out)
{
	struct follow f = follow_begin(lifetime, metric);
	for (size_t g = 0; g < m->n; g++) {
		int64_t t_ns = m->grid[g].t_ns;
		if (t_ns < lifetime->start_ns)
			continue;
		if (!value_ok(f.first)) {
			if (t_ns <= lifetime->end_ns)
				out[g] = VALUE_MISSING;
			continue;
		}
		follow_to(&f, t_ns);
		out[g] = value_sum(out[g], value_difference(counter_at(&f, t_ns), f.first));
	}
}

static void add_gauge(const struct overlap *m, const struct lifetime *lifetime, enum run_metric metric, int64_t *out)
{
	struct follow f = follow_begin(lifetime, metric);
	for (size_t g = 0; g < m->n; g++) {
		int64_t t_ns = m->grid[g].t_ns;
		bool own = &m->lifetimes[m->grid[g].lifetime] ==
			lifetime; // includes its samples just before and after its life
		if (!own && (t_ns < lifetime->start_ns || t_ns > lifetime->end_ns))
			continue;
		if (value_ok(f.first))
			follow_to(&f, t_ns);
		bool known = value_ok(f.first) && time_of(&f, f.before) <= t_ns;
		out[g] = value_sum(out[g], known ? values_at(f.values, f.before) : VALUE_MISSING);
	}
}

/* A machine's own counter, as its recorders read it. After a change of recorder only the new one's growth counts: the
 * two need not have counted from the same instant. */
static void take_machine_counter(const struct overlap *m, enum run_metric metric, int64_t *out)
{
	struct follow f = {0};
	int64_t offset = 0, last = VALUE_MISSING;
	for (size_t g = 0; g < m->n; g++) {
		const struct lifetime *lifetime = &m->lifetimes[m->grid[g].lifetime];
		if (f.lifetime != lifetime) {
			f = follow_begin(lifetime, metric);
			offset = 0;
			if (value_ok(f.first) && value_ok(last) && g > 0) {
				follow_to(&f, m->grid[g - 1].t_ns);
				bool covers = time_of(&f, f.before) <= m->grid[g - 1].t_ns;
				int64_t then = counter_at(&f, m->grid[g - 1].t_ns);
				int64_t apart = covers || then < last ? value_difference(last, then) : 0;
				offset = value_ok(apart) ? apart : 0;
			}
		}
		int64_t value = run_value(lifetime->run, metric, m->grid[g].sample);
		out[g] = value_sum(value, offset);
		last = value_ok(value) ? out[g] : last;
	}
}

static void take_machine_gauge(const struct overlap *m, enum run_metric metric, int64_t *out)
{
	for (size_t g = 0; g < m->n; g++)
		out[g] = run_value(m->lifetimes[m->grid[g].lifetime].run, metric, m->grid[g].sample);
}

static bool is_of_machine(enum run_metric metric)
{
	return metric == RUN_SYSTEM_BUSY || metric == RUN_SYSTEM_IDLE || metric == RUN_SYSTEM_MEMORY;
}

static void make_column(const struct overlap *m, enum run_metric metric, bool counter, int64_t *out)
{
	if (m->merge->same_machine && is_of_machine(metric)) {
		if (counter)
			take_machine_counter(m, metric, out);
		else
			take_machine_gauge(m, metric, out);
		return;
	}
	for (size_t i = 0; i < m->n_lifetimes; i++) {
		if (counter)
			add_counter(m, &m->lifetimes[i], metric, out);
		else
			add_gauge(m, &m->lifetimes[i], metric, out);
	}
}

static int make_columns(const struct overlap *m)
{
	size_t n_metrics;
	const struct metric *metrics = metric_table(METRIC_RUN, &n_metrics);
	struct run *run = m->run;
	run->n = m->n;
	run->t_ns = arena_alloc(m->arena, m->n, sizeof(*run->t_ns));
	if (run->t_ns == NULL)
		return -ENOMEM;
	for (size_t g = 0; g < m->n; g++)
		run->t_ns[g] = m->grid[g].t_ns;
	for (size_t k = 0; k < n_metrics; k++) {
		run->values[k] = arena_alloc(m->arena, m->n, sizeof(int64_t));
		if (run->values[k] == NULL)
			return -ENOMEM;
		make_column(m, (enum run_metric)k, metrics[k].kind == METRIC_COUNTER, run->values[k]);
	}
	return 0;
}

int merge_runs(const struct merge *merge, struct arena *arena, struct run *ret_run)
{
	struct run run = {.arena = NULL};
	struct overlap m = {.merge = merge, .arena = arena, .run = &run};
	run.facts = arena_alloc(arena, merge->n_metadata, sizeof(*run.facts));
	if (run.facts == NULL || find_lifetimes(&m) < 0 || make_segments(&m) < 0 || make_grid(&m) < 0 ||
		make_columns(&m) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < merge->n_metadata; i++)
		run.facts[run.n_metadata++] = merge->facts[i];
	if (m.n_lifetimes > 0) {
		run.anchor_mono_ns = run.segments[0].start_ns;
		run.anchor_wall_ns = run.segments[0].wall_start_ns;
	}
	*ret_run = run;
	return 0;
}
