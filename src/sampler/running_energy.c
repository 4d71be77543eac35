/* The same sum as energy.total_j of the report: over the domains in the total, each by the curve through its latest
 * readings (energy/track.h). */
#include "sampler/recorder.h"

#include "base/nan_sum.h"
#include "base/util.h"

#include <errno.h>
#include <string.h>

// Minimum distance of step points: points that do not fit between two calls of options->progress add no information.
static const int64_t POINT_NS = 20 * NS_PER_MS;
// A counter of unknown period is taken to be stopped after this time.
static const int64_t STILL_NS = 3 * NS_PER_S;
static const int64_t PERIODS_MAX = 2; // a counter without a change for longer is stopped
static const int64_t RESTS_MIN = 2; // intervals of sampling between two updates of a slow counter
enum { START, NOW }; // marks

/* ---- open ---- */

int running_energy_open(struct running_energy *running, const struct sampler *sampler)
{
	const struct sensor_set *set = sampler->sensors;
	running->devices = calloc_array(set->n_devices + 1, sizeof(*running->devices));
	if (running->devices == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < set->n_devices; i++) {
		const char *source = set->sources != NULL ? set->sources[i] : "";
		energy_track_init(&running->devices[i].track, set->devices[i], source, true);
		running->devices[i].in_total = sampler_reads(sampler, i) && sensor_set_adds_up(set, set->devices[i]);
	}
	return 0;
}

void running_energy_close(struct running_energy *running)
{
	free(running->devices);
	running->devices = NULL;
}

/* ---- energy ---- */

static int64_t period_of(const struct energy_track *track)
{
	int64_t seen_ns = track->n_updates > 1 ? track->rest_ns : 0;
	return track->period.period_ns > 0 ? track->period.period_ns : seen_ns;
}

// Energy of a device; NaN: unknown. One that became readable after the start may have missed energy until its first
// change.
static double used_j(struct running_energy *running, struct energy_track *track, int64_t t_ns)
{
	if (!track->marks[START].is_set && running->start_ns != 0)
		energy_track_mark(track, START, running->start_ns);
	energy_track_mark(track, NOW, t_ns);
	bool is_begun = track->n_updates > 0 || (track->n > 0 && track->t_ns[0] <= running->start_ns);
	return is_begun ? energy_track_between(track, START, NOW).j : (double)NAN;
}

/* ---- where steps ended ---- */

// On the line between two ticks; before the oldest stored one, its value.
static double energy_at(const struct running_energy *running, int64_t t_ns)
{
	size_t n = running->n_ticks, oldest = n > RUNNING_ENERGY_TICKS ? n - RUNNING_ENERGY_TICKS : 0;
	const struct running_energy_tick *after = &running->ticks[(n - 1) % RUNNING_ENERGY_TICKS];
	for (size_t i = n - 1; i-- > oldest;) {
		const struct running_energy_tick *before = &running->ticks[i % RUNNING_ENERGY_TICKS];
		if (t_ns >= before->t_ns) {
			double share = (double)(t_ns - before->t_ns) / (double)(after->t_ns - before->t_ns);
			return before->energy_j + fmin(share, 1) * (after->energy_j - before->energy_j);
		}
		after = before;
	}
	return after->energy_j;
}

static void add_point(struct running_energy *running)
{
	struct step_point *points = running->points;
	size_t n = running->n_points;
	if (running->steps == 0 || (n > 0 && points[n - 1].steps == running->steps))
		return;
	bool is_near = n > 1 && running->step_ns - points[n - 2].t_ns < POINT_NS;
	if (is_near || n == STEP_POINTS)
		n--;
	points[n] = (struct step_point){running->steps, running->step_ns, energy_at(running, running->step_ns)};
	running->n_points = n + 1;
}

void running_energy_step(struct running_energy *running, int64_t end_ns)
{
	running->steps++;
	running->step_ns = end_ns > running->step_ns ? end_ns : running->step_ns; // threads' rings are read in turn
}

void running_energy_clear_points(struct running_energy *running)
{
	running->n_points = 0;
}

/* ---- a tick ---- */

