/* Sends the end of a run: values that need the complete run. */
#include "store/postgres/send.h"

#include <errno.h>
#include <inttypes.h>

static int count_differs(struct send *send, enum layout_table table, struct wattle_error *reterr)
{
	int64_t n = send->source.tables[table].is_made ? source_count(&send->source, table) : 0;
	int64_t sent = send->marks.tables[table].n;
	if (n == sent)
		return 0;
	return error_set(reterr, -EPROTO,
		"%s has %" PRId64 " rows of %s, and %" PRId64
		" were sent; no data is lost: keep the file and report this as a bug",
		send->source.path, n, layout_names[table].name, sent);
}

static int send_processes(struct send *send, struct wattle_error *reterr)
{
	struct metadata_json_process at = {.pid = VALUE_MISSING, .is_more = true};
	int r = 0;
	while (r == 0 && at.is_more) {
		buf_clear(&send->text);
		r = metadata_json_processes(&send->source, &at, &send->text) == SQLITE_OK
			? send_put(send, send->text.data, reterr)
			: send_fail_file(send, reterr);
	}
	return r;
}

// Identifies the state of an ended file: a further recording increases these counts.
static int64_t state_of(struct send *send)
{
	return sql_read_i64(send->source.db, "SELECT 2 * count(*) + (sum(complete) = count(*)) FROM segment", 0);
}

static int finish_transaction(struct send *send, struct wattle_error *reterr)
{
	send->state = state_of(send);
	struct source_mark processes = {send->state, sql_read_i64(send->source.db, "SELECT count(1) FROM process", 0)};
	bool is_sent = processes.mark == send->processes.mark && processes.n == send->processes.n;
	int r = send_begin(send, reterr);
	if (r == 1)
		return error_set(reterr, -EAGAIN, "PostgreSQL at %s has lost rows; they are sent again",
			pg_where(send->pg));
	if (r == 0) // waits for the disk, also for all earlier transactions
		r = pg_exec(send->pg, "SET LOCAL synchronous_commit = on", reterr);
	if (r == 0 && !is_sent)
		r = send_processes(send, reterr);
	if (r == 0)
		r = send_mark_one(send, send_processes_name, &processes, reterr);
	if (r == 0)
		r = pg_exec(send->pg, "COMMIT", reterr);
	if (r == 0)
		send->processes = processes;
	return r;
}

int send_remaining(struct send *send, struct wattle_error *reterr)
{
	int r = send_make_ready(send, reterr);
	if (r == 0)
		r = source_open(&send->source, false, reterr);
	for (enum layout_table i = 0; r == 0 && i < LAYOUT_TABLES; i++)
		r = count_differs(send, i, reterr);
	if (r == 0) {
		r = finish_transaction(send, reterr);
		r = r < 0 ? send_abort(send, r) : 0;
	}
	source_close(&send->source);
	return r;
}

bool send_wants_report(const struct send *send)
{
	return send->report.mark != send->state;
}

int send_report(struct send *send, const char *json, struct wattle_error *reterr)
{
	struct source_mark report = {send->state, 1};
	if (send->pg == NULL || !send->has_marks)
		return error_set(reterr, -ENOTCONN, "PostgreSQL: connection lost");
	int r = pg_exec(send->pg, "BEGIN; SET LOCAL synchronous_commit = on", reterr);
	if (r == 0)
		r = send_put(send, json, reterr);
	if (r == 0)
		r = send_mark_one(send, send_report_name, &report, reterr);
	if (r == 0)
		r = pg_exec(send->pg, "COMMIT", reterr);
	if (r == 0)
		send->report = report;
	return r < 0 ? send_abort(send, r) : 0;
}
