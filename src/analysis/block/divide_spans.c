#include "analysis/block/divide.h"

#include "base/util.h"

#include <errno.h>

struct named { // a name with a column
	const char *text;
	uint32_t column;
};

struct stay { // one span with such a name
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
	const struct stay *x = a, *y = b;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static size_t collect(const struct run *run, int64_t pid, const struct named *named, size_t n_named, struct stay *stays)
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
		stays[n++] = (struct stay){span->begin_ns, span->end_ns, span->id, span->tid, found->column};
	}
	return n;
}

struct nest {              // the open spans of one thread, outermost first
	struct stay *open; // room for all
	size_t n;
	int64_t now_ns;
	struct divide_piece *pieces; // each span begins and ends once: at most two pieces per span
	size_t n_pieces;
};

static void go_to(struct nest *nest, int64_t t_ns)
{
	if (nest->n > 0 && t_ns > nest->now_ns)
		nest->pieces[nest->n_pieces++] = (struct divide_piece){nest->now_ns, t_ns,
			nest->open[nest->n - 1].column};
	nest->now_ns = t_ns;
}

static void end_until(struct nest *nest, int64_t t_ns)
{
	for (; nest->n > 0 && nest->open[nest->n - 1].end_ns <= t_ns; nest->n--)
		go_to(nest, nest->open[nest->n - 1].end_ns);
}

static void begin(struct nest *nest, struct stay stay)
{
	end_until(nest, stay.begin_ns);
	if (nest->n > 0 && stay.end_ns > nest->open[nest->n - 1].end_ns)
		stay.end_ns = nest->open[nest->n - 1].end_ns; // overlap without nesting: the inner span ends with the outer one
	if (stay.end_ns <= stay.begin_ns)
		return;
	go_to(nest, stay.begin_ns);
	nest->open[nest->n++] = stay;
}

static void sweep(const struct stay *stays, size_t n, struct nest *nest)
{
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || stays[i].tid != stays[i - 1].tid) {
			end_until(nest, INT64_MAX);
			nest->now_ns = stays[i].begin_ns;
		}
		begin(nest, stays[i]);
	}
	end_until(nest, INT64_MAX);
}

int divide_spans(const struct run *run, int64_t pid, const char *const *names, const uint32_t *columns, size_t n_names,
	struct divide_piece **ret_pieces, size_t *ret_n)
{
	size_t most = run->n_spans < SIZE_MAX / 2 ? 2 * run->n_spans : run->n_spans;
	struct named *named = calloc_array(n_names, sizeof(*named));
	struct stay *stays = calloc_array(run->n_spans, sizeof(*stays));
	struct nest nest = {.open = calloc_array(run->n_spans, sizeof(*nest.open)),
		.pieces = calloc_array(most, sizeof(*nest.pieces))};
	int r = -ENOMEM;
	if (named != NULL && stays != NULL && nest.open != NULL && nest.pieces != NULL) {
		for (size_t i = 0; i < n_names; i++)
			named[i] = (struct named){names[i], columns[i]};
		qsort(named, n_names, sizeof(*named), by_text);
		size_t n = collect(run, pid, named, n_names, stays);
		qsort(stays, n, sizeof(*stays), by_thread);
		sweep(stays, n, &nest);
		*ret_pieces = nest.pieces;
		*ret_n = nest.n_pieces;
		nest.pieces = NULL;
		r = 0;
	}
	free(nest.pieces);
	free(nest.open);
	free(stays);
	free(named);
	return r;
}
