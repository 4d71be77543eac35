/* What waits for the stores: records, ended processes, events, spans. Each store is handed what it has not got yet; what the
 * run file can't take (a full disk) waits for the next try, until the room for it is full. */
#pragma once

#include "metric/metric.h"
#include "process/tree.h"
#include "sampler/outbox_spans.h"
#include "sampler/sampler.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

struct exit_record;

enum { OUTBOX_PROCESSES = 512 };

struct outbox_sink { // a store in use; the first one is the run file
	const struct store_ops *ops;
	void *state; // owned by the caller
	// The outbox's own: how much of what waits this store has already.
	size_t batch_bytes, n_processes, n_events;
	bool failing;  // the last write failed, and that was told
	bool given_up; // a second file that failed: it stays as it is
};

struct outbox {
	struct batch batch;
	struct store_process processes[OUTBOX_PROCESSES];
	size_t n_processes, n_processes_lost;
	struct outbox_spans spans; // for the run file alone
	struct sampler *sampler;   // borrowed: holds the events
	struct outbox_sink *sinks; // borrowed
	size_t n_sinks;
	int64_t n_lost; // samples that found no room
	char loss[600]; // why the last write failed
	void (*warn)(void *data, const char *text);
	void *warn_data;
};

int outbox_open(struct outbox *outbox, size_t batch_capacity); // -ENOMEM
void outbox_close(struct outbox *outbox);
// Takes the ended members out of the tree, and (living: at the end of the run) the others too.
void outbox_take_ended(struct outbox *outbox, struct tree *tree);
void outbox_add_living(struct outbox *outbox, struct tree *tree);
void outbox_add_exit(struct outbox *outbox, const struct exit_record *record);
// True when the run file has everything.
bool outbox_flush(struct outbox *outbox);
bool outbox_is_crowded(const struct outbox *outbox); // better flushed before its time
// Finishes all stores; true when the run file is whole.
bool outbox_finish(struct outbox *outbox, struct store_footer *footer);
