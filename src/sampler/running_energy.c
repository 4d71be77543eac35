/* The same sum as energy.total_j of the report: of domains that are added and contained in no other added one, each
 * by the curve through its latest readings (energy/track.h). */
#include "sampler/recorder.h"

#include "base/nan_sum.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>

// Minimum distance of points of steps: more than fit between two calls of options->progress add no information.
static const int64_t POINT_NS = 20 * NS_PER_MS;
// A counter of unknown period is taken to be stopped after this time.
static const int64_t STILL_NS = 3 * NS_PER_S;
static const int64_t PERIODS_MOST = 2; // one that is unchanged for longer is not counting
enum { START, NOW }; // marks

/* ---- open ---- */

int so_far_open(struct so_far *so_far, const struct sampler *sampler)
{
	const struct sensor_set *set = sampler->sensors;
	so_far->devices = calloc_array(set->n_devices + 1, sizeof(*so_far->devices));
	if (so_far->devices == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < set->n_devices; i++) {
		const char *source = set->sources != NULL ? set->sources[i] : "";
		energy_track_init(&so_far->devices[i].track, set->devices[i], source, true);
		so_far->devices[i].in_total = sampler_reads(sampler, i) && sensor_set_adds_up(set, set->devices[i]);
	}
	return 0;
}

void so_far_close(struct so_far *so_far)
{
	free(so_far->devices);
	so_far->devices = NULL;
}

/* ---- energy ---- */

static int64_t period_of(const struct energy_track *track)
{
	int64_t seen_ns = track->n_updates > 1 ? track->rest_ns : 0;
	return track->period.period_ns > 0 ? track->period.period_ns : seen_ns;
}

// Energy of a device; NaN: unknown. One that became readable after the start may have missed energy until its first
// change.
static double used_j(struct so_far *so_far, struct energy_track *track, int64_t t_ns)
{
	if (!track->marks[START].is_set && so_far->start_ns != 0)
		energy_track_mark(track, START, so_far->start_ns);
	energy_track_mark(track, NOW, t_ns);
	bool is_begun = track->n_updates > 0 || (track->n > 0 && track->t_ns[0] <= so_far->start_ns);
	return is_begun ? energy_track_between(track, START, NOW).j : (double)NAN;
}

/* ---- where steps ended ---- */

// On the line between two ticks; before the oldest stored one, its value.
static double energy_at(const struct so_far *so_far, int64_t t_ns)
{
	size_t n = so_far->n_ticks, oldest = n > SO_FAR_TICKS ? n - SO_FAR_TICKS : 0;
	const struct so_far_tick *after = &so_far->ticks[(n - 1) % SO_FAR_TICKS];
	for (size_t i = n - 1; i-- > oldest;) {
		const struct so_far_tick *before = &so_far->ticks[i % SO_FAR_TICKS];
		if (t_ns >= before->t_ns) {
			double share = (double)(t_ns - before->t_ns) / (double)(after->t_ns - before->t_ns);
			return before->energy_j + fmin(share, 1) * (after->energy_j - before->energy_j);
		}
		after = before;
	}
	return after->energy_j;
}

static void add_point(struct so_far *so_far)
{
	struct step_point *points = so_far->points;
	size_t n = so_far->n_points;
	if (so_far->steps == 0 || (n > 0 && points[n - 1].steps == so_far->steps))
		return;
	bool is_near = n > 1 && so_far->step_ns - points[n - 2].t_ns < POINT_NS;
	if (is_near || n == STEP_POINTS)
		n--;
	points[n] = (struct step_point){so_far->steps, so_far->step_ns, energy_at(so_far, so_far->step_ns)};
	so_far->n_points = n + 1;
}

void so_far_step(struct so_far *so_far, int64_t end_ns)
{
	so_far->steps++;
	so_far->step_ns = end_ns > so_far->step_ns ? end_ns : so_far->step_ns; // threads' rings are read in turn
}

void so_far_forget_points(struct so_far *so_far)
{
	so_far->n_points = 0;
}

