#include "open_spans.h"

#include "wattle.h"

#include "base/util.h"
#include "span/writer/thread.h"
#include "span/writer/writer.h"

#include <pthread.h>
#include <stdlib.h>

struct open_spans {
	int session; // writer session; spans of another session are over
	size_t n, capacity;
	const void **spans; // outermost first
};

static __thread struct open_spans *own __attribute__((tls_model("initial-exec")));
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void remove_span(void *data)
{
	struct open_spans *open = data;
	own = NULL;
	free((void *)open->spans);
	free(open);
}

static void make_key(void)
{
	(void)pthread_key_create(&at_thread_end, remove_span);
}

static struct open_spans *make(void)
{
	pthread_once(&once, make_key);
	struct open_spans *open = calloc(1, sizeof(*open));
	if (open != NULL && pthread_setspecific(at_thread_end, open) != 0) {
		free(open);
		return NULL;
	}
	own = open;
	return open;
}

// Reserves room for one more span; NULL: no memory.
static __attribute__((noinline)) struct open_spans *prepare(int session)
{
	struct open_spans *open = own != NULL ? own : make();
	if (open == NULL)
		return NULL;
	if (open->session != session) {
		open->session = session;
		open->n = 0;
	}
	if (open->n < open->capacity)
		return open;
	size_t capacity = open->capacity != 0 ? 2 * open->capacity : 32;
	const void **spans = realloc((void *)open->spans, capacity * sizeof(*spans));
	if (spans == NULL)
		return NULL;
	open->spans = spans;
	open->capacity = capacity;
	return open;
}

static inline int session_now(void)
{
	return atomic_load_explicit(&span_writer_state, memory_order_relaxed);
}

// False for a span that the writer has not counted (no ring available); it has no end either.
static bool is_counted(void)
{
	return span_depth() > 0;
}

void open_spans_begin(const void *span, const char *name)
{
	int session = session_now();
	struct open_spans *open = own;
	if (span_unlikely(open == NULL || open->session != session || open->n == open->capacity))
		open = prepare(session);
	if (open == NULL)
		return;
	if (span_likely(wattle_span_begin(name) == 0) || is_counted())
		open->spans[open->n++] = span;
}

// Ends a span that contains spans which stay open (crossing spans).
static __attribute__((noinline)) void end_below(struct open_spans *open, const void *span)
{
	size_t i = open->n;
	while (i > 0 && open->spans[i - 1] != span)
		i--;
	if (i == 0)
		return; // begun by another thread or before this recording
	size_t n_inner = open->n - i;
	memmove(&open->spans[i - 1], &open->spans[i], n_inner * sizeof(*open->spans));
	open->n--;
	(void)span_end_below((uint32_t)n_inner);
}

void open_spans_end(const void *span)
{
	struct open_spans *open = own;
	if (open == NULL || open->session != session_now() || open->n == 0)
		return;
	if (span_unlikely(open->spans[open->n - 1] != span)) {
		end_below(open, span);
		return;
	}
	open->n--;
	(void)wattle_span_end();
}
