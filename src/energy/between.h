/* The energy of one device between two instants, from whatever part of a run holds readings around them: what lies between two
 * steps of a program that still runs, say. */
#pragma once

#include "store/run.h"

struct energy_between {
	double j;       // NaN: it could not be had: no reading there, or a hole among them
	double error_j; // half of a 95 % interval, from when the counter was updated and how power changed; without what the
			// meter is off by always, which is the same for all that it meters
	double scale_error; // that: 0.05 is 5 %; 0 where nobody states one
	bool from_power;    // integrated power, no counter
};

/* Counters are interpolated between their own updates, as for code blocks; power is integrated where there is no counter. The
 * segments of the run tell which instants are ends of the program, at which power may change. interval_ns: of the samples. -ENOMEM. */
int energy_between(const struct run *run, const struct run_device *device, int64_t interval_ns, int64_t from_ns,
	int64_t to_ns, struct energy_between *ret);
// Of the sensor's calibration, beside error_j: relative. NaN: nothing is known of it, as of all but GPUs.
double calibration_error(const struct run_device *device);
