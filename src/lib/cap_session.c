#include "lib/cap.h"

#include "base/util.h"
#include "lib/tracker.h"
#include "wattle.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

// The library's only global state, with the messages of each thread.
static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	pthread_key_t words; // struct words, one per thread
	bool has_messages, is_open, has_exit_handler;
	struct cap_session session;
	struct cap_devices left_behind;
	char program[PATH_MAX], name[64];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* ---- fork and exit ---- */

static void lock_for_fork(void)
{
	pthread_mutex_lock(&state.lock);
}

static void unlock_in_parent(void)
{
	pthread_mutex_unlock(&state.lock);
}

/* The child must not touch the leases of its parent. NVML handles are invalid in a child and closing them could hang
 * it, so they are leaked on purpose, but kept reachable for leak checkers. */
static void reset_in_child(void)
{
	pthread_mutex_init(&state.lock, NULL);
	if (!state.is_open)
		return;
	for (size_t i = 0; i < state.session.devices.n; i++)
		cap_hold_disown(state.session.entries[i].hold);
	free(state.session.entries);
	env_close(&state.session.env);
	state.left_behind = state.session.devices;
	state.session = (struct cap_session){0};
	state.is_open = false;
}

/* Restores the limits before the process ends, so that its parent finds them restored; the guard would do so only
 * moments later. atexit functions run before drivers are unloaded, and also when a shared library that contains this
 * code is unloaded. The guard restores limits held by threads that are still in a call or a search. */
static void release_at_exit(void)
{
	if (pthread_mutex_trylock(&state.lock) != 0)
		return;
	for (size_t i = 0; state.is_open && i < state.session.devices.n; i++) {
		struct cap_entry *entry = &state.session.entries[i];
		struct cap_outcome outcome;
		bool is_in_use = entry->is_searched && !pthread_equal(entry->searcher, pthread_self());
		if (entry->hold != NULL && !is_in_use)
			(void)cap_hold_end(entry->hold, &outcome, NULL);
		if (!is_in_use)
			entry->hold = NULL;
	}
	pthread_mutex_unlock(&state.lock);
}

/* ---- open ---- */

void cap_session_configure(const char *program, const char *name)
{
	pthread_mutex_lock(&state.lock);
	(void)text_copy(state.program, sizeof(state.program), program != NULL ? program : "");
	(void)text_copy(state.name, sizeof(state.name), name);
	pthread_mutex_unlock(&state.lock);
}

static void remember(void *data, const char *text)
{
	struct cap_session *session = data;
	size_t used = strlen(session->recovered);
	snprintf(session->recovered + used, sizeof(session->recovered) - used, "%s%s", used > 0 ? "; " : "", text);
}

static int fill(struct cap_session *session, struct wattle_error *reterr)
{
	const char *given = state.program[0] != '\0' ? state.program : NULL;
	const char *name = state.name[0] != '\0' ? state.name : program_invocation_short_name;
	int r = cap_owner_self(name, &session->holder.owner);
	if (r < 0)
		return r;
	session->program_code = tracker_program_find(given, session->program, sizeof(session->program));
	session->argv[0] = session->program;
	session->holder.env = &session->env;
	session->holder.guard.argv = session->argv;
	session->holder.guard.shared = &session->guard;
	(void)cap_recover(&session->env, remember, session);
	r = cap_devices_open(&session->devices, &session->env, reterr);
	if (r < 0)
		return r;
	session->entries = calloc_array(session->devices.n, sizeof(*session->entries));
	for (size_t i = 0; session->entries != NULL && i < session->devices.n; i++)
		session->entries[i].value = (double)NAN;
	if (session->entries != NULL)
		return 0;
	cap_devices_close(&session->devices);
	return -ENOMEM;
}

static int open_session(struct wattle_error *reterr)
{
	int r = env_open(&state.session.env, reterr);
	if (r < 0)
		return r;
	r = fill(&state.session, reterr);
	if (r < 0) {
		env_close(&state.session.env);
		state.session = (struct cap_session){0};
		return r;
	}
	state.is_open = true;
	if (!state.has_exit_handler) // registered after the drivers are loaded, so that it runs before their exit handlers
		state.has_exit_handler = atexit(release_at_exit) == 0;
	return 0;
}

static void set_up(void)
{
	state.has_messages = pthread_key_create(&state.words, free) == 0;
	fork_lock_init();
	(void)pthread_atfork(lock_for_fork, unlock_in_parent, reset_in_child);
}

