#include "fake.h"

#include "export.h"

#include <math.h>

static double t_s(const struct fake_view *view)
{
	return (double)view->t_ns * 1e-9;
}

API(nvmlDeviceGetPowerUsage, const void *device, unsigned int *ret_mw)
{
	GPU(device);
	double now_s = t_s(&view), since_s = fmax(0, now_s - view.gpu->power_average_s);
	double mw = fake_power_mw(view.gpu, fake_bound_at(&view, now_s), now_s);
	if (since_s < now_s)
		mw = (fake_limited_energy_mj(&view, now_s) - fake_limited_energy_mj(&view, since_s)) /
			(now_s - since_s);
	*ret_mw = (unsigned int)llround(mw);
	return SUCCESS;
}

double fake_counter_mj(const struct fake_view *view)
{
	const struct fake_gpu *gpu = view->gpu;
	double now_s = t_s(view);
	if (gpu->energy_period_s > 0)
		now_s = floor(now_s / gpu->energy_period_s + 1e-9) * gpu->energy_period_s;
	double mj = gpu->energy_start_mj + fake_limited_energy_mj(view, now_s);
	if (gpu->energy_reset_s >= 0 && now_s >= gpu->energy_reset_s)
		mj = fake_limited_energy_mj(view, now_s) - fake_limited_energy_mj(view, gpu->energy_reset_s);
	return floor(mj + 1e-6);
}

#if FAKE_GENERATION >= 470
API(nvmlDeviceGetTotalEnergyConsumption, const void *device, unsigned long long *ret_mj)
{
	GPU(device);
	if (view.gpu->energy_by_field)
		return NOT_SUPPORTED;
	*ret_mj = (unsigned long long)fake_counter_mj(&view);
	return SUCCESS;
}
#endif
