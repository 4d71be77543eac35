#include "helper/policy.h"

#include <errno.h>

int policy_load(const char *path, struct policy *ret_policy, struct wattle_error *reterr)
{
	return error_set(reterr, -ENOSYS, "%s: not yet", path);
}
