/* One domain while the machine is to be idle: its mean power, how sure that is, and whether it stayed the same. Pure: no
 * clock, no file. */
#pragma once

#include "metric/metric.h"
#include "energy/counter.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IDLE_WINDOWS_MAX = 3600 };

struct idle_edge { // an update of the counter
	int64_t t_ns;
	double energy_j;
	double blur_s; // it was made within so much time before t_ns
};

struct idle_watch {
	const struct domain *domain; // borrowed
	struct counter counter;
	bool has_edge;
	struct idle_edge first, last, window_start;
	int64_t last_look_ns;
	double power_sum_w, temperature_sum_c; // of the current window, and of all
	size_t n_powers, n_temperatures;
	double windows_w[IDLE_WINDOWS_MAX]; // mean power of each; NaN: no update in it
	size_t n_windows;
	bool was_reset; // the counter started anew: nothing before it counts
};

struct idle_result {
	double idle_w, error_w; // half of a 95 % interval
	double seconds;
	double temperature_c;       // NaN unknown
	double lowest_w, highest_w; // of the windows
};

void idle_watch_init(struct idle_watch *watch, const struct domain *domain, int64_t t_ns);
// values: a row of the set; power and temperature are taken where they are there.
void idle_watch_feed(struct idle_watch *watch, int64_t t_ns, const int64_t values[DEVICE_COUNT]);
void idle_watch_end_window(struct idle_watch *watch);
// False if the domain never moved, so that nothing can be said.
bool idle_watch_result(const struct idle_watch *watch, struct idle_result *ret_result);
// Whether the power of the windows so far stayed within what an idle domain's wanders.
bool idle_watch_is_steady(const struct idle_watch *watch, struct idle_result *ret_result);
