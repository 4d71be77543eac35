#include "base/units.h"

#include "base/util.h"

struct unit {
	const char *name;
	double size;
};

static const struct unit memory_units[] = {
	{"bytes", 1},
	{"kilobytes", 1e3},
	{"megabytes", 1e6},
	{"gigabytes", 1e9},
	{"terabytes", 1e12},
};

static const struct unit time_units[] = {
	{"seconds", 1},
	{"minutes", 60},
	{"hours", 3600},
	{"days", 86400},
};

static const struct {
	const struct unit *units;
	size_t n;
	const char *names;
} tables[] = {
	[UNIT_MEMORY] = {memory_units, ARRAY_SIZE(memory_units), "bytes, kilobytes, megabytes, gigabytes, terabytes"},
	[UNIT_TIME] = {time_units, ARRAY_SIZE(time_units), "seconds, minutes, hours, days"},
};

double unit_size(enum unit_kind kind, const char *name)
{
	for (size_t i = 0; name != NULL && i < tables[kind].n; i++)
		if (strcmp(tables[kind].units[i].name, name) == 0)
			return tables[kind].units[i].size;
	return (double)NAN;
}

const char *unit_names(enum unit_kind kind)
{
	return tables[kind].names;
}
