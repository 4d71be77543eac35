#include "lib/tracker.h"

#include "base/util.h"
#include "span/writer/writer.h"

#include <pthread.h>

static const char variable[] = "WATTLE_RING";

/* A process has a single span writer, and therefore a single stack of the trackers that use it. A signal handler may
 * fork while the lock is held. */
static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	struct tracker_ring *top;
} process = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, .once = PTHREAD_ONCE_INIT};

static void before_fork(void)
{
	pthread_mutex_lock(&process.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&process.lock);
}

// The stack belongs to the parent.
static void in_forked_child(void)
{
	process.lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	process.top = NULL;
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_forked_child);
}

void fork_lock_init(void)
{
	pthread_once(&process.once, watch_forks);
}

void fork_lock_take(void)
{
	fork_lock_init();
	pthread_mutex_lock(&process.lock);
}

void fork_lock_release(void)
{
	pthread_mutex_unlock(&process.lock);
}

static char *copy(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

static void set_environment(const char *ring)
{
	if (ring != NULL)
		setenv(variable, ring, 1);
	else
		unsetenv(variable);
}

void tracker_ring_enter(struct tracker_ring *own, const char *ring, bool keep_environment)
{
	fork_lock_take();
	const char *now = secure_getenv(variable);
	*own = (struct tracker_ring){
		.below = process.top,
		.ring = copy(ring),
		.ring_before = copy(process.top != NULL ? process.top->ring : now),
		.environment_before = copy(now),
		.is_in_environment = !keep_environment,
	};
	if (own->ring == NULL || span_writer_connect(ring) < 0) {
		tracker_ring_free(own);
	} else {
		process.top = own;
		if (!keep_environment)
			set_environment(ring);
	}
	fork_lock_release();
}

static void swap(char **a, char **b)
{
	char *kept = *a;
	*a = *b;
	*b = kept;
}

// The tracker above inherits the previous destination of this one.
static void leave_middle(struct tracker_ring *own)
{
	struct tracker_ring *above = process.top;
	while (above->below != own)
		above = above->below;
	above->below = own->below;
	swap(&above->ring_before, &own->ring_before);
	if (own->is_in_environment)
		swap(&above->environment_before, &own->environment_before);
}

static void leave_top(struct tracker_ring *own)
{
	process.top = own->below;
	if (own->ring_before == NULL || span_writer_connect(own->ring_before) < 0)
		span_writer_disconnect();
	const char *now = getenv(variable);
	bool is_ours = now != NULL && strcmp(now, own->ring) == 0; // false: the program changed the variable itself
	if (own->is_in_environment && is_ours)
		set_environment(own->environment_before);
}

void tracker_ring_leave(struct tracker_ring *own)
{
	if (own->ring == NULL)
		return;
	fork_lock_take();
	if (process.top == own)
		leave_top(own);
	else
		leave_middle(own);
	fork_lock_release();
	tracker_ring_free(own);
}

void tracker_ring_free(struct tracker_ring *own)
{
	free(own->ring);
	free(own->ring_before);
	free(own->environment_before);
	*own = (struct tracker_ring){0};
}
