/* Which devices a text of the caller's means: "gpu-0", "GPU-8f2c", "gpu-0,package-1", "gpus". */
#pragma once

#include "lib/cap_session.h"

// ret_devices has room for all of the session's; each once, in the order of the text. -EINVAL, -ENODEV with a sentence.
int cap_choose(struct cap_session *session, const char *text, enum cap_what what, struct cap_device **ret_devices,
	size_t *ret_n, struct wattle_error *reterr);

// The same as names with commas, as the extension for Python keeps them. With WATTLE_DISABLE=1 the text itself.
int cap_choose_names(const char *text, enum cap_what what, char *ret_names, size_t size, struct wattle_error *reterr);
