#include "lib/cap.h"

#include "base/util.h"
#include "lib/tracker.h"

#include <errno.h>
#include <stdio.h>

int cap_choose(struct cap_session *session, const char *text, enum cap_kind what, struct cap_device **ret_devices,
	size_t *ret_n, struct wattle_error *reterr)
{
	if (text == NULL || text[0] == '\0')
		return error_set(reterr, -EINVAL, "no device is named; valid are gpu-0, package-0, a UUID, gpus");
	return cap_devices_choose(&session->devices, &session->env, text, what, true, ret_devices, ret_n, reterr);
}

static int names_of(struct cap_session *session, const char *text, enum cap_kind what, char *ret_names, size_t size,
	struct wattle_error *reterr)
{
	struct cap_device **devices = calloc_array(session->devices.n, sizeof(struct cap_device *));
	size_t n = 0, used = 0;
	int r = devices != NULL ? cap_choose(session, text, what, devices, &n, reterr) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < n; i++) {
		used += (size_t)snprintf(ret_names + used, size - used, "%s%s", i > 0 ? "," : "", devices[i]->name);
		if (used >= size)
			r = error_set(reterr, -EINVAL, "%s: too many devices", text);
	}
	free(devices);
	return r;
}

int cap_choose_names(const char *text, enum cap_kind what, char *ret_names, size_t size, struct wattle_error *reterr)
{
	if (is_disabled_by_environment())
		return text_copy(ret_names, size, text) ? 0
							: error_set(reterr, -EINVAL, "the list of devices is too long");
	struct cap_session *session;
	int r = cap_session_enter(&session, reterr);
	if (r < 0)
		return r;
	r = names_of(session, text, what, ret_names, size, reterr);
	cap_session_leave();
	return r;
}
