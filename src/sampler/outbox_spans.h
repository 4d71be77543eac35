/* Spans, metrics and marks on their way to the run file. They wait for the next flush; when more come than have room until
 * then, they are spilled at once, and go on being spilled until a second has brought only half as many. */
#pragma once

#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

enum { OUTBOX_SPANS = 20000, OUTBOX_METRICS = 8000, OUTBOX_MARKS = 4000, OUTBOX_OPEN_SPANS = 1024, OUTBOX_SPILL = 4096 };

struct outbox_sink;

struct outbox_spans {
	struct span_row *open, *ended;   // owned
	struct span_metric_row *metrics; // owned
	struct span_mark_row *marks;     // owned
	size_t n_open, n_ended, n_metrics, n_marks;
	bool is_spilling;
	size_t n_since_judged; // rows of all kinds
	int64_t n_lost;        // found no room, here or on the disk
	// Borrowed: the run file; the recording's names, which move as they become more.
	struct outbox_sink *sink;
	const char *const *const *names;
	const uint32_t *n_names;
	bool loss_is_told;
	char loss[600]; // why the last spill failed; "": it did not
};

int outbox_spans_open(struct outbox_spans *spans); // -ENOMEM
void outbox_spans_close(struct outbox_spans *spans);
void outbox_add_span(struct outbox_spans *spans, const struct span_row *row);
void outbox_add_metric(struct outbox_spans *spans, const struct span_metric_row *row);
void outbox_add_mark(struct outbox_spans *spans, const struct span_mark_row *row);
// For `write`. When spilling, all but the open ones have been spilled before.
struct store_spans outbox_spans_delivery(struct outbox_spans *spans);
void outbox_spans_delivered(struct outbox_spans *spans);
// Once a second: whether to go on spilling.
void outbox_spans_judge(struct outbox_spans *spans);
