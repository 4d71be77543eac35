#include "lib/tracker.h"

#include "base/util.h"
#include "span/writer/writer.h"

#include <pthread.h>

static const char variable[] = "WATTLE_RING";

// The process has one writer, and so one stack of trackers that use it. A signal handler may fork while the lock is
// held.
static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	struct tracker_ring *top;
} pile = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, .once = PTHREAD_ONCE_INIT};

/* A child inherits the state of the lock inside glibc's setenv: if another thread is in setenv when the program forks,
 * the child deadlocks in its first setenv (glibc 2.36). This lock keeps forks out of our setenv calls. */
static void before_fork(void)
{
	pthread_mutex_lock(&pile.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&pile.lock);
}

// The stack belongs to the parent.
static void in_forked_child(void)
{
	pile.lock = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	pile.top = NULL;
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, in_forked_child);
}

static void lock_pile(void)
{
	pthread_once(&pile.once, watch_forks);
	pthread_mutex_lock(&pile.lock);
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
	lock_pile();
	const char *now = secure_getenv(variable);
	*own = (struct tracker_ring){
		.below = pile.top,
		.ring = copy(ring),
		.ring_before = copy(pile.top != NULL ? pile.top->ring : now),
		.environment_before = copy(now),
		.is_in_environment = !keep_environment,
	};
	if (own->ring == NULL || span_writer_connect(ring) < 0) {
		tracker_ring_forget(own);
	} else {
		pile.top = own;
		if (!keep_environment)
			set_environment(ring);
	}
	pthread_mutex_unlock(&pile.lock);
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
	struct tracker_ring *above = pile.top;
	while (above->below != own)
		above = above->below;
	above->below = own->below;
	swap(&above->ring_before, &own->ring_before);
	if (own->is_in_environment)
		swap(&above->environment_before, &own->environment_before);
}

static void leave_top(struct tracker_ring *own)
{
	pile.top = own->below;
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
	lock_pile();
	if (pile.top == own)
		leave_top(own);
	else
		leave_middle(own);
	pthread_mutex_unlock(&pile.lock);
	tracker_ring_forget(own);
}

void tracker_ring_forget(struct tracker_ring *own)
{
	free(own->ring);
	free(own->ring_before);
	free(own->environment_before);
	*own = (struct tracker_ring){0};
}
