#include "analysis/readers.h"

#include <string.h>

static const char kind_sensors[] = "sensors", read_by[] = ": read by ", taken_over[] = ": taken over",
		  read_here[] = ": read here";

// "package-0, dram-0: read by …": whether the names before `what` have the device's among them.
static bool says(const struct run_event *event, const char *what, const char *device)
{
	if (strcmp(event->kind, kind_sensors) != 0 || event->text == NULL)
		return false;
	size_t length = strlen(device);
	const char *end = strstr(event->text, what);
	for (const char *at = event->text; end != NULL && at < end; at += strcspn(at, ",:") + 2)
		if (strncmp(at, device, length) == 0 && (at[length] == ',' || at[length] == ':'))
			return true;
	return false;
}

static const struct run_event *find(const struct run *run, const struct run_event *from, const char *what,
	const struct run_device *device)
{
	for (const struct run_event *event = from; event < run->events + run->n_events; event++)
		if (says(event, what, device->name))
			return event;
	return NULL;
}

const struct run_event *readers_elsewhere(const struct run *run, const struct run_device *device)
{
	return find(run, run->events, read_by, device);
}

bool readers_are_several(const struct run *run, const struct run_event *first, const struct run_device *device)
{
	return find(run, first + 1, read_by, device) != NULL;
}

const struct run_event *readers_takeover(const struct run *run, const struct run_device *device)
{
	return find(run, run->events, taken_over, device);
}

int64_t readers_ours_from_ns(const struct run *run, const struct run_device *device, size_t segment)
{
	int64_t start_ns = run->segments[segment].start_ns, end_ns = run->segments[segment].end_ns;
	int64_t from_ns = start_ns; // in ascending order, each recorder's own words for it first
	for (size_t i = 0; i < run->n_events && run->events[i].t_ns <= end_ns; i++) {
		const struct run_event *event = &run->events[i];
		if (says(event, read_by, device->name))
			from_ns = end_ns;
		else if (says(event, taken_over, device->name) || says(event, read_here, device->name))
			from_ns = event->t_ns > start_ns ? event->t_ns : start_ns;
	}
	return from_ns;
}
