#include "wattle.h"

#include "base/util.h"
#include "lib/tracker.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct wattle_tracker {
	pthread_mutex_t lock; // protects all members below
	struct wattle_tracker_options options;
	struct tracker_recorder recorder;
	struct tracker_ring ring;
	struct wattle_error error;
	pid_t owner; // process that started the tracker; 0: not started
	bool is_disabled;
	_Atomic int state; // enum wattle_state
};

/* ---- entry and exit of every call ---- */

/* State of one call between enter and leave. Cancellation is disabled, because it would leave the tracker locked. */
struct call {
	wattle_tracker *tracker;
	int cancel_state;
};

// -EBADF: this is a forked child, and the recorder belongs to its parent.
static int enter(struct call *call, wattle_tracker *tracker)
{
	if (tracker == NULL)
		return -EINVAL;
	if (tracker->owner != 0 && tracker->owner != getpid())
		return -EBADF;
	call->tracker = tracker;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call->cancel_state);
	pthread_mutex_lock(&tracker->lock);
	tracker->error = (struct wattle_error){0};
	return 0;
}

static int leave(const struct call *call, int code)
{
	wattle_tracker *tracker = call->tracker;
	if (code < 0 && tracker->error.code == 0)
		error_set(&tracker->error, code, "%s", wattle_strerror(code));
	pthread_mutex_unlock(&tracker->lock);
	pthread_setcancelstate(call->cancel_state, NULL);
	return code;
}

/* ---- calls ---- */

int wattle_tracker_new(const struct wattle_tracker_options *options, wattle_tracker **ret)
{
	if (ret == NULL)
		return -EINVAL;
	wattle_tracker *tracker = calloc(1, sizeof(*tracker));
	if (tracker == NULL)
		return -ENOMEM;
	int r = tracker_options_copy(options, &tracker->options);
	if (r < 0) {
		free(tracker);
		return r;
	}
	tracker->is_disabled = is_disabled_by_environment();
	tracker->recorder.fd = -1;
	pthread_mutex_init(&tracker->lock, NULL);
	*ret = tracker;
	return 0;
}

static int start(wattle_tracker *tracker)
{
	if (tracker->state != WATTLE_NEW)
		return tracker->state == WATTLE_STARTED ? -EALREADY : -EPERM;
	if (!tracker->is_disabled) {
		pid_t self = getpid();
		pid_t pid = tracker->options.pid != 0 ? (pid_t)tracker->options.pid : self;
		int r = tracker_spawn(&tracker->recorder, &tracker->options, pid, &tracker->error);
		if (r < 0)
			return r;
		if (pid == self && tracker->recorder.ring[0] != '\0')
			tracker_ring_enter(&tracker->ring, tracker->recorder.ring,
				tracker->options.keep_environment != 0);
	}
	tracker->owner = getpid();
	tracker->state = WATTLE_STARTED;
	return 0;
}

int wattle_tracker_start(wattle_tracker *tracker)
{
	struct call call;
	int r = enter(&call, tracker);
	return r < 0 ? r : leave(&call, start(tracker));
}

static int stop(wattle_tracker *tracker)
{
	if (tracker->state != WATTLE_STARTED)
		return -EPERM;
	int r = tracker->is_disabled
		? 0
		: tracker_end(&tracker->recorder, tracker->options.stop_timeout_s, &tracker->error);
	tracker_ring_leave(&tracker->ring);
	tracker->state = WATTLE_STOPPED;
	return r;
}

int wattle_tracker_stop(wattle_tracker *tracker)
{
	struct call call;
	int r = enter(&call, tracker);
	return r < 0 ? r : leave(&call, stop(tracker));
}

enum wattle_state wattle_tracker_state(const wattle_tracker *tracker)
{
	return tracker != NULL ? (enum wattle_state)tracker->state : WATTLE_NEW;
}

static int report(wattle_tracker *tracker, char **ret)
{
	if (ret == NULL)
		return -EINVAL;
	if (tracker->state != WATTLE_STOPPED)
		return -EPERM;
	const char *text = tracker->is_disabled ? "null" : tracker->recorder.report;
	if (text == NULL)
		return error_set(&tracker->error, -EIO,
			"no report: the recorder died; read the run file with `wattle report`");
	char *copy = strdup(text);
	if (copy == NULL)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

int wattle_tracker_report_json(wattle_tracker *tracker, char **ret)
{
	struct call call;
	int r = enter(&call, tracker);
	return r < 0 ? r : leave(&call, report(tracker, ret));
}

const char *wattle_tracker_run_file(const wattle_tracker *tracker)
{
	return tracker != NULL ? tracker->recorder.run_file : NULL;
}

const char *wattle_tracker_error(const wattle_tracker *tracker)
{
	return tracker != NULL ? tracker->error.text : "";
}

void wattle_tracker_free(wattle_tracker *tracker)
{
	if (tracker == NULL)
		return;
	bool is_ours = tracker->owner == 0 || tracker->owner == getpid();
	if (is_ours) {
		if (tracker->state == WATTLE_STARTED)
			(void)wattle_tracker_stop(tracker);
		tracker_remove_files(&tracker->recorder);
	}
	tracker_ring_free(&tracker->ring);
	tracker_free(&tracker->recorder);
	tracker_options_finish(&tracker->options);
	pthread_mutex_destroy(&tracker->lock);
	free(tracker);
}
