/* Each process on one GPU, for those who look at all of them and not at one target. */
#pragma once

#include "sensor/gpu/nvml_mig.h"
#include "sensor/gpu/nvml_process.h"
#include "sensor/gpu/nvml_use.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nvml_users {
	bool wanted, known;
	size_t n;
	struct device_user users[NVML_USERS_MAX];
	uint32_t ids[NVML_USERS_MAX]; // what the driver calls them
};

void nvml_users_forget(struct nvml_users *users);
// From the driver's lists: who, with how much memory and on what part of the GPU.
void nvml_users_list(struct nvml_users *users, const struct nvml_process_set *set, const struct nvml_mig *mig,
	struct pid_match *match);
// From its samples of SM use: how busy each was. Those that no list has are added.
void nvml_users_add_use(struct nvml_users *users, const struct nvml_use *use, struct pid_match *match);
