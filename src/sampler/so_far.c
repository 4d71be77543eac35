/* The same sum as energy.total_j of the report: of domains that add up and lie in no other that does. That one is made of all
 * readings afterwards; here each counter is read as it stands, with what it will have counted since its last update by the
 * power of that one, and without what its first update brought from before the start. */
#include "sampler/recorder.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

// Points of steps are at least so far apart: more of them than fit between two calls of options->progress tell no more.
static const int64_t POINT_NS = 20 * NS_PER_MS;
// A counter of which nobody knows how often it moves is taken to stand still after so long.
static const int64_t STILL_NS = 3 * NS_PER_S;
static const double PERIODS_MOST = 2; // ahead of a counter: one that stands still for longer has nothing to count

/* ---- open ---- */

int so_far_open(struct so_far *so_far, const struct sampler *sampler)
{
	const struct sensor_set *set = sampler->sensors;
	so_far->devices = calloc_array(set->n_devices + 1, sizeof(*so_far->devices));
	if (so_far->devices == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < set->n_devices; i++)
		so_far->devices[i].in_total = sampler_reads(sampler, i) && sensor_set_adds_up(set, set->devices[i]);
	return 0;
}

void so_far_close(struct so_far *so_far)
{
	free(so_far->devices);
	so_far->devices = NULL;
}

/* ---- energy ---- */

/* What a counter moves by first was used during one period, of which a part may lie before the start. How long its period
 * is may turn out only later. */
static double before_start_uj(const struct so_far_device *device, int64_t start_ns, int64_t period_ns)
{
	int64_t since_ns = device->first_moved_ns - start_ns;
	if (period_ns <= 0)
		period_ns = device->rest_ns;
	if (period_ns <= 0 || since_ns >= period_ns)
		return 0;
	return device->first_uj * (1 - (double)since_ns / (double)period_ns);
}

/* A move is seen at a tick, up to an interval late. Updates come whole periods after each other: where that lies between the
 * tick before and this one. */
static int64_t when_moved_ns(const struct so_far *so_far, const struct so_far_device *device, int64_t seen_ns,
	int64_t period_ns)
{
	if (device->moved_ns == 0 || period_ns <= 0 || so_far->n_ticks == 0)
		return seen_ns;
	int64_t before_ns = so_far->ticks[(so_far->n_ticks - 1) % SO_FAR_TICKS].t_ns;
	int64_t periods = llround((double)(seen_ns - device->moved_ns) / (double)period_ns);
	int64_t due_ns = device->moved_ns + periods * period_ns;
	return due_ns < before_ns ? before_ns : due_ns > seen_ns ? seen_ns : due_ns;
}

/* It was seen to move since the tick before. A counter that could be read only some time after the start is taken to have
 * moved as fast before. */
static void note_move(struct so_far *so_far, struct so_far_device *device, double step_uj, int64_t moved_ns,
	int64_t period_ns)
{
	bool is_first = device->moved_ns == 0, is_late = device->first_ns > so_far->start_ns;
	int64_t from_ns = !is_first ? device->moved_ns : is_late ? device->first_ns : moved_ns - period_ns;
	double power_w = moved_ns > from_ns ? step_uj / (double)(moved_ns - from_ns) * 1e3 : 0;
	if (is_first && is_late)
		device->early_uj -= power_w * (double)(device->first_ns - so_far->start_ns) * 1e-3;
	else if (is_first)
		device->first_uj = step_uj;
	else if (device->rest_ns == 0)
		device->rest_ns = moved_ns - device->moved_ns;
	if (is_first)
		device->first_moved_ns = moved_ns;
	device->power_w = power_w;
	device->moved_ns = moved_ns;
}

static void take_counter(struct so_far *so_far, struct so_far_device *device, const struct counter *counter,
	int64_t period_ns)
{
	double total_uj = (double)counter->total;
	if (!counter->primed)
		return;
	if (so_far->start_ns == 0)
		device->early_uj = total_uj; // between the first reading and the start
	else if (total_uj > device->counted_uj)
		note_move(so_far, device, total_uj - device->counted_uj,
			when_moved_ns(so_far, device, counter->last_change_ns, period_ns), period_ns);
	if (!device->is_known)
		device->first_ns = counter->last_t_ns;
	device->counted_uj = total_uj;
	device->is_known = true;
}

static int64_t period_of(const struct so_far_device *device, const struct update_period *period)
{
	return period->period_ns > 0 ? period->period_ns : device->rest_ns;
}

static double ahead_uj(const struct so_far_device *device, int64_t period_ns, int64_t t_ns)
{
	if (device->moved_ns == 0)
		return 0;
	double since_ns = fmin((double)(t_ns - device->moved_ns), PERIODS_MOST * (double)period_ns);
	return fmax(since_ns, 0) * 1e-3 * device->power_w;
}

