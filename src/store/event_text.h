/* Events of run files that were recorded before table event had columns: their sentences into fields. The only place that reads them. */
#pragma once

#include "base/arena.h"
#include "metric/event.h"

/* Fields of event (kind and t_ns are there already) from its sentence, as far as they can be told. Texts in `arena`; -ENOMEM. A sentence
 * that no version of wattle wrote leaves the type EVENT_OTHER, with the domain that it begins with, if there is one. */
int event_of_text(struct event *event, const char *text, struct arena *arena);
