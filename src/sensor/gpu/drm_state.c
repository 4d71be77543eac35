#include "sensor/gpu/drm_state.h"

#include "base/util.h"

#include <stdio.h>

static const char *const notes[] = {
	[DRM_AWAKE] = "",
	[DRM_ASLEEP] = "asleep (suspended at run time): not read, so that it is not woken",
	[DRM_GONE] = "gone from the machine; looked for once a second",
};

void drm_power_open(struct drm_power *power, const struct wattle_env *env, const char *device)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/power/runtime_status", device);
	if (file_kept_open(&power->status, env->sysfs_fd, path) < 0)
		power->status.path[0] = '\0';
}

void drm_power_close(struct drm_power *power)
{
	file_kept_close(&power->status);
}

bool drm_power_sleeps(struct drm_power *power)
{
	char text[32];
	if (power->status.path[0] == '\0' || file_kept_read(&power->status, text, sizeof(text)) <= 0)
		return false;
	return strncmp(text, "suspend", strlen("suspend")) == 0; // "suspended", "suspending"
}

void drm_state_tell(struct domain *domain, enum drm_state state)
{
	bool told = strcmp(domain->note, notes[DRM_ASLEEP]) == 0 || strcmp(domain->note, notes[DRM_GONE]) == 0;
	if (state != DRM_AWAKE || told) // another note stays until there is this to tell
		text_copy(domain->note, sizeof(domain->note), notes[state]);
}