/* Restarts a guard that was killed; several leases may share one. This is only checked in a call: if the guard and then
 * the program are killed between two calls, the next start of wattle restores the limit. */
static void restart_guard(struct cap_session *session)
{
	for (size_t i = 0; i < session->devices.n; i++) {
		struct cap_entry *entry = &session->entries[i];
		struct pollfd guard = {.fd = -1, .events = POLLIN};
		struct cap_outcome outcome;
		if (entry->hold != NULL && !entry->is_searched)
			guard.fd = cap_hold_fd(entry->hold);
		if (guard.fd >= 0 && poll(&guard, 1, 0) > 0)
			(void)cap_hold_check(entry->hold, &outcome);
	}
}

int cap_session_enter(struct cap_session **ret_session, struct wattle_error *reterr)
{
	pthread_once(&state.once, set_up); // before any fork can happen with the lock held
	pthread_mutex_lock(&state.lock);
	int r = state.is_open ? 0 : open_session(reterr);
	if (r == 0)
		restart_guard(&state.session);
	if (r < 0)
		pthread_mutex_unlock(&state.lock);
	else
		*ret_session = &state.session;
	return r;
}

void cap_session_leave(void)
{
	pthread_mutex_unlock(&state.lock);
}

/* ---- leases ---- */

struct cap_entry *cap_session_entry(struct cap_session *session, const struct cap_device *device)
{
	return &session->entries[device - session->devices.devices];
}

int cap_session_hold(struct cap_session *session, struct cap_device *device, struct wattle_error *reterr)
{
	struct cap_entry *entry = cap_session_entry(session, device);
	if (entry->is_searched)
		return error_set(reterr, -EBUSY, "%s: %s is already tuning its limit", device->name,
			pthread_equal(entry->searcher, pthread_self()) ? "this thread"
								       : "another thread of this program");
	if (entry->hold != NULL)
		return 0;
	if (session->program_code < 0)
		return error_set(reterr, -ENOENT,
			"can't find the program wattle, which guards limits, next to this library or in "
			"$PATH; install it, or add its folder to PATH");
	return cap_hold_open(&session->holder, device, &entry->hold, reterr);
}

int cap_session_release(struct cap_session *session, struct cap_device *device, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct cap_entry *entry = cap_session_entry(session, device);
	struct cap_hold *hold = entry->hold;
	entry->hold = NULL;
	entry->value = (double)NAN;
	return cap_hold_end(hold, ret_outcome, reterr);
}

/* ---- messages ---- */

/* Not __thread: the span writer needs its thread-local variables in static TLS, where signal handlers can reach them,
 * and libraries loaded later get little of that space. */
struct words {
	struct wattle_error error;
	char notice[1200];
};

// NULL: out of memory; the message is dropped.
static struct words *thread_messages(void)
{
	pthread_once(&state.once, set_up);
	struct words *words = state.has_messages ? pthread_getspecific(state.words) : NULL;
	if (words != NULL || !state.has_messages)
		return words;
	words = calloc(1, sizeof(*words));
	if (words != NULL && pthread_setspecific(state.words, words) != 0) {
		free(words);
		words = NULL;
	}
	return words;
}

struct wattle_error *cap_message_begin(void)
{
	struct words *words = thread_messages();
	if (words == NULL)
		return NULL;
	words->error = (struct wattle_error){0};
	words->notice[0] = '\0';
	return &words->error;
}

struct wattle_error *cap_message_error(void)
{
	struct words *words = thread_messages();
	return words != NULL ? &words->error : NULL;
}

int cap_message_end(int code)
{
	struct words *words = thread_messages();
	if (code < 0 && words != NULL && words->error.text[0] == '\0')
		error_set(&words->error, code, "%s", wattle_strerror(code));
	return code;
}

void cap_message_notice(const char *text)
{
	struct words *words = thread_messages();
	size_t used = words != NULL ? strlen(words->notice) : 0;
	if (words != NULL && text[0] != '\0')
		snprintf(words->notice + used, sizeof(words->notice) - used, "%s%s", used > 0 ? "; " : "", text);
}

const char *wattle_cap_error(void)
{
	struct words *words = thread_messages();
	return words != NULL ? words->error.text : "";
}

const char *wattle_cap_notice(void)
{
	struct words *words = thread_messages();
	return words != NULL ? words->notice : "";
}
