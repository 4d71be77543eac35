#include "analysis/energy/timeline.h"

#include "base/util.h"

#include <errno.h>

/* ---- the grid ---- */

static size_t add_instant(struct timeline *timeline, size_t n, size_t begin, int64_t t_ns)
{
	if (n > begin && t_ns <= timeline->t_ns[n - 1])
		return n;
	timeline->t_ns[n] = t_ns;
	return n + 1;
}

// Adds a segment, whose windows begin at windows->rows[*window]; returns the grid's length.
static size_t add_segment(struct timeline *timeline, size_t segment, size_t *window, size_t n)
{
	const struct run_segment *s = &timeline->run->segments[segment];
	const struct windows *windows = &timeline->windows;
	size_t begin = n;
	bool lasts = s->end_ns > s->start_ns;
	if (lasts)
		n = add_instant(timeline, n, begin, s->start_ns);
	for (; *window < windows->n && windows->rows[*window].segment == segment; ++*window) {
		int64_t end_ns = windows_at(windows, *window).end_ns;
		if (lasts && end_ns < s->end_ns)
			n = add_instant(timeline, n, begin, end_ns);
	}
	if (lasts)
		n = add_instant(timeline, n, begin, s->end_ns);
	timeline->intervals[segment] = (struct slice){begin, n};
	return n;
}

static int make_grid(struct timeline *t, struct arena *arena)
{
	const struct run *run = t->run;
	t->t_ns = arena_alloc(arena, t->windows.n + 2 * run->n_segments, sizeof(*t->t_ns));
	t->intervals = arena_alloc(arena, run->n_segments, sizeof(*t->intervals));
	if (t->t_ns == NULL || t->intervals == NULL)
		return -ENOMEM;
	size_t n = 0, window = 0;
	for (size_t s = 0; s < run->n_segments; s++)
		n = add_segment(t, s, &window, n);
	return 0;
}

static int keep_rows(struct timeline *t, const struct metering *metering, struct arena *arena)
{
	size_t n = t->findings.n_domains;
	t->metering.domains = arena_alloc(arena, n, sizeof(*t->metering.domains));
	for (size_t d = 0; t->metering.domains != NULL && d < n; d++) {
		struct metering_domain *domain = &t->metering.domains[d];
		*domain = metering->domains[d];
		if (domain->curve.known && attribution_store_rows(&domain->attribution, arena) < 0)
			return -ENOMEM;
	}
	return t->metering.domains != NULL ? 0 : -ENOMEM;
}

int timeline_make(const struct run *run, struct arena *arena, struct timeline *ret_timeline)
{
	struct timeline *t = ret_timeline;
	*t = (struct timeline){.run = run, .findings = {.run = run, .arena = arena}};
	t->findings.duration_s = run_duration_s(run);
	if (windows_make(run, arena, &t->windows) < 0)
		return -ENOMEM;
	// The findings point to the windows, which must therefore not move.
	struct metering metering;
	if (domains_make(&t->findings, &t->windows, arena, &metering) < 0 || keep_rows(t, &metering, arena) < 0)
		return -ENOMEM;
	return make_grid(t, arena);
}

int timeline_of(const struct findings *findings, struct arena *arena, struct timeline *ret_timeline)
{
	if (findings->metering == NULL)
		return -EINVAL;
	*ret_timeline = (struct timeline){.run = findings->run,
		.findings = *findings,
		.metering = *findings->metering,
		.windows = *findings->windows};
	if (keep_rows(ret_timeline, findings->metering, arena) < 0)
		return -ENOMEM;
	return make_grid(ret_timeline, arena);
}

static int64_t middle_ns(int64_t a_ns, int64_t b_ns)
{
	return a_ns + (b_ns - a_ns) / 2;
}

int64_t timeline_before_ns(const struct timeline *timeline, struct slice interval, size_t instant)
{
	const int64_t *t_ns = timeline->t_ns;
	return instant > interval.begin ? middle_ns(t_ns[instant - 1], t_ns[instant]) : t_ns[instant];
}

int64_t timeline_after_ns(const struct timeline *timeline, struct slice interval, size_t instant)
{
	return instant + 1 < interval.end ? timeline_before_ns(timeline, interval, instant + 1)
					  : timeline->t_ns[instant];
}

/* ---- tracks ---- */

struct track_work {
	const struct timeline *timeline;
	const size_t *domains;
	size_t n;
	bool *takes_part; // whether each of the domains has an energy in the segment
	size_t segment;
	struct slice interval;
};

