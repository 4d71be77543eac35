#include "analysis/block/divide.h"

#include "base/util.h"

#include <errno.h>

struct named { // a name with a column
	const char *text;
	uint32_t column;
};

struct interval { // one span with such a name
	int64_t begin_ns, end_ns, id;
	int32_t tid;
	uint32_t column;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->text, ((const struct named *)b)->text);
}

// Sort order: by thread, then by begin; of spans with the same begin the longer one is the outer one.
static int by_thread(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static size_t collect(const struct run *run, int64_t pid, const struct named *named, size_t n_named,
	struct interval *stays)
{
	size_t n = 0;
	for (size_t i = 0; i < run->n_spans; i++) {
		const struct run_span *span = &run->spans[i];
		if (span->pid != pid || !value_ok(span->end_ns) || span->end_ns <= span->begin_ns)
			continue;
		struct named wanted = {span->name, 0};
		const struct named *found = bsearch(&wanted, named, n_named, sizeof(*named), by_text);
		if (found == NULL)
			continue;
		stays[n++] = (struct interval){span->begin_ns, span->end_ns, span->id, span->tid, found->column};
	}
	return n;
}

struct span_stack {            // the open spans of one thread, outermost first
	struct interval *open; // room for all
	size_t n;
	int64_t now_ns;
	struct divide_interval *pieces; // each span begins and ends once: at most two pieces per span
	size_t n_pieces;
};

static void go_to(struct span_stack *stack, int64_t t_ns)
{
	if (stack->n > 0 && t_ns > stack->now_ns)
		stack->pieces[stack->n_pieces++] = (struct divide_interval){stack->now_ns, t_ns,
			stack->open[stack->n - 1].column};
	stack->now_ns = t_ns;
}

static void end_until(struct span_stack *stack, int64_t t_ns)
{
	for (; stack->n > 0 && stack->open[stack->n - 1].end_ns <= t_ns; stack->n--)
		go_to(stack, stack->open[stack->n - 1].end_ns);
}

static void begin(struct span_stack *stack, struct interval interval)
{
	end_until(stack, interval.begin_ns);
	if (stack->n > 0 && interval.end_ns > stack->open[stack->n - 1].end_ns)
		interval.end_ns = stack->open[stack->n - 1]
					  .end_ns; // overlap without nesting: the inner span ends with the outer one
	if (interval.end_ns <= interval.begin_ns)
		return;
	go_to(stack, interval.begin_ns);
	stack->open[stack->n++] = interval;
}

static void sweep(const struct interval *stays, size_t n, struct span_stack *stack)
{
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || stays[i].tid != stays[i - 1].tid) {
			end_until(stack, INT64_MAX);
			stack->now_ns = stays[i].begin_ns;
		}
		begin(stack, stays[i]);
	}
	end_until(stack, INT64_MAX);
}

int divide_spans(const struct run *run, int64_t pid, const char *const *names, const uint32_t *columns, size_t n_names,
	struct divide_interval **ret_pieces, size_t *ret_n)
{
	size_t most = run->n_spans < SIZE_MAX / 2 ? 2 * run->n_spans : run->n_spans;
	struct named *named = calloc_array(n_names, sizeof(*named));
	struct interval *stays = calloc_array(run->n_spans, sizeof(*stays));
	struct span_stack stack = {.open = calloc_array(run->n_spans, sizeof(*stack.open)),
		.pieces = calloc_array(most, sizeof(*stack.pieces))};
	int r = -ENOMEM;
	if (named != NULL && stays != NULL && stack.open != NULL && stack.pieces != NULL) {
		for (size_t i = 0; i < n_names; i++)
			named[i] = (struct named){names[i], columns[i]};
		qsort(named, n_names, sizeof(*named), by_text);
		size_t n = collect(run, pid, named, n_names, stays);
		qsort(stays, n, sizeof(*stays), by_thread);
		sweep(stays, n, &stack);
		*ret_pieces = stack.pieces;
		*ret_n = stack.n_pieces;
		stack.pieces = NULL;
		r = 0;
	}
	free(stack.pieces);
	free(stack.open);
	free(stays);
	free(named);
	return r;
}
