#include "energy/slice.h"

static const struct event *find(const struct run *run, const struct event *from, enum event_type type,
	const struct run_device *device)
{
	for (const struct event *event = from; event < run->events + run->n_events; event++)
		if (event->type == type && event_is_of(event, device->name))
			return event;
	return NULL;
}

const struct event *sensor_owner_first_other(const struct run *run, const struct run_device *device)
{
	return find(run, run->events, EVENT_SENSORS_ELSEWHERE, device);
}

bool sensor_owner_has_changed(const struct run *run, const struct event *first, const struct run_device *device)
{
	return find(run, first + 1, EVENT_SENSORS_ELSEWHERE, device) != NULL;
}

const struct event *sensor_owner_takeover(const struct run *run, const struct run_device *device)
{
	return find(run, run->events, EVENT_SENSORS_TAKEN, device);
}

int64_t sensor_owner_own_from_ns(const struct run *run, const struct run_device *device, size_t segment)
{
	int64_t start_ns = run->segments[segment].start_ns, end_ns = run->segments[segment].end_ns;
	int64_t from_ns = start_ns; // ascending; for equal times each recorder's own event comes first
	for (size_t i = 0; i < run->n_events && run->events[i].t_ns <= end_ns; i++) {
		const struct event *event = &run->events[i];
		if (event->kind != EVENT_KIND_SENSORS || !event_is_of(event, device->name))
			continue;
		if (event->type == EVENT_SENSORS_ELSEWHERE)
			from_ns = end_ns;
		else if (event->type == EVENT_SENSORS_TAKEN || event->type == EVENT_SENSORS_HERE)
			from_ns = event->t_ns > start_ns ? event->t_ns : start_ns;
	}
	return from_ns;
}
