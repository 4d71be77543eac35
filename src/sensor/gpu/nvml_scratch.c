#include "sensor/gpu/nvml_scratch.h"

#include "base/util.h"

#include <errno.h>

// Lists of processes and samples are short; the room for them is not asked for again after open, so it is ample.
enum { RECORDS = 4096, SAMPLES_MIN = 1024, SAMPLES_MAX = 65536 };

// Twice what the driver says: the list may grow.
static size_t ample(size_t asked)
{
	size_t n = asked < SAMPLES_MAX / 2 ? asked * 2 : SAMPLES_MAX;
	return n > SAMPLES_MIN ? n : SAMPLES_MIN;
}

int nvml_scratch_open(struct nvml_scratch *scratch, size_t n_use, size_t n_power)
{
	*scratch = (struct nvml_scratch){
		.records = calloc_array(RECORDS, sizeof(struct nvml_process_r535)),
		.n_records = RECORDS,
		.processes = {.processes = calloc_array(RECORDS, sizeof(struct nvml_process)), .capacity = RECORDS},
		.use = {.samples = calloc_array(ample(n_use), sizeof(struct nvml_process_sample)), .n = ample(n_use)},
		.power = {.samples = calloc_array(ample(n_power), sizeof(struct nvml_sample)), .n = ample(n_power)},
		.accounts = {.pids = calloc_array(RECORDS, sizeof(unsigned int)), .n = RECORDS},
	};
	bool all = scratch->records != NULL && scratch->processes.processes != NULL && scratch->use.samples != NULL &&
		scratch->power.samples != NULL && scratch->accounts.pids != NULL;
	return all ? 0 : -ENOMEM;
}

void nvml_scratch_close(struct nvml_scratch *scratch)
{
	free(scratch->records);
	free(scratch->processes.processes);
	free(scratch->use.samples);
	free(scratch->power.samples);
	free(scratch->accounts.pids);
	*scratch = (struct nvml_scratch){0};
}
