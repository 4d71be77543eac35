#include "analysis/energy/attribute.h"

struct shares shares_cpu(const struct attribution *a, const struct window *window)
{
	if (isnan(window->busy_ns) || isnan(window->target_ns) || isnan(window->wattle_ns))
		return (struct shares){.unattributed = 1, .method = METHOD_NONE};
	if (!(window->busy_ns > 0))
		return (struct shares){.idle = 1, .method = METHOD_IDLE};
	return (struct shares){
		.target = window->target_ns / window->busy_ns,
		.wattle = window->wattle_ns / window->busy_ns,
		.method = METHOD_CPU_TIME,
	};
}
