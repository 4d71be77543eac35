#include "span/writer/thread.h"

#include "span/writer/internal.h"
#include "span/writer/writer.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// glibc allocates memory for the values of further keys, and a signal handler may have interrupted malloc.
enum { KEYS_WITHOUT_MALLOC = 32 };
// A call that has been in progress for this long was left by siglongjmp.
static const int64_t left_after_ns = INT64_C(1000000000);

__thread struct span_thread *span_thread_self;

static struct {
	_Atomic(struct span_thread *) all; // list; new entries are added at its head only
	_Atomic uint32_t n, n_of_parents;
	bool has_key;
	pthread_key_t key;
} threads;

bool span_threads_had(uint64_t number)
{
	return number > atomic_load_explicit(&threads.n_of_parents, memory_order_relaxed) &&
		number <= atomic_load_explicit(&threads.n, memory_order_relaxed);
}

static void list(struct span_thread *thread)
{
	struct span_thread *first = atomic_load(&threads.all);
	for (struct span_thread *t = first; t != NULL; t = t->next)
		if (t == thread)
			return;
	do
		thread->next = first;
	while (!atomic_compare_exchange_weak(&threads.all, &first, thread));
}

// For new memory, or memory wiped by a fork.
static void initialise(struct span_thread *thread)
{
	atomic_store(&thread->is_taken, 1);
	thread->number = atomic_fetch_add(&threads.n, 1) + 1;
	list(thread);
}

