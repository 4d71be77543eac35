
#include "analysis/run/internal.h"
#include "base/util.h"
#include "energy/slice.h"

// Substitute for a missing footer value, from the samples of a segment; VALUE_MISSING if there is none.
typedef int64_t (*fallback)(const struct run *run, struct slice samples);

static int64_t last_of(const struct run *run, struct slice samples, enum run_metric metric)
{
	for (size_t i = samples.end; i > samples.begin; i--)
		if (value_ok(run_value(run, metric, i - 1)))
			return run_value(run, metric, i - 1);
	return VALUE_MISSING;
}

static int64_t first_of(const struct run *run, struct slice samples, enum run_metric metric)
{
	for (size_t i = samples.begin; i < samples.end; i++)
		if (value_ok(run_value(run, metric, i)))
			return run_value(run, metric, i);
	return VALUE_MISSING;
}

// The CPU time of an attached target starts above 0; only the growth counts.
static int64_t growth_of(const struct run *run, struct slice samples, enum run_metric metric)
{
	int64_t first = first_of(run, samples, metric);
	return value_ok(first) ? last_of(run, samples, metric) - first : VALUE_MISSING;
}

static int64_t sampled_main_cpu(const struct run *run, struct slice samples)
{
	return growth_of(run, samples, RUN_MAIN_CPU);
}

static int64_t sampled_descendants_cpu(const struct run *run, struct slice samples)
{
	return growth_of(run, samples, RUN_DESCENDANTS_CPU);
}

static int64_t sampled_referee_cpu(const struct run *run, struct slice samples)
{
	return growth_of(run, samples, RUN_REFEREE_CPU);
}

static int64_t sampled_self_cpu(const struct run *run, struct slice samples)
{
	return last_of(run, samples, RUN_SELF_CPU); // each segment has its own recorder, which starts at 0
}

static int64_t sampled_peak_rss(const struct run *run, struct slice samples)
{
	int64_t peak = VALUE_MISSING;
	for (size_t i = samples.begin; i < samples.end; i++) {
		int64_t both = run_sum(run, RUN_MAIN_RSS, RUN_DESCENDANTS_RSS, i);
		peak = both > peak ? both : peak;
	}
	return peak;
}

static int64_t max_of(const struct run *run, struct slice samples, enum run_metric metric)
{
	int64_t max = VALUE_MISSING;
	for (size_t i = samples.begin; i < samples.end; i++) {
		int64_t value = run_value(run, metric, i);
		max = value > max ? value : max;
	}
	return max;
}

static int64_t sampled_main_peak_rss(const struct run *run, struct slice samples)
{
	return max_of(run, samples, RUN_MAIN_RSS);
}

static int64_t sampled_self_peak_rss(const struct run *run, struct slice samples)
{
	return max_of(run, samples, RUN_SELF_RSS);
}

static int64_t count_samples(const struct run *run, struct slice samples)
{
	return (int64_t)(samples.end - samples.begin);
}

enum combine { SUM, MAX };

struct figure {
	size_t of_segment;  // offset of an int64_t in struct run_segment
	size_t of_findings; // offset of an int64_t, or of a double in seconds, in struct findings
	enum combine combine;
	fallback fallback; // NULL: none
};

#define SEGMENT(field) offsetof(struct run_segment, field)
#define FINDINGS(field) offsetof(struct findings, field)

static const struct figure counts[] = {
	{SEGMENT(samples), FINDINGS(samples), SUM, count_samples},
	{SEGMENT(lost_samples), FINDINGS(lost_samples), SUM, NULL},
	{SEGMENT(processes_seen), FINDINGS(processes_seen), SUM, NULL},
	{SEGMENT(processes_sampled), FINDINGS(processes_sampled), SUM, NULL},
	{SEGMENT(peak_rss_bytes), FINDINGS(peak_rss_bytes), MAX, sampled_peak_rss},
	{SEGMENT(main_peak_rss_bytes), FINDINGS(main_peak_rss_bytes), MAX, sampled_main_peak_rss},
	{SEGMENT(read_bytes), FINDINGS(read_bytes), SUM, NULL},
	{SEGMENT(written_bytes), FINDINGS(written_bytes), SUM, NULL},
	{SEGMENT(major_faults), FINDINGS(major_faults), SUM, NULL},
	{SEGMENT(minor_faults), FINDINGS(minor_faults), SUM, NULL},
	{SEGMENT(voluntary_switches), FINDINGS(voluntary_switches), SUM, NULL},
	{SEGMENT(involuntary_switches), FINDINGS(involuntary_switches), SUM, NULL},
	{SEGMENT(self_max_rss_bytes), FINDINGS(self_max_rss_bytes), MAX, sampled_self_peak_rss},
	{SEGMENT(self_wakeups), FINDINGS(self_wakeups), SUM, NULL},
};

static const struct figure times[] = {
	// ns in the segment, s in the findings
	{SEGMENT(main_cpu_ns), FINDINGS(main_cpu_s), SUM, sampled_main_cpu},
	{SEGMENT(descendants_cpu_ns), FINDINGS(descendants_cpu_s), SUM, sampled_descendants_cpu},
	{SEGMENT(referee_cpu_ns), FINDINGS(task_clock_cpu_s), SUM, sampled_referee_cpu},
	{SEGMENT(self_cpu_ns), FINDINGS(self_cpu_s), SUM, sampled_self_cpu},
};

static int64_t of_segment(const struct run *run, size_t segment, const struct figure *figure)
{
	const char *base = (const char *)&run->segments[segment];
	int64_t value = *(const int64_t *)(const void *)(base + figure->of_segment);
	if (value_ok(value) || figure->fallback == NULL)
		return value;
	return figure->fallback(run, slice_samples(run, segment));
}

static int64_t over_segments(const struct run *run, const struct figure *figure)
{
	int64_t all = run->n_segments > 0 ? 0 : VALUE_MISSING;
	for (size_t s = 0; s < run->n_segments; s++) {
		int64_t value = of_segment(run, s, figure);
		if (!value_ok(value))
			return VALUE_MISSING; // a sum without one of its parts would look complete
		if (figure->combine == SUM)
			all += value;
		else
			all = value > all ? value : all;
	}
	return all;
}

static const char *last_cpu_method(const struct run *run)
{
	for (size_t s = run->n_segments; s > 0; s--)
		if (run->segments[s - 1].cpu_method != NULL)
			return run->segments[s - 1].cpu_method;
	return NULL;
}

void footer_figures(const struct run *run, struct findings *findings)
{
	char *base = (char *)findings;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		*(int64_t *)(void *)(base + counts[i].of_findings) = over_segments(run, &counts[i]);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		*(double *)(void *)(base + times[i].of_findings) = value_to_double(over_segments(run, &times[i]), 1e-9);
	findings->cpu_method = last_cpu_method(run);
	findings->target_cpu_s = findings->main_cpu_s + findings->descendants_cpu_s;
	findings->self_cpu_percent = findings->self_cpu_s / findings->duration_s * 100;
}
