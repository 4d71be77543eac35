#include "sampler/recorder.h"

#include "base/util.h"

#include <errno.h>

int write_queue_spans_open(struct write_queue_spans *spans)
{
	spans->open = calloc_array(WRITE_QUEUE_OPEN_SPANS, sizeof(*spans->open));
	spans->ended = calloc_array(WRITE_QUEUE_SPANS, sizeof(*spans->ended));
	spans->metrics = calloc_array(WRITE_QUEUE_METRICS, sizeof(*spans->metrics));
	spans->marks = calloc_array(WRITE_QUEUE_MARKS, sizeof(*spans->marks));
	bool is_whole = spans->open != NULL && spans->ended != NULL && spans->metrics != NULL && spans->marks != NULL;
	return is_whole ? 0 : -ENOMEM;
}

void write_queue_spans_close(struct write_queue_spans *spans)
{
	free(spans->open);
	free(spans->ended);
	free(spans->metrics);
	free(spans->marks);
	*spans = (struct write_queue_spans){0};
}

static struct store_spans all(const struct write_queue_spans *spans)
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

static void forget_ended(struct write_queue_spans *spans)
{
	spans->n_ended = spans->n_metrics = spans->n_marks = 0;
}

// Rows that cannot be spilled are lost: there is no room for them to wait.
static void spill(struct write_queue_spans *spans)
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
static void reserve(struct write_queue_spans *spans, size_t n, size_t most)
{
	spans->n_since_spill_check++;
	if (n < most && !(spans->is_spilling && n >= WRITE_QUEUE_SPILL))
		return;
	spans->is_spilling = true;
	spill(spans);
}

void write_queue_add_span(struct write_queue_spans *spans, const struct span_row *row)
{
	reserve(spans, spans->n_ended, WRITE_QUEUE_SPANS);
	spans->ended[spans->n_ended++] = *row;
}

void write_queue_add_metric(struct write_queue_spans *spans, const struct span_metric_row *row)
{
	reserve(spans, spans->n_metrics, WRITE_QUEUE_METRICS);
	spans->metrics[spans->n_metrics++] = *row;
}

void write_queue_add_mark(struct write_queue_spans *spans, const struct span_mark_row *row)
{
	reserve(spans, spans->n_marks, WRITE_QUEUE_MARKS);
	spans->marks[spans->n_marks++] = *row;
}

struct store_spans write_queue_spans_delivery(struct write_queue_spans *spans)
{
	if (spans->is_spilling)
		spill(spans);
	return all(spans);
}

void write_queue_spans_delivered(struct write_queue_spans *spans)
{
	spans->n_open = 0;
	forget_ended(spans);
}

void write_queue_spans_update_spilling(struct write_queue_spans *spans)
{
	if (spans->n_since_spill_check < WRITE_QUEUE_SPANS / 2)
		spans->is_spilling = false;
	spans->n_since_spill_check = 0;
}