// The longest known period of the other counters from the same source; 0: none is known.
static int64_t period_next_to(const struct running_energy *running, const struct sampler *sampler, size_t i)
{
	const struct sensor_set *set = sampler->sensors;
	int64_t longest_ns = 0;
	for (size_t k = 0; k < set->n_devices; k++) {
		const struct energy_track *track = &running->devices[k].track;
		int64_t period_ns = period_of(track);
		bool is_beside = running->devices[k].in_total && track->n_updates > 0 &&
			strcmp(set->sources[k], set->sources[i]) == 0;
		if (is_beside && period_ns > longest_ns)
			longest_ns = period_ns;
	}
	return longest_ns;
}

/* Whether its power is known. With an unknown period it would be 0 W, and all energy at the next change; a counter
 * that is unchanged while its neighbours change draws nothing. */
static bool has_pace(const struct running_energy *running, const struct sampler *sampler, size_t i)
{
	const struct energy_track *track = &running->devices[i].track;
	int64_t period_ns = period_of(track);
	if (!track->domain->has_energy || (period_ns > 0 && track->n_updates > 0))
		return true;
	if (period_ns <= 0 && track->n_updates == 0)
		period_ns = period_next_to(running, sampler, i);
	int64_t still_ns = period_ns > 0 ? PERIODS_MAX * period_ns : STILL_NS;
	return sampler->last_t_ns - running->start_ns >= still_ns;
}

static void add_traits(struct running_energy *running, const struct sampler *sampler, size_t i)
{
	const struct domain *domain = sampler->sensors->devices[i];
	running->has_pace = running->has_pace && has_pace(running, sampler, i);
	if (domain->provenance > running->provenance)
		running->provenance = domain->provenance;
}

static int64_t last_tick_ns(const struct running_energy *running)
{
	return running->n_ticks > 0 ? running->ticks[(running->n_ticks - 1) % RUNNING_ENERGY_TICKS].t_ns : INT64_MIN;
}

void running_energy_add_up(struct running_energy *running, const struct sampler *sampler)
{
	const int64_t t_ns = sampler->last_t_ns;
	double sum_j = (double)NAN;
	if (running->devices == NULL || t_ns == last_tick_ns(running))
		return;
	running->n_known = 0;
	running->has_pace = true;
	running->provenance = PROVENANCE_MEASURED;
	for (size_t i = 0; i < sampler->sensors->n_devices; i++) {
		double j = running->devices[i].in_total ? used_j(running, &running->devices[i].track, t_ns)
							: (double)NAN;
		if (isnan(j))
			continue;
		sum_j = nan_sum(sum_j, j);
		running->n_known++;
		add_traits(running, sampler, i);
	}
	running->ticks[running->n_ticks++ % RUNNING_ENERGY_TICKS] = (struct running_energy_tick){t_ns, sum_j};
	add_point(running);
}

/* While the period is unknown: the distance of the last two updates, if it contains readings without a change. With no period the
 * curve would stay flat after each update, and all energy up to the next one would be power of a later line. */
static struct update_period period_so_far(const struct energy_track *track, const struct sampler *sampler, size_t i)
{
	const int64_t interval_ns = sampler->options.interval_ns;
	bool has_rested = track->n_updates > 1 && track->rest_ns >= RESTS_MIN * interval_ns;
	if (sampler->periods[i].period_ns > 0 || interval_ns <= 0 || !has_rested)
		return sampler->periods[i];
	return (struct update_period){track->rest_ns, interval_ns};
}

void running_energy_tick(struct running_energy *running, const struct sampler *sampler, int64_t start_ns)
{
	if (running->devices == NULL)
		return;
	for (size_t i = 0; i < sampler->sensors->n_devices; i++) {
		struct energy_track *track = &running->devices[i].track;
		track->period = period_so_far(track, sampler, i);
		energy_track_feed(track, sampler->last_t_ns, sampler->rows[i], false);
	}
	running->start_ns = start_ns;
	// Between two calls of options->progress only the energy of steps is needed.
	if (running->n_ticks == 0 || (running->steps > 0 && sampler->last_t_ns - last_tick_ns(running) >= POINT_NS))
		running_energy_add_up(running, sampler);
}

double running_energy_j(const struct running_energy *running)
{
	return running->n_ticks > 0 ? running->ticks[(running->n_ticks - 1) % RUNNING_ENERGY_TICKS].energy_j
				    : (double)NAN;
}
