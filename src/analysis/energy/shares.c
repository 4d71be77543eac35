#include "analysis/energy/attribute.h"

struct shares shares_cpu(const struct attribution *a, const struct window *window)
{
	return shares_of_use(window->target_ns, window->wattle_ns, window->busy_ns, METHOD_CPU_TIME);
}
