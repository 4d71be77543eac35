#include "fake.h"

#include "export.h"

#include <string.h>

// A record has the first 16, 24 or 32 bytes of this.
struct wire_process {
	unsigned int pid;
	unsigned long long used_bytes;
	unsigned int gpu_instance, compute_instance;
	unsigned long long protected_bytes;
};
_Static_assert(sizeof(struct wire_process) == 32, "layouts of the real library");

// A card lists all its processes, an instance its own.
static bool listed(const struct fake_process *process, char kind, const struct fake_view *view)
{
	if (view->instance >= 0 ? process->instance != view->instance
				: process->instance >= 0 && view->gpu->mig_lists_by_part)
		return false;
	return strchr(process->kinds, kind) != NULL && fake_within(&process->when, view->t_ns / 1000000);
}

static struct wire_process record_of(const struct fake_process *process, const struct fake_gpu *gpu, pid_t pid)
{
	const struct fake_mig *part = process->instance >= 0 ? &gpu->mig[process->instance] : NULL;
	return (struct wire_process){(unsigned int)pid, process->memory_bytes,
		part != NULL ? part->gpu_instance : UINT32_MAX, part != NULL ? part->compute_instance : UINT32_MAX, 0};
}

static int list(const char *function, const void *device, char kind, size_t record_size, unsigned int *count,
	unsigned char *records)
{
	__attribute__((cleanup(fake_leave))) struct fake_view view;
	pid_t pids[PIDS_MAX];
	unsigned int n = 0;
	int code = fake_enter(function, device, true, &view);
	if (code != SUCCESS)
		return code;
	for (unsigned int i = 0; i < view.gpu->n_processes; i++) {
		const struct fake_process *process = &view.gpu->processes[i];
		size_t n_pids = listed(process, kind, &view)
			? fake_pids(process->who, view.config->path, pids, PIDS_MAX)
			: 0;
		for (size_t k = 0; k < n_pids; k++, n++) {
			struct wire_process record = record_of(process, view.gpu, pids[k]);
			if (records != NULL && n < *count)
				memcpy(records + n * record_size, &record, record_size);
		}
	}
	bool fits = n <= *count && (records != NULL || n == 0);
	*count = n;
	return fits ? SUCCESS : INSUFFICIENT_SIZE;
}

#define LIST(name, kind, record_size)                                                                                  \
	API(name, const void *device, unsigned int *count, void *records)                                              \
	{                                                                                                              \
		return list(__func__, device, kind, record_size, count, records);                                      \
	}

LIST(nvmlDeviceGetComputeRunningProcesses, 'C', 16)
LIST(nvmlDeviceGetGraphicsRunningProcesses, 'G', 16)

#if FAKE_GENERATION >= 470
LIST(nvmlDeviceGetMPSComputeRunningProcesses, 'M', 16)

/* The newest ticks of each process that was busy then, later than last_seen_us. As in real drivers, idle processes
 * have none. */
static unsigned int put_samples(const struct fake_view *view, const struct fake_process *process, int64_t tick,
	unsigned long long last_seen_us, struct wire_sample *samples, unsigned int n, unsigned int room)
{
	pid_t pids[PIDS_MAX];
	int64_t t_ns = tick * view->gpu->sample_period_ms * 1000000;
	unsigned long long timestamp_us = (unsigned long long)fake_wall_us(t_ns);
	if (process->sm_percent == 0 || !fake_within(&process->when, t_ns / 1000000) || timestamp_us <= last_seen_us)
		return n;
	size_t n_pids = fake_pids(process->who, view->config->path, pids, PIDS_MAX);
	for (size_t i = 0; i < n_pids; i++, n++) {
		if (n < room)
			samples[n] = (struct wire_sample){(unsigned int)pids[i], timestamp_us, process->sm_percent, 0,
				0, 0};
	}
	return n;
}

// Invalid samples that clients of real drivers must leave out.
static unsigned int put_garbage(struct wire_sample *samples, unsigned int n, unsigned int room)
{
	const struct wire_sample garbage[] = {
		{0, 1ull << 60, 50, 0, 0, 0}, {1, 1ull << 60, 2147483632, 0, 0, 0}, {1, 1, 99, 0, 0, 0},
		{1, 1ull << 60, 50, 0, 0, 0}, // newer than any to come
	};
	for (unsigned int i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++, n++) {
		if (n < room)
			samples[n] = garbage[i];
	}
	return n;
}

API(nvmlDeviceGetProcessUtilization, const void *device, struct wire_sample *samples, unsigned int *count,
	unsigned long long last_seen_us)
{
	GPU(device);
	enum { RING = 100 };
	if (samples == NULL) {
		*count = RING;
		return INSUFFICIENT_SIZE;
	}
	unsigned int n = 0, room = *count;
	int64_t newest = view.t_ns / 1000000 / view.gpu->sample_period_ms;
	for (unsigned int back = 0; back < view.gpu->samples && newest >= back; back++) {
		for (unsigned int i = 0; i < view.gpu->n_processes; i++)
			n = put_samples(&view, &view.gpu->processes[i], newest - back, last_seen_us, samples, n, room);
	}
	if (view.gpu->garbage)
		n = put_garbage(samples, n, room);
	*count = n;
	if (n == 0)
		return NOT_FOUND;
	return n <= room ? SUCCESS : INSUFFICIENT_SIZE;
}
#endif

#if FAKE_GENERATION == 535
// No real driver has these without _v2; here it makes the client distinguish the struct versions.
LIST(nvmlDeviceGetComputeRunningProcesses_v3, 'C', 32)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 'G', 32)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M', 32)
#endif

#if FAKE_GENERATION >= 550
LIST(nvmlDeviceGetComputeRunningProcesses_v2, 'C', 24)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 'G', 24)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'M', 24)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, 'C', 24)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 'G', 24)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M', 24)

API(nvmlDeviceGetRunningProcessDetailList, const void *device, void *ret)
{
	GPU(device);
	return ret != NULL ? NOT_SUPPORTED : INVALID_ARGUMENT;
}
#endif
