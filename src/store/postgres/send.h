/* A run file on its way into PostgreSQL, batch by batch, each row exactly once: what has been sent stands on the server, in the same
 * transaction as the rows, and is asked for again whenever a connection is new. So it does not matter who sends, how often, or where
 * they were cut off; two who send one run at a time follow each other. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct send;

struct send_count {
	int64_t rows;    // sent by this sender: of samples, spans, metrics and events
	int64_t batches; // transactions that brought some
	int64_t bytes;   // of COPY
};

// No connection yet, and the file need not be there. `path` and `url` are borrowed. NULL: no memory.
struct send *send_new(const char *path, const char *url);
void send_free(struct send *send);

/* One batch. A server that says nothing for a minute has gone. is_live: the file's recorder may go on, so that what is not final is left for later.
 * 1: there is more; 0: all that there is to send has been sent; -EBUSY: the file can't be read now; what pq.h says of servers
 * (after pg_may_pass the next call connects again); else the file's own trouble. */
int send_batch(struct send *send, bool is_live, struct wattle_error *reterr);
/* After send_batch said 0 with a file that is over: processes, and that the server has as many rows as the file; waits until all of it
 * is on the server's disk. -EPROTO: they differ. */
int send_rest(struct send *send, struct wattle_error *reterr);
/* Whether the report of this state of the file is still to be sent (send_report): after send_rest. */
bool send_wants_report(const struct send *send);
// JSON for wattle_put, of findings: "recording" and "block".
int send_report(struct send *send, const char *json, struct wattle_error *reterr);

struct send_count send_count(const struct send *send);
const char *send_where(const struct send *send); // pg_where; "" while not connected
const char *send_run_id(const struct send *send); // "" until the file was open
