/* Energy between the last reading of one recorder and the first reading of the next. */
#include "analysis/job/join.h"

#include "base/checked_arith.h"
#include "base/util.h"

#include <errno.h>

// The counter's raw value at a row, from the last row that stored it.
static int64_t raw_at(const struct joining *j, const struct reading_run *reading_run, size_t row)
{
	const struct run_device *device = reading_run->from;
	size_t begin = slice_of(joining_run(j, reading_run->member), reading_run->segment, device->t_ns, device->n)
			       .begin;
	for (size_t i = row + 1; i-- > begin;) {
		int64_t raw = device_value(device, DEVICE_ENERGY_RAW, i);
		if (value_ok(raw) && value_ok(device_value(device, DEVICE_ENERGY, i)))
			return value_sum(raw,
				value_difference(device_value(device, DEVICE_ENERGY, row),
					device_value(device, DEVICE_ENERGY, i)));
	}
	return VALUE_MISSING;
}

// Counter range in microjoules; 0: the counter never wraps, or its range is unknown.
static int64_t round_uj(const struct run_device *device)
{
	double uj = device->energy_range_j * 1e6;
	return uj > 0 && uj < 0x1p62 ? llround(uj) + 1 : 0;
}

static double max_uj(const struct joining *j, double s)
{
	return domain_kind_max_power_w(j->domain->device.kind) * (s + 1) * 1e6; // margin: readings and updates are at
										// different times
}

// The highest power over a second, or over a shorter piece, of all readings; *ret_s: the total time read.
static double largest_power_w(const struct joining *j, double *ret_s)
{
	double max_w = 0;
	*ret_s = 0;
	for (size_t p = 0; p < j->n_reading_runs; p++) {
		const struct reading_run *reading_run = &j->reading_runs[p];
		struct run_values uj = device_column(reading_run->from, DEVICE_ENERGY);
		const int64_t *t_ns = reading_run->from->t_ns;
		size_t from = reading_run->rows.begin;
		for (size_t row = from + 1; row < reading_run->rows.end; row++) {
			bool is_long = t_ns[row] - t_ns[from] >= NS_PER_S || row + 1 == reading_run->rows.end;
			if (value_ok(values_at(uj, from)) && (!is_long || !value_ok(values_at(uj, row))))
				continue;
			double s = (double)(t_ns[row] - t_ns[from]) / 1e9;
			if (value_ok(values_at(uj, from)) && s > 0) {
				max_w = fmax(max_w,
					((double)values_at(uj, row) - (double)values_at(uj, from)) / 1e6 / s);
				*ret_s += s;
			}
			from = row;
		}
	}
	return max_w;
}

/* Whole counter rounds that were not observed: the number that brings the power nearest to its previous mean, within
 * the time available. One round less is always possible; one more, if that takes no more power than the domain has
 * shown in at least as much time. */
static int64_t hidden_rounds(const struct joining *j, int64_t round, int64_t delta_uj, double gap_s,
	bool *ret_uncertainty)
{
	static const double thinkable = 1.5; // multiple of the largest power
	double possible = floor((max_uj(j, gap_s) - (double)delta_uj) / (double)round);
	*ret_uncertainty = false;
	if (!(possible >= 1))
		return 0;
	double so_far_s = (double)(j->last->from->t_ns[j->last_row] - j->first_ns) / 1e9;
	double mean_w = so_far_s > 0 ? (double)j->total_uj / 1e6 / so_far_s : 0;
	double likeliest = floor((mean_w * gap_s * 1e6 - (double)delta_uj) / (double)round + 0.5);
	double rounds = fmax(0, fmin(likeliest, possible)), read_s;
	double period_s = j->domain->device.update_period_s > 0 ? j->domain->device.update_period_s : 0;
	double more_w = ((double)delta_uj + (rounds + 1) * (double)round) / 1e6 / (gap_s + period_s);
	double largest_w = largest_power_w(j, &read_s);
	*ret_uncertainty = rounds >= 1 ||
		(possible >= rounds + 1 && (read_s < gap_s || more_w <= thinkable * largest_w));
	return (int64_t)rounds;
}

