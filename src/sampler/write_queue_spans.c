#include "sampler/recorder.h"

#include "base/util.h"

#include <errno.h>

int outbox_spans_open(struct outbox_spans *spans)
{
	spans->open = calloc_array(OUTBOX_OPEN_SPANS, sizeof(*spans->open));
	spans->ended = calloc_array(OUTBOX_SPANS, sizeof(*spans->ended));
	spans->metrics = calloc_array(OUTBOX_METRICS, sizeof(*spans->metrics));
	spans->marks = calloc_array(OUTBOX_MARKS, sizeof(*spans->marks));
	bool is_whole = spans->open != NULL && spans->ended != NULL && spans->metrics != NULL && spans->marks != NULL;
	return is_whole ? 0 : -ENOMEM;
}

void outbox_spans_close(struct outbox_spans *spans)
{
	free(spans->open);
	free(spans->ended);
	free(spans->metrics);
	free(spans->marks);
	*spans = (struct outbox_spans){0};
}

static struct store_spans all(const struct outbox_spans *spans)
{
	return (struct store_spans){
		.names = spans->names != NULL ? *spans->names : NULL,
		.n_names = spans->n_names != NULL ? *spans->n_names : 0,
		.open = spans->open,
		.n_open = spans->n_open,
		.ended = spans->ended,
		.n_ended = spans->n_ended,
		.metrics = spans->metrics,
		.n_metrics = spans->n_metrics,
		.marks = spans->marks,
		.n_marks = spans->n_marks,
	};
}

static void forget_ended(struct outbox_spans *spans)
{
	spans->n_ended = spans->n_metrics = spans->n_marks = 0;
}

// Rows that cannot be spilled are lost: there is no room for them to wait.
static void spill(struct outbox_spans *spans)
{
	struct store_spans rows = all(spans);
	rows.n_open = 0;
	size_t n = rows.n_ended + rows.n_metrics + rows.n_marks;
	struct wattle_error error = {0};
	const struct store_ops *ops = spans->sink->ops;
	int r = n == 0 ? 0 : ops->spill != NULL ? ops->spill(spans->sink->state, &rows, &error) : -ENOSYS;
	spans->n_lost += r < 0 ? (int64_t)n : 0;
	text_copy(spans->loss, sizeof(spans->loss), r < 0 ? error.text : "");
	forget_ended(spans);
}

// Reserves room for one more; `most` is the limit.
static void reserve(struct outbox_spans *spans, size_t n, size_t most)
{
	spans->n_since_judged++;
	if (n < most && !(spans->is_spilling && n >= OUTBOX_SPILL))
		return;
	spans->is_spilling = true;
	spill(spans);
}

void outbox_add_span(struct outbox_spans *spans, const struct span_row *row)
{
	reserve(spans, spans->n_ended, OUTBOX_SPANS);
	spans->ended[spans->n_ended++] = *row;
}

void outbox_add_metric(struct outbox_spans *spans, const struct span_metric_row *row)
{
	reserve(spans, spans->n_metrics, OUTBOX_METRICS);
	spans->metrics[spans->n_metrics++] = *row;
}

void outbox_add_mark(struct outbox_spans *spans, const struct span_mark_row *row)
{
	reserve(spans, spans->n_marks, OUTBOX_MARKS);
	spans->marks[spans->n_marks++] = *row;
}

struct store_spans outbox_spans_delivery(struct outbox_spans *spans)
{
	if (spans->is_spilling)
		spill(spans);
	return all(spans);
}

void outbox_spans_delivered(struct outbox_spans *spans)
{
	spans->n_open = 0;
	forget_ended(spans);
}

void outbox_spans_judge(struct outbox_spans *spans)
{
	if (spans->n_since_judged < OUTBOX_SPANS / 2)
		spans->is_spilling = false;
	spans->n_since_judged = 0;
}
