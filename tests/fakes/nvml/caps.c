/* Power limits: the calls that set and return them. */
#include "fake.h"

#include "export.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

API(nvmlDeviceGetPowerManagementMode, const void *device, unsigned int *ret_mode)
{
	GPU(device);
	*ret_mode = 1;
	return SUCCESS;
}

API(nvmlDeviceGetPersistenceMode, const void *device, unsigned int *ret_mode)
{
	GPU(device);
	*ret_mode = !view.gpu->persistence_off;
	return SUCCESS;
}

API(nvmlDeviceGetPowerManagementLimit, const void *device, unsigned int *ret_mw)
{
	GPU(device);
	*ret_mw = fake_limit_mw(&view);
	return SUCCESS;
}

API(nvmlDeviceGetPowerManagementDefaultLimit, const void *device, unsigned int *ret_mw)
{
	GPU(device);
	*ret_mw = view.gpu->limit_default_mw;
	return SUCCESS;
}

API(nvmlDeviceGetPowerManagementLimitConstraints, const void *device, unsigned int *ret_min_mw,
	unsigned int *ret_max_mw)
{
	GPU(device);
	*ret_min_mw = view.gpu->limit_min_mw;
	*ret_max_mw = view.gpu->limit_max_mw;
	return SUCCESS;
}

bool fake_may_set(const struct fake_view *view)
{
	return view->gpu->set_uid < 0 || (int64_t)geteuid() == view->gpu->set_uid;
}

static void wait_ms(int64_t ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};
	while (ms > 0 && nanosleep(&left, &left) < 0)
		continue;
}

// Half of the duration before it takes effect and half after, so that a kill may fall on either side.
int fake_set(const struct fake_view *view, const struct fake_log *log, const char *words)
{
	const struct fake_config *config = view->config;
	int64_t ms = view->gpu->set_delay_ms;
	unsigned int index = view->index;
	wait_ms(ms / 2);
	bool kept = fake_log_add(config->path, log, index, words);
	wait_ms(ms - ms / 2);
	return kept ? SUCCESS : NO_PERMISSION;
}

static int set_limit(const struct fake_view *view, unsigned int limit_mw)
{
	char words[32];
	if (!fake_may_set(view))
		return NO_PERMISSION;
	if (limit_mw < view->gpu->limit_min_mw || limit_mw > view->gpu->limit_max_mw)
		return INVALID_ARGUMENT;
	limit_mw -= limit_mw % view->gpu->limit_step_mw;
	snprintf(words, sizeof(words), "%u %d", limit_mw, (int)getpid());
	return fake_set(view, &view->logs->of[FAKE_LIMITS], words);
}

API(nvmlDeviceSetPowerManagementLimit, const void *device, unsigned int limit_mw)
{
	GPU(device);
	return set_limit(&view, limit_mw);
}

#if FAKE_GENERATION >= 470

API(nvmlDeviceGetEnforcedPowerLimit, const void *device, unsigned int *ret_mw)
{
	GPU(device);
	unsigned int limit_mw = fake_limit_mw(&view);
	*ret_mw = limit_mw < view.gpu->enforced_mw ? limit_mw : view.gpu->enforced_mw;
	return SUCCESS;
}

API(nvmlDeviceSetPowerManagementLimit_v2, const void *device, const struct wire_power_value *value)
{
	GPU(device);
	if (value->version != (sizeof(*value) | 2u << 24))
		return VERSION_MISMATCH;
	return value->scope == 0 ? set_limit(&view, value->limit_mw) : NOT_SUPPORTED;
}
#endif
