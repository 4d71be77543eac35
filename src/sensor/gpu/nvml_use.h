/* SM use of the target and of all others, from the driver's samples of each process. */
#pragma once

#include "sensor/gpu/nvml_board.h"
#include "sensor/gpu/nvml_process.h"
#include "sensor/gpu/pid_match.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvml_sm_use {
	double percent[PID_UNKNOWN + 1]; // by enum pid_side
};

enum { NVML_USERS_MAX = 128 }; // on one GPU that are told one by one

struct nvml_pid_use {
	uint32_t pid; // as the driver says
	double percent;
};

struct nvml_use {
	uint64_t seen_us;    // newest sample so far, on the driver's clock
	uint64_t spacing_us; // shortest time between two new ones; 0 before there were two
	int64_t fresh_ns;    // when it was new to us
	bool awaits_first;   // seen_us is of before the first reading: the use since then is not known yet
	struct nvml_sm_use last;
	struct nvml_pid_use pids[NVML_USERS_MAX]; // the same by process
	size_t n_pids;
};

struct nvml_use_room {
	struct nvml_process_sample *samples; // owned by the sensor
	size_t n;
};

// How many samples the driver may return for this board; also finds out whether it has any.
size_t nvml_use_sample_room(struct nvml_board *board);
// Makes the first reading begin now, not with what the driver still remembers from before.
void nvml_use_prime(struct nvml_use *use, struct nvml_board *board, const struct nvml_use_room *room);
// Fills TARGET_UTILIZATION and OTHERS_UTILIZATION; returns NVML's code.
int nvml_use_read(struct nvml_use *use, struct nvml_board *board, const struct nvml_use_room *room,
	struct pid_match *match, const struct nvml_owners *owners, int64_t *row);

/* Mean SM use over (last_seen_us, newest sample], summed over the processes of each side. A process may have several
 * samples: each stands for the time since the one before it, and they are averaged by that time, not added up. Known
 * garbage is left out: pid 0, more than 100 percent, samples that were seen before. Reorders `samples`; returns the
 * newest time stamp, last_seen_us if there was nothing new. */
uint64_t nvml_sm_sum(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us, struct pid_match *match,
	struct nvml_sm_use *ret_use);
/* The same for each process, from what nvml_sm_sum left in `samples`; returns how many processes. Those beyond `room` are left
 * out. */
size_t nvml_sm_of_pids(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us, struct nvml_pid_use *pids,
	size_t room);