static bool has_reading(const struct run_device *device, struct slice rows)
{
	for (size_t i = rows.begin; i < rows.end; i++)
		if (device_is_metered(device, i))
			return true;
	return false;
}

static const struct run_device *device_of(const struct track_work *work, size_t i)
{
	return work->timeline->findings.domains[work->domains[i]].device;
}

// Whether a domain has an energy in this segment. A domain that appears in a later segment has none in earlier ones.
static bool has_energy(const struct track_work *work, size_t i)
{
	const struct run_device *device = device_of(work, i);
	return work->timeline->metering.domains[work->domains[i]].curve.known &&
		has_reading(device, slice_of(work->timeline->run, work->segment, device->t_ns, device->n));
}

static double all_j(const struct track_work *work, size_t i, int64_t t_ns)
{
	return curve_at(&work->timeline->metering.domains[work->domains[i]].curve, work->segment, t_ns);
}

static double target_j(const struct track_work *work, size_t i, int64_t t_ns)
{
	return attribution_at(&work->timeline->metering.domains[work->domains[i]].attribution, t_ns).target_j;
}

// A counter that becomes available again covers its gap. Any other gap without readings is unknown.
static bool is_known(const struct track_work *work, size_t i, size_t instant)
{
	int64_t from_ns = timeline_before_ns(work->timeline, work->interval, instant);
	int64_t to_ns = timeline_after_ns(work->timeline, work->interval, instant);
	const struct run_device *device = device_of(work, i);
	return has_reading(device, slice_after(device->t_ns, device->n, from_ns, to_ns)) ||
		all_j(work, i, to_ns) > all_j(work, i, from_ns);
}

static bool all_known(const struct track_work *work, size_t instant)
{
	for (size_t i = 0; i < work->n; i++)
		if (work->takes_part[i] && !is_known(work, i, instant))
			return false;
	return true;
}

static void fill(const struct track_work *work, size_t instant, int64_t from_ns, int64_t to_ns,
	struct timeline_track *track)
{
	double seconds = (double)(to_ns - from_ns) / 1e9, all = 0, target = 0;
	for (size_t i = 0; i < work->n; i++) {
		if (!work->takes_part[i])
			continue;
		all += all_j(work, i, to_ns) - all_j(work, i, from_ns);
		target += target_j(work, i, to_ns) - target_j(work, i, from_ns);
	}
	track->all_w[instant] = all / seconds;
	track->target_w[instant] = target / seconds;
}

static void fill_segment(const struct track_work *work, struct timeline_track *track)
{
	const int64_t *t_ns = work->timeline->t_ns;
	size_t last = work->interval.end - 1, at = work->interval.begin;
	int64_t from_ns = t_ns[at];
	while (at < last) {
		size_t next = at + 1;
		while (next < last && !all_known(work, next))
			next++;
		int64_t to_ns = middle_ns(t_ns[at], t_ns[next]);
		fill(work, at, from_ns, to_ns, track);
		at = next;
		from_ns = to_ns;
	}
	fill(work, last, from_ns, t_ns[last], track);
}

static bool any_takes_part(const struct track_work *work)
{
	bool any = false;
	for (size_t i = 0; i < work->n; i++)
		any |= work->takes_part[i] = has_energy(work, i);
	return any;
}

int timeline_track_make(const struct timeline *timeline, const size_t *domains, size_t n, struct arena *arena,
	struct timeline_track *ret_track)
{
	size_t n_segments = timeline->run->n_segments;
	size_t length = n_segments > 0 ? timeline->intervals[n_segments - 1].end : 0;
	struct timeline_track track = {
		.all_w = arena_alloc(arena, length, sizeof(*track.all_w)),
		.target_w = arena_alloc(arena, length, sizeof(*track.target_w)),
	};
	bool *takes_part = arena_alloc(arena, n, sizeof(*takes_part));
	if (track.all_w == NULL || track.target_w == NULL || takes_part == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < length; i++)
		track.all_w[i] = track.target_w[i] = (double)NAN;
	for (size_t s = 0; s < n_segments; s++) {
		struct track_work work = {timeline, domains, n, takes_part, s, timeline->intervals[s]};
		if (work.interval.end > work.interval.begin && any_takes_part(&work))
			fill_segment(&work, &track);
	}
	*ret_track = track;
	return 0;
}
