// A plugin that contains the static library, as a Python extension might.
#include "wattle.h"

__attribute__((visibility("default"))) int plugin_work(const char *name);

int plugin_work(const char *name)
{
	int r = wattle_span_begin(name);
	return r < 0 ? r : wattle_span_end();
}
