// What the files of send.h share. Between room-mates.
#pragma once

#include "store/postgres/pq.h"
#include "store/postgres/send.h"
#include "store/postgres/small.h"

#include <pthread.h>

enum { SEND_JSON_CEILING = 1 << 28, SEND_KNOWN_DAYS = 64 };

struct send_ahead { // the batch after the one that is on its way
	struct source source;
	int64_t n; // rows of it; not above 0: there is none
	bool is_live, is_laid_out, is_running;
	pthread_t thread;
};

struct send {
	struct source source;
	struct send_ahead ahead;
	const char *url;
	struct pg *pg; // owned; NULL: not connected
	struct layout_server *servers; // owned, LAYOUT_TABLES; NULL: not asked yet
	bool is_laid_out, has_marks, has_metrics;
	bool is_checked; // the file is the one that the marks are of
	struct source_marks marks;
	char *span_ids; // owned: of the marks, as the server has them
	struct source_mark processes, report;
	int64_t state; // of the file: what `processes` and `report` are to be, once they are sent
	struct buf facts; // as last sent
	struct buf text;  // scratch
	int32_t days[SEND_KNOWN_DAYS];
	size_t n_days;
	struct send_count count;
};

/* send_marks.c: how far each table has been sent. Further rows of `sent`, besides those of the tables that COPY fills: */
extern const char send_processes_name[], send_report_name[];
int send_take_marks(struct send *send, const struct pg_rows *rows); // what the server says replaces what we thought. -ENOMEM
/* Whether nobody else has sent rows of this run since we looked, and the server has forgotten none (one that dies forgets the last
 * transactions, rows and marks together, because they need not wait for its disk). */
bool send_marks_hold(struct send *send, const struct pg_rows *rows);
bool send_is_new(const struct send *send, size_t table); // the batch has rows of it
// Marks those of the tables that have new rows. *ret_ids: of the spans, as they are then; NULL: no new ones.
int send_mark_rows(struct send *send, char **ret_ids, struct wattle_error *reterr);
int send_mark_one(struct send *send, const char *name, const struct source_mark *mark, struct wattle_error *reterr);

/* send_ahead.c. begin: within a transaction of rows, where there are more behind them; end: at its end, however it went; take: the rows
 * read so are those of `source` now, and their number, or 0. They fit what has been sent as long as nothing fails. */
void send_ahead_begin(struct send *send);
void send_ahead_end(struct send *send, bool is_sent);
int64_t send_ahead_take(struct send *send);

// send.c
int send_lose(struct send *send, int r); // what follows a failure of the server's; returns the error
int send_make_ready(struct send *send, struct wattle_error *reterr); // connected, with marks
/* Begins a transaction, and finds the marks as we think that they are. 1: they are others, which have been taken over, and the
 * transaction is over: read again. */
int send_begin(struct send *send, struct wattle_error *reterr);
int send_put(struct send *send, const char *json, struct wattle_error *reterr);
int send_fail_file(struct send *send, struct wattle_error *reterr);
