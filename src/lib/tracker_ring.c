#include "lib/tracker_ring.h"

#include "base/util.h"
#include "span/writer.h"

#include <stdatomic.h>

static const char variable[] = "WATTLE_RING";

// Who came last. The writer is one for the process, so this is too.
static _Atomic(const struct tracker_ring *) latest;

static char *copy(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

void tracker_ring_enter(struct tracker_ring *where, const char *ring, bool keep_environment)
{
	*where = (struct tracker_ring){.before = copy(secure_getenv(variable))};
	if (span_writer_connect(ring) < 0)
		return;
	where->entered = true;
	atomic_store(&latest, where);
	if (keep_environment)
		return;
	where->set = copy(ring);
	if (where->set != NULL)
		setenv(variable, ring, 1);
}

static void leave_environment(const struct tracker_ring *where)
{
	const char *now = getenv(variable);
	if (where->set == NULL || now == NULL || strcmp(now, where->set) != 0)
		return;
	if (where->before != NULL)
		setenv(variable, where->before, 1);
	else
		unsetenv(variable);
}

void tracker_ring_leave(struct tracker_ring *where)
{
	const struct tracker_ring *expected = where;
	if (where->entered && atomic_compare_exchange_strong(&latest, &expected, NULL)) {
		span_writer_disconnect();
		if (where->before != NULL)
			span_writer_connect(where->before);
	}
	leave_environment(where);
	tracker_ring_forget(where);
}

void tracker_ring_forget(struct tracker_ring *where)
{
	free(where->set);
	free(where->before);
	*where = (struct tracker_ring){0};
}
