/* The driver's accounts of processes, where accounting mode is on: the largest memory each ever had, kept when it has
 * ended. So a process of the target that came and went between two readings still counts. */
#pragma once

#include "sensor/gpu/nvml_board.h"
#include "sensor/gpu/pid_match.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvml_accounts {
	bool on;
	uint64_t opened_us; // wall clock: older accounts of processes that have ended are none of this run's
	int64_t looked_ns;  // VALUE_MISSING: never
	int64_t told_bytes; // the largest memory of the target that a row has told so far
};

struct nvml_accounts_room {
	unsigned int *pids; // owned by the sensor
	size_t n;
};

void nvml_accounts_open(struct nvml_accounts *accounts, struct nvml_board *board);
/* Raises TARGET_MEMORY of this row to the largest account of the target's processes, if no row has told as much yet. Asks
 * the driver once a second, and when a process of the target has ended. */
void nvml_accounts_read(struct nvml_accounts *accounts, struct nvml_board *board, const struct nvml_accounts_room *room,
	struct pid_match *match, int64_t *row);
