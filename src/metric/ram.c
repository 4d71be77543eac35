#include "metric/ram.h"

#include "base/sums.h"
#include "base/util.h"

void ram_init(struct ram_tracker *tracker)
{
	*tracker = (struct ram_tracker){0};
}

static struct ram_values carried(const struct ram_reading *last, int64_t rss_bytes)
{
	double rss = value_to_double(rss_bytes, 1);
	if (!last->known)
		return (struct ram_values){rss, (double)NAN, (double)NAN};
	double private_bytes = (double)last->private_bytes, shared_bytes = (double)last->shared_bytes;
	if (value_ok(rss_bytes) && value_ok(last->rss_bytes))
		private_bytes = fmax(0, private_bytes + (double)(rss_bytes - last->rss_bytes));
	// fmin takes the other one where RSS is not known: a reading alone is enough.
	shared_bytes = fmin(shared_bytes, rss);
	private_bytes = fmin(private_bytes, rss - shared_bytes);
	return (struct ram_values){private_bytes + shared_bytes, private_bytes, shared_bytes};
}

void ram_next(struct ram_tracker *tracker, const int64_t *run_values, struct ram_values ret_values[RAM_GROUPS])
{
	const struct ram_reading now[RAM_GROUPS] = {
		[RAM_MAIN] = {false, run_values[RUN_MAIN_PRIVATE], run_values[RUN_MAIN_SHARED],
			run_values[RUN_MAIN_RSS]},
		[RAM_DESCENDANTS] = {false, run_values[RUN_DESCENDANTS_PRIVATE], run_values[RUN_DESCENDANTS_SHARED],
			run_values[RUN_DESCENDANTS_RSS]},
		[RAM_COMBINED] = {false, value_sum(run_values[RUN_MAIN_PRIVATE], run_values[RUN_DESCENDANTS_PRIVATE]),
			run_values[RUN_COMBINED_SHARED],
			value_sum(run_values[RUN_MAIN_RSS], run_values[RUN_DESCENDANTS_RSS])},
	};
	for (size_t g = 0; g < RAM_GROUPS; g++) {
		bool read = value_ok(now[g].private_bytes) && value_ok(now[g].shared_bytes);
		if (read) {
			tracker->last[g] = now[g];
			tracker->last[g].known = true;
		}
		bool gone = !read && !value_ok(now[g].rss_bytes);
		ret_values[g] = gone ? (struct ram_values){(double)NAN, (double)NAN, (double)NAN}
				     : carried(&tracker->last[g], now[g].rss_bytes);
	}
}
