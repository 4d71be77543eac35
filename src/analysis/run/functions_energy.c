/* Energy and CPU time of each sample of a profile.
 *
 * Windows (attribute.h) are merged until the target's CPU time in them is worth GROUP_SAMPLES samples. The target's energy of
 * such a group, as the ledger has it, is divided among the samples in it by their weights. Where samples cover less CPU time
 * than the target used (threads that end within a sampling period, kernel code that may not be sampled, lost records), the
 * rest of the energy has no function. */
#include "analysis/energy/domains.h"
#include "analysis/run/internal.h"
#include "base/util.h"

#include <errno.h>

static const double group_samples = 10;
// Samples cover the CPU time but for the last part of a period of each thread; less than this is more than that.
static const double whole_coverage = 0.95;

struct group {
	size_t first, end; // samples
	double energy_j, cpu_ns;
};

struct work {
	const struct findings *findings;
	const struct run_profile_data *profile;
	struct attribution_walk *walks; // attribution NULL: the domain is not divided among functions
	double before_j, period_ns;
	bool is_whole;
	struct sample_share *shares;
};

bool functions_divide_domain(const struct findings *findings, size_t domain)
{
	const struct domain_finding *d = &findings->domains[domain];
	return d->in_total && !isnan(d->energy_j) &&
		attribution_by_cpu(&findings->metering->domains[domain].attribution);
}

static double energy_until(struct work *work, int64_t t_ns)
{
	struct attribution_point point;
	double sum_j = 0;
	for (size_t d = 0; d < work->findings->n_domains; d++) {
		if (work->walks[d].attribution == NULL)
			continue;
		attribution_walk_to(&work->walks[d], t_ns, &point);
		sum_j += point.part.target_j;
	}
	return sum_j;
}

static void divide(struct work *work, const struct group *group)
{
	const struct run_profile_sample *samples = work->profile->samples;
	double n = (double)(group->end - group->first), weight = 0, covered = 1;
	for (size_t i = group->first; i < group->end; i++)
		weight += samples[i].weight;
	if (!work->is_whole && group->cpu_ns > 0)
		covered = fmin(n * work->period_ns / group->cpu_ns, 1);
	double cpu_ns = group->cpu_ns > 0 ? covered * group->cpu_ns : n * work->period_ns;
	for (size_t i = group->first; i < group->end; i++) {
		double part = weight > 0 ? samples[i].weight / weight : 1 / n;
		work->shares[i] = (struct sample_share){part * covered * group->energy_j, part * cpu_ns / 1e9};
	}
}

static void join(struct group *group, const struct group *next)
{
	group->end = next->end;
	group->energy_j += next->energy_j;
	group->cpu_ns += next->cpu_ns;
}

static bool is_full(const struct work *work, const struct group *group)
{
	bool has_sample = group->end > group->first;
	return group->cpu_ns >= group_samples * work->period_ns && (has_sample || !work->is_whole);
}

// The last group of a segment may be too small: it joins the one before it, which therefore waits.
static size_t divide_segment(struct work *work, size_t window, size_t sample)
{
	const struct windows *windows = work->findings->windows;
	const struct run_profile_data *profile = work->profile;
	uint32_t segment = windows->rows[window].segment;
	struct group waiting = {sample, sample, 0, 0}, group = waiting;
	bool has_waiting = false;
	for (; window < windows->n && windows->rows[window].segment == segment; window++) {
		struct window w = windows_at(windows, window);
		bool is_last = window + 1 == windows->n;
		double now_j = energy_until(work, w.to_ns);
		group.energy_j += now_j - work->before_j;
		group.cpu_ns += w.target_ns > 0 ? w.target_ns : 0;
		work->before_j = now_j;
		while (group.end < profile->n_samples && (is_last || profile->samples[group.end].t_ns < w.to_ns))
			group.end++;
		if (!is_full(work, &group))
			continue;
		if (has_waiting)
			divide(work, &waiting);
		waiting = group;
		has_waiting = true;
		group = (struct group){group.end, group.end, 0, 0};
	}
	size_t end = group.end;
	if (has_waiting)
		join(&waiting, &group);
	divide(work, has_waiting ? &waiting : &group);
	return end;
}

static double coverage_of(const struct work *work)
{
	const struct windows *windows = work->findings->windows;
	double cpu_ns = 0;
	for (size_t i = 0; i < windows->n; i++) {
		double target_ns = windows_at(windows, i).target_ns;
		cpu_ns += target_ns > 0 ? target_ns : 0;
	}
	return cpu_ns > 0 ? (double)work->profile->n_samples * work->period_ns / cpu_ns : 1;
}

int functions_shares(const struct findings *findings, const struct run_profile_data *profile, struct arena *arena,
	struct sample_share **ret_shares)
{
	const struct windows *windows = findings->windows;
	struct work work = {.findings = findings,
		.profile = profile,
		.period_ns = profile->hz > 0 ? 1e9 / (double)profile->hz : 0,
		.walks = arena_alloc(arena, findings->n_domains, sizeof(*work.walks)),
		.shares = arena_alloc(arena, profile->n_samples, sizeof(*work.shares))};
	if (work.walks == NULL || work.shares == NULL)
		return -ENOMEM;
	for (size_t d = 0; d < findings->n_domains && windows->n > 0; d++)
		if (functions_divide_domain(findings, d))
			work.walks[d] = attribution_walk_begin(&findings->metering->domains[d].attribution, NULL);
	work.is_whole = coverage_of(&work) >= whole_coverage;
	for (size_t window = 0, sample = 0; window < windows->n;) {
		uint32_t segment = windows->rows[window].segment;
		sample = divide_segment(&work, window, sample);
		while (window < windows->n && windows->rows[window].segment == segment)
			window++;
	}
	*ret_shares = work.shares;
	return 0;
}
