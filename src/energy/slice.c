#include "energy/slice.h"

#include "base/search.h"
#include "base/util.h"

size_t slice_lower_bound(const int64_t *times_ns, size_t n, int64_t t_ns)
{
	return search_i64(times_ns, n, t_ns);
}

size_t slice_lower_bound_near(const int64_t *times_ns, size_t n, int64_t t_ns, size_t near)
{
	size_t low = near, high = near, step = 1;
	for (; low > 0 && times_ns[low - 1] >= t_ns; step *= 2) {
		high = low - 1;
		low = low > step ? low - step : 0;
	}
	for (step = 1; high < n && times_ns[high] < t_ns; step *= 2) {
		low = high + 1;
		high = n - high > step ? high + step : n;
	}
	return low + slice_lower_bound(times_ns + low, high - low, t_ns);
}

static size_t upper_bound(const int64_t *times_ns, size_t n, int64_t t_ns)
{
	return t_ns < INT64_MAX ? slice_lower_bound(times_ns, n, t_ns + 1) : n;
}

struct slice slice_after(const int64_t *times_ns, size_t n, int64_t from_ns, int64_t to_ns)
{
	return (struct slice){upper_bound(times_ns, n, from_ns), upper_bound(times_ns, n, to_ns)};
}

struct slice slice_after_near(const int64_t *times_ns, size_t n, int64_t from_ns, int64_t to_ns, size_t near)
{
	near = near < n ? near : n;
	if (from_ns == INT64_MAX || to_ns == INT64_MAX)
		return slice_after(times_ns, n, from_ns, to_ns);
	size_t begin = slice_lower_bound_near(times_ns, n, from_ns + 1, near);
	return (struct slice){begin, slice_lower_bound_near(times_ns, n, to_ns + 1, begin)};
}

int64_t slice_from_ns(const struct run *run, size_t segment)
{
	if (segment == 0)
		return INT64_MIN;
	int64_t before = run->segments[segment - 1].end_ns, after = run->segments[segment].start_ns;
	return after > before ? before + (after - before) / 2 : after;
}

int64_t slice_to_ns(const struct run *run, size_t segment)
{
	return segment + 1 < run->n_segments ? slice_from_ns(run, segment + 1) : INT64_MAX;
}

struct slice slice_of(const struct run *run, size_t segment, const int64_t *times_ns, size_t n)
{
	return (struct slice){
		.begin = slice_lower_bound(times_ns, n, slice_from_ns(run, segment)),
		.end = slice_lower_bound(times_ns, n, slice_to_ns(run, segment)),
	};
}

bool slice_is_poll(const struct run_device *device, size_t row)
{
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		if (m != DEVICE_ENERGY && m != DEVICE_ENERGY_TIME && m != DEVICE_ENERGY_RAW &&
			value_ok(device_value(device, m, row)))
			return false;
	return value_ok(device_value(device, DEVICE_ENERGY, row));
}

struct slice slice_samples(const struct run *run, size_t segment)
{
	return slice_of(run, segment, run->t_ns, run->n);
}

double segment_duration_s(const struct run_segment *segment)
{
	return segment->end_ns > segment->start_ns ? (double)(segment->end_ns - segment->start_ns) / 1e9 : 0;
}

double run_duration_s(const struct run *run)
{
	double duration_s = 0;
	for (size_t i = 0; i < run->n_segments; i++)
		duration_s += segment_duration_s(&run->segments[i]);
	return duration_s;
}
