#include "lib/tracker.h"

#include <stdlib.h>
#include <string.h>

bool is_disabled_by_environment(void)
{
	const char *disable = secure_getenv("WATTLE_DISABLE");
	return disable != NULL && strcmp(disable, "1") == 0;
}