void joining_count(struct joining *j, int64_t delta_uj)
{
	int64_t total_uj = value_sum(j->total_uj, delta_uj);
	j->total_uj = value_ok(total_uj) ? total_uj : j->total_uj; // overflow: no counter counts that far, so the file is damaged
}

int joining_add(struct joining *j, struct event event)
{
	event.device = j->domain->device.name;
	j->domain->events[j->domain->n_events++] = event;
	return event_set_text(&j->domain->events[j->domain->n_events - 1], j->work->arena);
}

int joining_event(struct joining *j, int64_t t_ns, enum event_type type)
{
	return joining_add(j, event_make(type, t_ns));
}

// VALUE_MISSING: the counter's raw value does not give the energy.
static int64_t delta_by_raw(struct joining *j, const struct reading_run *next, size_t row, int *ret_error)
{
	int64_t before = raw_at(j, j->last, j->last_row), after = raw_at(j, next, row);
	int64_t round = round_uj(&j->domain->device);
	if (!value_ok(before) || !value_ok(after))
		return VALUE_MISSING;
	double gap_s = (double)(next->from->t_ns[row] - j->last->from->t_ns[j->last_row]) / 1e9;
	int64_t delta = round > 0 ? (after % round - before % round) % round : value_difference(after, before);
	if (round > 0 && delta < 0)
		delta += round;
	if (delta < 0 || (double)delta > max_uj(j, gap_s))
		return VALUE_MISSING; // the counter was reset in between
	bool uncertainty = false, wrapped = round > 0 && after % round < before % round;
	int64_t rounds = round > 0 ? hidden_rounds(j, round, delta, gap_s, &uncertainty) : 0;
	int64_t t_ns = next->from->t_ns[row];
	if (uncertainty)
		*ret_error = joining_event(j, t_ns, EVENT_WRAP_UNREAD);
	else if (wrapped)
		*ret_error = joining_event(j, t_ns, EVENT_WRAP_HANDOVER);
	return (double)delta + (double)rounds * (double)round < 0x1p62 ? delta + rounds * round : VALUE_MISSING;
}

// From the next piece's readings, if the first of them is not later than the last one of the previous piece.
static int64_t delta_by_overlap(const struct joining *j, const struct reading_run *next, size_t row)
{
	struct run_values uj = device_column(next->from, DEVICE_ENERGY);
	const int64_t *t_ns = next->from->t_ns;
	int64_t at_ns = j->last->from->t_ns[j->last_row];
	for (size_t i = row; i-- > next->rows.begin;) {
		if (!value_ok(values_at(uj, i)) || t_ns[i] > at_ns)
			continue;
		double part = (double)(at_ns - t_ns[i]) / (double)(t_ns[row] - t_ns[i]);
		int64_t grown = value_difference(values_at(uj, row), values_at(uj, i));
		return value_ok(grown) ? grown - llround(part * (double)grown) : VALUE_MISSING;
	}
	return VALUE_MISSING;
}

static int64_t delta_within(const struct joining *j, const struct reading_run *next, size_t row)
{
	const struct reading_run *last = j->last;
	if (last->member != next->member || last->segment != next->segment || last->from != next->from)
		return VALUE_MISSING;
	return value_difference(device_value(next->from, DEVICE_ENERGY, row),
		device_value(last->from, DEVICE_ENERGY, j->last_row));
}

// Energy from the last reading to the first one of the next piece.
int joining_link(struct joining *j, const struct reading_run *next, size_t row)
{
	int r = 0;
	int64_t delta = delta_within(j, next, row);
	if (!value_ok(delta))
		delta = delta_by_raw(j, next, row, &r);
	if (!value_ok(delta))
		delta = delta_by_overlap(j, next, row);
	if (value_ok(delta) && delta >= 0) {
		joining_count(j, delta);
		return r;
	}
	int64_t from_ns = j->last->from->t_ns[j->last_row], to_ns = next->from->t_ns[row];
	j->domain->unknown_ns += to_ns - from_ns;
	return joining_event(j, from_ns + (to_ns - from_ns) / 2, EVENT_RESET_HANDOVER);
}
