/* Clocks: current ones, supported ones, and locking them. */
#include "fake.h"

#include "export.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static struct fake_bound bound_now(const struct fake_view *view)
{
	return fake_bound_at(view, (double)view->t_ns * 1e-9);
}

static unsigned int graphics_mhz(const struct fake_view *view)
{
	struct fake_bound bound = bound_now(view);
	if (view->gpu->power.shape != SHAPE_SPEED)
		return (unsigned int)fmin(view->gpu->sm_clock_mhz, bound.clock_mhz);
	return (unsigned int)lround(fake_clock(view->gpu, bound) * view->gpu->max_sm_clock_mhz);
}

// The reasons in the file, and the power limit if it reduces the clock.
static uint64_t reasons(const struct fake_view *view)
{
	const uint64_t software_power_cap = 4;
	const struct fake_gpu *gpu = view->gpu;
	bool is_held = gpu->power.shape == SHAPE_SPEED && bound_now(view).limit_mw < gpu->power.speed.full_mw;
	return gpu->throttle_bits | (is_held ? software_power_cap : 0);
}

API(nvmlDeviceGetClockInfo, const void *device, int type, unsigned int *ret_mhz)
{
	GPU(device);
	*ret_mhz = type == 2 ? view.gpu->memory_clock_mhz : graphics_mhz(&view);
	return type >= 0 && type <= 3 ? SUCCESS : INVALID_ARGUMENT;
}

API(nvmlDeviceGetMaxClockInfo, const void *device, int type, unsigned int *ret_mhz)
{
	GPU(device);
	*ret_mhz = type == 2 ? view.gpu->memory_clock_mhz : view.gpu->max_sm_clock_mhz;
	return SUCCESS;
}

API(nvmlDeviceGetCurrentClocksThrottleReasons, const void *device, unsigned long long *ret_bits)
{
	GPU(device);
	*ret_bits = reasons(&view);
	return SUCCESS;
}

#if FAKE_GENERATION >= 550
API(nvmlDeviceGetCurrentClocksEventReasons, const void *device, unsigned long long *ret_bits)
{
	GPU(device);
	*ret_bits = reasons(&view);
	return SUCCESS;
}
#endif

// Highest first, as the real library lists them.
static int put_clocks(unsigned int from_mhz, unsigned int to_mhz, unsigned int step_mhz, unsigned int *count,
	unsigned int *ret_mhz)
{
	unsigned int room = *count;
	*count = (from_mhz - to_mhz) / step_mhz + 1;
	if (room < *count || ret_mhz == NULL)
		return INSUFFICIENT_SIZE;
	for (unsigned int i = 0; i < *count; i++)
		ret_mhz[i] = to_mhz + (*count - 1 - i) * step_mhz;
	return SUCCESS;
}

API(nvmlDeviceGetSupportedMemoryClocks, const void *device, unsigned int *count, unsigned int *ret_mhz)
{
	GPU(device);
	return put_clocks(view.gpu->memory_clock_mhz, view.gpu->memory_clock_mhz, 1, count, ret_mhz);
}

API(nvmlDeviceGetSupportedGraphicsClocks, const void *device, unsigned int memory_mhz, unsigned int *count,
	unsigned int *ret_mhz)
{
	GPU(device);
	const struct fake_gpu *gpu = view.gpu;
	if (memory_mhz != gpu->memory_clock_mhz)
		return NOT_FOUND;
	return put_clocks(gpu->max_sm_clock_mhz, gpu->clock_min_mhz, gpu->clock_step_mhz, count, ret_mhz);
}

#if FAKE_GENERATION >= 470
static int set_clocks(const struct fake_view *view, unsigned int min_mhz, unsigned int max_mhz)
{
	char words[48];
	if (!fake_may_set(view))
		return NO_PERMISSION;
	snprintf(words, sizeof(words), "%u %d %u", max_mhz, (int)getpid(), min_mhz);
	return fake_set(view, &view->logs->of[FAKE_CLOCKS], words);
}

API(nvmlDeviceSetGpuLockedClocks, const void *device, unsigned int min_mhz, unsigned int max_mhz)
{
	GPU(device);
	if (min_mhz > max_mhz || min_mhz < view.gpu->clock_min_mhz || max_mhz > view.gpu->max_sm_clock_mhz)
		return INVALID_ARGUMENT;
	return set_clocks(&view, min_mhz, max_mhz);
}

API(nvmlDeviceResetGpuLockedClocks, const void *device)
{
	GPU(device);
	return set_clocks(&view, 0, 0);
}
#endif