static void take_power(struct so_far *so_far, struct so_far_device *device, int64_t power_mw, int64_t t_ns)
{
	double power_w = value_to_double(power_mw, 1e-3);
	if (isnan(power_w))
		return;
	if (!device->is_known && so_far->start_ns != 0) // the load model tells of the time before a reading
		device->counted_uj = power_w * (double)(t_ns - so_far->start_ns) * 1e-3;
	else if (so_far->start_ns != 0)
		device->counted_uj += (device->power_w + power_w) / 2 * (double)(t_ns - device->t_ns) * 1e-3;
	device->power_w = power_w;
	device->t_ns = t_ns;
	device->is_known = true;
}

// Of a device; NaN: unknown.
static double used_uj(struct so_far *so_far, const struct sampler *sampler, size_t i, int64_t t_ns)
{
	struct so_far_device *device = &so_far->devices[i];
	const struct domain *domain = sampler->sensors->devices[i];
	const struct counter *counter = &sampler->counters[i];
	if (domain->has_energy)
		take_counter(so_far, device, counter, sampler->periods[i].period_ns);
	else
		take_power(so_far, device, sampler->rows[i][DEVICE_POWER], t_ns);
	bool is_begun = device->moved_ns != 0 ||
		device->first_ns <= so_far->start_ns; // a late one may have missed something
	if (!device->is_known || !is_begun)
		return (double)NAN;
	if (!domain->has_energy)
		return device->counted_uj - device->early_uj;
	int64_t period_ns = sampler->periods[i].period_ns;
	double early_uj = device->early_uj + before_start_uj(device, so_far->start_ns, period_ns);
	return device->counted_uj - early_uj + ahead_uj(device, period_of(device, &sampler->periods[i]), t_ns);
}

/* ---- where steps ended ---- */

// On the line between two ticks; before the oldest one that is kept, there.
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

// The longest of the counters that stand beside it, from the same source; 0: of none it is known.
static int64_t period_beside(const struct so_far *so_far, const struct sampler *sampler, size_t i)
{
	const struct sensor_set *set = sampler->sensors;
	int64_t longest_ns = 0;
	for (size_t k = 0; k < set->n_devices; k++) {
		int64_t period_ns = period_of(&so_far->devices[k], &sampler->periods[k]);
		bool is_beside = so_far->devices[k].in_total && so_far->devices[k].moved_ns != 0 &&
			strcmp(set->sources[k], set->sources[i]) == 0;
		if (is_beside && period_ns > longest_ns)
			longest_ns = period_ns;
	}
	return longest_ns;
}

/* Whether its power can be told. As long as nobody knows how often it moves it would be 0 W, and all of it with the next
 * move; one that stands still while those beside it move draws nothing. */
static bool has_pace(const struct so_far *so_far, const struct sampler *sampler, size_t i)
{
	const struct so_far_device *device = &so_far->devices[i];
	int64_t period_ns = period_of(device, &sampler->periods[i]);
	if (!sampler->sensors->devices[i]->has_energy || (period_ns > 0 && device->moved_ns != 0))
		return true;
	if (period_ns <= 0 && device->moved_ns == 0)
		period_ns = period_beside(so_far, sampler, i);
	int64_t still_ns = period_ns > 0 ? (int64_t)(PERIODS_MOST * (double)period_ns) : STILL_NS;
	return sampler->last_t_ns - so_far->start_ns >= still_ns;
}

static void add_traits(struct so_far *so_far, const struct sampler *sampler, size_t i)
{
	const struct domain *domain = sampler->sensors->devices[i];
	so_far->has_pace = so_far->has_pace && has_pace(so_far, sampler, i);
	if (domain->provenance > so_far->provenance)
		so_far->provenance = domain->provenance;
}

void so_far_tick(struct so_far *so_far, const struct sampler *sampler, int64_t start_ns)
{
	if (so_far->devices == NULL)
		return;
	double sum_uj = (double)NAN;
	so_far->start_ns = start_ns;
	so_far->n_known = 0;
	so_far->has_pace = true;
	so_far->provenance = PROVENANCE_MEASURED;
	for (size_t i = 0; i < sampler->sensors->n_devices; i++) {
		if (!so_far->devices[i].in_total)
			continue;
		double uj = domain_gain(sampler->sensors->devices[i]) * used_uj(so_far, sampler, i, sampler->last_t_ns);
		if (isnan(uj))
			continue;
		sum_uj = (isnan(sum_uj) ? 0 : sum_uj) + uj;
		so_far->n_known++;
		add_traits(so_far, sampler, i);
	}
	so_far->ticks[so_far->n_ticks++ % SO_FAR_TICKS] = (struct so_far_tick){sampler->last_t_ns, sum_uj * 1e-6};
	add_point(so_far);
}

double so_far_energy_j(const struct so_far *so_far)
{
	return so_far->n_ticks > 0 ? so_far->ticks[(so_far->n_ticks - 1) % SO_FAR_TICKS].energy_j : (double)NAN;
}
