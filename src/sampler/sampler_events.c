#include "sampler/sampler.h"

#include "base/util.h"

void sampler_event(struct sampler *sampler, const struct event *event)
{
	if (sampler->n_events == SAMPLER_EVENTS_MAX) {
		sampler->n_events_lost++;
		return;
	}
	struct store_event *stored = &sampler->events[sampler->n_events++];
	stored->event = *event;
	text_copy(stored->device, sizeof(stored->device), event->device != NULL ? event->device : "");
	text_copy(stored->detail, sizeof(stored->detail), event->detail != NULL ? event->detail : "");
}

void sampler_forget_events(struct sampler *sampler)
{
	sampler->n_events = 0;
	sampler->n_events_lost = 0;
}