static struct span_thread *make(void)
{
	struct span_thread *thread = mmap(NULL, sizeof(*thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	if (thread == MAP_FAILED)
		return NULL;
	span_sinks_wipe(madvise(thread, sizeof(*thread), MADV_WIPEONFORK) == 0);
	return thread;
}

// Called only for threads whose end can't be detected otherwise.
static bool is_gone(int32_t tid)
{
	return tid == gettid() || (syscall(SYS_tgkill, getpid(), tid, 0) < 0 && errno == ESRCH);
}

static struct span_thread *take_left(void)
{
	for (struct span_thread *t = atomic_load(&threads.all); t != NULL; t = t->next) {
		int is_taken = 0;
		if (atomic_compare_exchange_strong(&t->is_taken, &is_taken, 1))
			return t;
	}
	for (struct span_thread *t = atomic_load(&threads.all); t != NULL; t = t->next) {
		int is_taken = 1;
		if (!atomic_load(&t->is_unwatched) || !atomic_compare_exchange_strong(&t->is_taken, &is_taken, 2))
			continue;
		bool is_ours = is_gone(t->tid);
		atomic_store(&t->is_taken, 1);
		if (is_ours)
			return t;
	}
	return NULL;
}

static void watch(struct span_thread *thread)
{
	bool is_watched = threads.has_key && threads.key < KEYS_WITHOUT_MALLOC &&
		pthread_setspecific(threads.key, thread) == 0;
	atomic_store(&thread->is_unwatched, !is_watched);
}

static struct span_thread *enter(void)
{
	struct span_thread *thread = take_left();
	if (thread == NULL)
		thread = make();
	if (thread == NULL)
		return NULL;
	if (thread->number == 0)
		initialise(thread);
	thread->tid = gettid();
	thread->end_rounds = 0;
	thread->excess = 0;
	thread->limit = 0; // makes the first record call span_thread_make_room
	thread->sink.is_announced = false;
	atomic_store(&thread->busy, 0);
	atomic_store(&thread->owed, 0);
	atomic_store(&thread->cursor, thread->head << 32);
	span_names_clear(&thread->names);
	watch(thread);
	return thread;
}

static void begin_session(struct span_thread *thread, int session)
{
	if (thread->number == 0) {
		initialise(thread);
		thread->tid = gettid();
		watch(thread);
	}
	atomic_store(&thread->cursor, 0);
	atomic_store(&thread->owed, 0);
	thread->excess = 0;
	span_sink_detach(thread);
	atomic_store(&thread->nowhere[1], 0);
	atomic_store(&thread->nowhere[2], 0);
	thread->session = session;
}

/* Opens the first ring at once, so that a missing recorder is noticed before a call reports success. */
static struct span_thread *enter_session(void)
{
	struct span_thread *thread = span_thread_self;
	if (thread == NULL)
		span_thread_self = thread = enter();
	// busy: this is a signal handler that interrupted a call, whose state must not change.
	if (thread == NULL || atomic_load(&thread->busy) != 0)
		return thread;
	for (;;) {
		int session = atomic_load(&span_writer_state);
		if (session == SPAN_OFF || session == thread->session)
			return session != SPAN_OFF ? thread : NULL;
		begin_session(thread, session);
		(void)span_sink_renew(thread);
	}
}

struct span_thread *span_thread_set_up(void)
{
	struct quiet quiet;
	quiet_begin(&quiet);
	struct span_thread *thread = enter_session();
	quiet_end(&quiet);
	return thread;
}

bool span_thread_is_abandoned(struct span_thread *thread, uintptr_t frame)
{
	int saved_errno = errno;
	uintptr_t at_work = atomic_load_explicit(&thread->busy, memory_order_relaxed);
	uint64_t cursor = atomic_load_explicit(&thread->cursor, memory_order_relaxed);
	stack_t stack = {0};
	bool is_elsewhere = sigaltstack(NULL, &stack) < 0 || (stack.ss_flags & SS_ONSTACK) != 0;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	errno = saved_errno;
	// The frames of a signal handler are below those of the interrupted call.
	if (!is_elsewhere && frame >= at_work)
		return true;
	if (thread->refused.since_ns == 0 || thread->refused.cursor != cursor) {
		thread->refused.cursor = cursor;
		thread->refused.since_ns = now_ns;
	}
	return now_ns - thread->refused.since_ns > left_after_ns;
}

void span_thread_repair(struct span_thread *thread)
{
	uint64_t cursor = atomic_load_explicit(&thread->cursor, memory_order_relaxed);
	thread->head -= (uint32_t)(thread->head - (cursor >> 32));
	thread->refused.since_ns = 0;
	atomic_store_explicit(thread->shared_head, thread->head, memory_order_release);
}

static void write_end(struct span_thread *thread)
{
	struct timespec now;
	if (thread->records == NULL || thread->sink.kind == SINK_NONE || !thread->sink.is_announced)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	*span_thread_record(thread, 0) = (struct span_record){.t_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
		.kind = RECORD_THREAD_END};
	span_thread_commit(thread, 1, 0);
}

/* Destructors of other keys may still record spans, so this one runs last, in the last round that POSIX guarantees. */
static void end(void *state)
{
	struct span_thread *thread = state;
	struct quiet quiet;
	if (thread != span_thread_self)
		return;
	if (++thread->end_rounds < _POSIX_THREAD_DESTRUCTOR_ITERATIONS && pthread_setspecific(threads.key, thread) == 0)
		return;
	quiet_begin(&quiet);
	span_thread_self = NULL;
	if (thread->number != 0 && thread->session != 0)
		write_end(thread);
	atomic_store(&thread->cursor, thread->head << 32);
	atomic_store(&thread->is_taken, 0);
	quiet_end(&quiet);
}

/* Kernels before 4.14 do not wipe the state in a forked child. The child must then clear its parent's rings and the
 * list. */
static void forked(void)
{
	span_source_forked();
	atomic_store(&threads.n_of_parents, atomic_load(&threads.n));
	if (span_sinks_are_wiped())
		return;
	struct span_thread *next;
	for (struct span_thread *t = atomic_load(&threads.all); t != NULL; t = next) {
		next = t->next;
		if (t->sink.map != NULL)
			munmap(t->sink.map, t->sink.map_bytes);
		memset(t, 0, offsetof(struct span_thread, dropped));
	}
}

void span_threads_init(void)
{
	threads.has_key = pthread_key_create(&threads.key, end) == 0;
	pthread_atfork(NULL, NULL, forked);
}

// The code of `end` may be unloaded now, with the plugin that contains it.
__attribute__((destructor)) static void leave(void)
{
	if (threads.has_key)
		pthread_key_delete(threads.key);
}
