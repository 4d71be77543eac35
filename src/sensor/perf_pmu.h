/* The kernel's description of a perf PMU below bus/event_source/devices: how an event's name becomes numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct perf_event_code {
	uint64_t config, config1, config2;
};

// terms: "event=0x02,umask=0x1" as in events/NAME; where each goes is in FOLDER/format/TERM ("config:0-7,21").
// -EINVAL for terms that can't be understood or do not fit.
int perf_pmu_encode(int root_fd, const char *folder, const char *terms, struct perf_event_code *ret_code);

// events/NAME.scale: what one count is worth in the unit of events/NAME.unit; -EINVAL for anything that is no joules.
int perf_pmu_read_scale(int root_fd, const char *folder, const char *event, double *ret_joules);