/* ---- a tick ---- */

// The longest known period of the other counters from the same source; 0: none is known.
static int64_t period_beside(const struct so_far *so_far, const struct sampler *sampler, size_t i)
{
	const struct sensor_set *set = sampler->sensors;
	int64_t longest_ns = 0;
	for (size_t k = 0; k < set->n_devices; k++) {
		const struct energy_track *track = &so_far->devices[k].track;
		int64_t period_ns = period_of(track);
		bool is_beside = so_far->devices[k].in_total && track->n_updates > 0 &&
			strcmp(set->sources[k], set->sources[i]) == 0;
		if (is_beside && period_ns > longest_ns)
			longest_ns = period_ns;
	}
	return longest_ns;
}

/* Whether its power is known. With an unknown period it would be 0 W, and all energy at the next change; a counter
 * that is unchanged while its neighbours change draws nothing. */
static bool has_pace(const struct so_far *so_far, const struct sampler *sampler, size_t i)
{
	const struct energy_track *track = &so_far->devices[i].track;
	int64_t period_ns = period_of(track);
	if (!track->domain->has_energy || (period_ns > 0 && track->n_updates > 0))
		return true;
	if (period_ns <= 0 && track->n_updates == 0)
		period_ns = period_beside(so_far, sampler, i);
	int64_t still_ns = period_ns > 0 ? PERIODS_MOST * period_ns : STILL_NS;
	return sampler->last_t_ns - so_far->start_ns >= still_ns;
}

static void add_traits(struct so_far *so_far, const struct sampler *sampler, size_t i)
{
	const struct domain *domain = sampler->sensors->devices[i];
	so_far->has_pace = so_far->has_pace && has_pace(so_far, sampler, i);
	if (domain->provenance > so_far->provenance)
		so_far->provenance = domain->provenance;
}

static int64_t last_tick_ns(const struct so_far *so_far)
{
	return so_far->n_ticks > 0 ? so_far->ticks[(so_far->n_ticks - 1) % SO_FAR_TICKS].t_ns : INT64_MIN;
}

void so_far_add_up(struct so_far *so_far, const struct sampler *sampler)
{
	const int64_t t_ns = sampler->last_t_ns;
	double sum_j = (double)NAN;
	if (so_far->devices == NULL || t_ns == last_tick_ns(so_far))
		return;
	so_far->n_known = 0;
	so_far->has_pace = true;
	so_far->provenance = PROVENANCE_MEASURED;
	for (size_t i = 0; i < sampler->sensors->n_devices; i++) {
		double j = so_far->devices[i].in_total ? used_j(so_far, &so_far->devices[i].track, t_ns) : (double)NAN;
		if (isnan(j))
			continue;
		sum_j = add_known(sum_j, j);
		so_far->n_known++;
		add_traits(so_far, sampler, i);
	}
	so_far->ticks[so_far->n_ticks++ % SO_FAR_TICKS] = (struct so_far_tick){t_ns, sum_j};
	add_point(so_far);
}

void so_far_tick(struct so_far *so_far, const struct sampler *sampler, int64_t start_ns)
{
	if (so_far->devices == NULL)
		return;
	for (size_t i = 0; i < sampler->sensors->n_devices; i++) {
		so_far->devices[i].track.period = sampler->periods[i];
		energy_track_feed(&so_far->devices[i].track, sampler->last_t_ns, sampler->rows[i], false);
	}
	so_far->start_ns = start_ns;
	// Between two calls of options->progress only the energy of steps is needed.
	if (so_far->n_ticks == 0 || (so_far->steps > 0 && sampler->last_t_ns - last_tick_ns(so_far) >= POINT_NS))
		so_far_add_up(so_far, sampler);
}

double so_far_energy_j(const struct so_far *so_far)
{
	return so_far->n_ticks > 0 ? so_far->ticks[(so_far->n_ticks - 1) % SO_FAR_TICKS].energy_j : (double)NAN;
}
