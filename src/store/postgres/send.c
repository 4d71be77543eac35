#include "store/postgres/send.h"

#include "store/postgres/schema.h"
#include "store/postgres/small.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { JSON_CEILING = 1 << 28, KNOWN_DAYS = 64, COPY_PIECE = 256 * 1024 };

// Further rows of `sent`, besides those of the tables that COPY fills.
static const char processes_name[] = "process", report_name[] = "recording";

struct send {
	struct source source;
	const char *url;
	struct pg *pg; // owned; NULL: not connected
	struct layout_server *servers; // owned, LAYOUT_TABLES; NULL: not asked yet
	bool is_laid_out, has_marks, has_metrics;
	struct source_marks marks;
	char *span_ids; // owned: of the marks, as the server has them
	struct source_mark processes, report;
	int64_t state; // of the file: what `processes` and `report` are to be, once they are sent
	struct buf facts; // as last sent
	struct buf text;  // scratch
	int32_t days[KNOWN_DAYS];
	size_t n_days;
	struct send_count count;
};

struct send *send_new(const char *path, const char *url)
{
	struct send *send = calloc(1, sizeof(*send));
	if (send == NULL)
		return NULL;
	source_init(&send->source, path);
	send->url = url;
	buf_init(&send->facts, JSON_CEILING);
	buf_init(&send->text, JSON_CEILING);
	return send;
}

static void disconnect(struct send *send)
{
	pg_close(send->pg);
	send->pg = NULL;
	free(send->servers);
	send->servers = NULL;
	send->is_laid_out = send->has_marks = send->has_metrics = false;
	send->n_days = 0;
	buf_clear(&send->facts);
}

void send_free(struct send *send)
{
	if (send == NULL)
		return;
	disconnect(send);
	source_finish(&send->source);
	source_marks_finish(&send->marks);
	free(send->span_ids);
	buf_finish(&send->facts);
	buf_finish(&send->text);
	free(send);
}

struct send_count send_count(const struct send *send)
{
	return send->count;
}

const char *send_where(const struct send *send)
{
	return send->pg != NULL ? pg_where(send->pg) : "";
}

const char *send_run_id(const struct send *send)
{
	return send->source.run_id;
}

/* ---- marks ---- */

static int take_mark(struct send *send, const struct pg_rows *rows, size_t row)
{
	const char *name = pg_text(rows, row, 0);
	struct source_mark mark = {pg_i64(rows, row, 1), pg_i64(rows, row, 2)};
	mark.n = value_ok(mark.n) ? mark.n : 0;
	if (strcmp(name, processes_name) == 0)
		send->processes = mark;
	if (strcmp(name, report_name) == 0)
		send->report = mark;
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		if (strcmp(name, layout_names[i].name) == 0)
			send->marks.tables[i] = mark;
	const char *ids = pg_text(rows, row, 3);
	if (ids == NULL || strcmp(name, layout_names[LAYOUT_SPAN].name) != 0)
		return 0;
	free(send->span_ids);
	send->span_ids = strdup(ids);
	return send->span_ids == NULL ? -ENOMEM : ranges_parse(ids, &send->marks.spans);
}

// What the server says has been sent replaces what we thought.
static int take_marks(struct send *send, const struct pg_rows *rows)
{
	static const struct source_mark none = {VALUE_MISSING, 0};
	source_marks_finish(&send->marks);
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		send->marks.tables[i] = none;
	send->processes = send->report = none;
	free(send->span_ids);
	send->span_ids = NULL;
	int r = 0;
	for (size_t i = 0; r == 0 && i < rows->n; i++)
		r = take_mark(send, rows, i);
	return r;
}

static bool is_same(const struct source_mark *mark, const struct pg_rows *rows, size_t row)
{
	return mark->mark == pg_i64(rows, row, 1) && mark->n == (value_ok(pg_i64(rows, row, 2)) ? pg_i64(rows, row, 2) : 0);
}

static const struct source_mark *mark_named(const struct send *send, const char *name)
{
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		if (strcmp(name, layout_names[i].name) == 0)
			return &send->marks.tables[i];
	return strcmp(name, processes_name) == 0 ? &send->processes : &send->report;
}

/* Whether nobody else has sent rows of this run since we looked, and the server has forgotten none (one that dies forgets the last
 * transactions, rows and marks together, because they need not wait for its disk). */
static bool marks_hold(const struct send *send, const struct pg_rows *rows)
{
	size_t known = (size_t)value_ok(send->processes.mark) + (size_t)value_ok(send->report.mark);
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		known += value_ok(send->marks.tables[i].mark) || send->marks.tables[i].n > 0;
	for (size_t i = 0; i < rows->n; i++) {
		const char *name = pg_text(rows, i, 0), *ids = pg_text(rows, i, 3);
		if (!is_same(mark_named(send, name), rows, i))
			return false;
		if (strcmp(name, layout_names[LAYOUT_SPAN].name) == 0 &&
			strcmp(ids != NULL ? ids : "", send->span_ids != NULL ? send->span_ids : "") != 0)
			return false;
	}
	return rows->n == known;
}

/* ---- connection ---- */

// What follows a failure of the server's: only what it says itself is believed from now on.
static int lose(struct send *send, int r)
{
	send->has_marks = false;
	if (r == -EINVAL && send->pg != NULL && strcmp(pg_sqlstate(send->pg), "23514") == 0) {
		disconnect(send); // a partition was dropped under us: it is made again
		return -EAGAIN;
	}
	disconnect(send);
	return r;
}

static int begin_sql(struct send *send, struct pg_rows *ret_rows, struct wattle_error *reterr)
{
	const char *const id = send->source.run_id;
	// The end of a transaction need not wait for the disk: a server that dies forgets rows and marks together.
	int r = pg_exec(send->pg, "BEGIN; SET LOCAL synchronous_commit = off", reterr);
	return r < 0 ? r : pg_query(send->pg, PG_CALL_BEGIN, &id, 1, ret_rows, reterr);
}

static int ask_marks(struct send *send, struct wattle_error *reterr)
{
	struct pg_rows rows = {0};
	int r = begin_sql(send, &rows, reterr);
	if (r == 0)
		r = take_marks(send, &rows);
	pg_rows_finish(&rows);
	if (r == 0)
		r = pg_exec(send->pg, "COMMIT", reterr);
	send->has_marks = r == 0;
	return r;
}

// Columns of a server can change with every connection: another wattle may bring it up to date.
static int ask_columns(struct send *send, struct wattle_error *reterr)
{
	struct layout_server *servers = calloc_array(LAYOUT_TABLES, sizeof(*servers));
	if (servers == NULL)
		return error_set(reterr, -ENOMEM, "PostgreSQL: out of memory");
	int r = 0;
	for (enum layout_table i = 0; r == 0 && i < LAYOUT_TABLES; i++)
		r = layout_ask(send->pg, i, &servers[i], reterr);
	if (r < 0)
		free(servers);
	else
		send->servers = servers;
	return r;
}

// The id is all that has to be known of the file before the server is asked what it has of it.
static int read_id(struct send *send, struct wattle_error *reterr)
{
	if (send->source.run_id[0] != '\0')
		return 0;
	int r = source_open(&send->source, true, reterr);
	source_close(&send->source);
	return r;
}

static int make_ready(struct send *send, struct wattle_error *reterr)
{
	int r = read_id(send, reterr);
	if (r < 0)
		return r;
	if (send->pg == NULL) {
		r = pg_open(send->url, &send->pg, reterr);
		if (r == 0)
			r = pg_store_ensure(send->pg, NULL, reterr);
	}
	if (r == 0 && send->servers == NULL)
		r = ask_columns(send, reterr);
	if (r == 0 && !send->has_marks)
		r = ask_marks(send, reterr);
	return r < 0 ? lose(send, r) : 0;
}

/* ---- days ---- */

static bool knows_day(const struct send *send, int32_t day)
{
	for (size_t i = 0; i < send->n_days; i++)
		if (send->days[i] == day)
			return true;
	return false;
}

static int make_day(struct send *send, int32_t day, struct wattle_error *reterr)
{
	char text[32];
	time_t seconds = (time_t)day * 86400;
	struct tm tm;
	if (gmtime_r(&seconds, &tm) == NULL || strftime(text, sizeof(text), "%Y-%m-%d", &tm) == 0)
		return error_set(reterr, -EINVAL, "%s has rows of a time that no calendar knows", send->source.path);
	const char *const days[] = {text, text};
	int r = pg_query(send->pg, PG_CALL_DAYS, days, 2, NULL, reterr);
	if (r < 0)
		return r;
	if (send->n_days == KNOWN_DAYS)
		send->n_days = 0;
	send->days[send->n_days++] = day;
	return 0;
}

// Before the transaction: partitions are made in one of their own.
static int make_days(struct send *send, struct wattle_error *reterr)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < send->source.n_days; i++)
		if (!knows_day(send, send->source.days[i]))
			r = make_day(send, send->source.days[i], reterr);
	return r;
}

/* ---- one transaction ---- */

static int copy_table(struct send *send, const struct source_table *table, struct wattle_error *reterr)
{
	if (table->rows.n_rows == 0)
		return 0;
	int r = pg_copy_begin(send->pg, table->copy_sql.data, reterr);
	for (size_t at = 0; r == 0 && at < table->rows.size; at += COPY_PIECE) {
		size_t rest = table->rows.size - at;
		r = pg_copy_data(send->pg, table->rows.bytes + at, rest < COPY_PIECE ? rest : COPY_PIECE, reterr);
	}
	return r < 0 ? r : pg_copy_end(send->pg, reterr);
}

static int put(struct send *send, const char *json, struct wattle_error *reterr)
{
	const char *const values[] = {send->source.run_id, json};
	return pg_query(send->pg, PG_CALL_PUT, values, 2, NULL, reterr);
}

static void write_mark(struct buf *out, const char *name, const struct source_mark *mark, const char *ids)
{
	buf_printf(out, "%s{\"table_name\":\"%s\",\"n\":%" PRId64, out->size > 1 ? "," : "", name, mark->n);
	if (value_ok(mark->mark))
		buf_printf(out, ",\"mark\":%" PRId64, mark->mark);
	if (ids != NULL)
		buf_printf(out, ",\"ids\":\"%s\"", ids);
	buf_char(out, '}');
}

static bool is_new(const struct send *send, size_t table)
{
	return send->source.tables[table].rows.n_rows > 0;
}

static int send_marks(struct send *send, const char *json, struct wattle_error *reterr)
{
	const char *const values[] = {send->source.run_id, json};
	return pg_query(send->pg, PG_CALL_MARK, values, 2, NULL, reterr);
}

// Those of the tables that have new rows. *ret_ids: of the spans, as they are then; NULL: no new ones.
static int mark_rows(struct send *send, char **ret_ids, struct wattle_error *reterr)
{
	struct buf ids, json;
	buf_init(&ids, JSON_CEILING);
	buf_init(&json, JSON_CEILING);
	if (is_new(send, LAYOUT_SPAN))
		ranges_write(&send->source.next.spans, &ids);
	buf_char(&json, '[');
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		if (is_new(send, i))
			write_mark(&json, layout_names[i].name, &send->source.next.tables[i],
				i == LAYOUT_SPAN ? ids.data : NULL);
	buf_char(&json, ']');
	int r = json.failed != 0 || ids.failed != 0 ? error_set(reterr, -ENOMEM, "PostgreSQL: out of memory")
						    : send_marks(send, json.data, reterr);
	buf_finish(&json);
	if (r == 0 && ids.size > 0)
		*ret_ids = buf_take(&ids);
	buf_finish(&ids);
	return r;
}

static int copy_all(struct send *send, struct wattle_error *reterr)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < LAYOUT_TABLES; i++)
		r = copy_table(send, &send->source.tables[i], reterr);
	return r;
}

static void count_batch(struct send *send, int64_t n)
{
	send->count.rows += n;
	send->count.batches += n > 0;
	for (size_t i = 0; i < LAYOUT_TABLES; i++)
		if (is_new(send, i))
			send->count.bytes += (int64_t)send->source.tables[i].rows.size;
}

/* Begins, and finds the marks as we think that they are. 1: they are others, which have been taken over, and the transaction is over:
 * read again. */
static int begin(struct send *send, struct wattle_error *reterr)
{
	struct pg_rows rows = {0};
	int r = begin_sql(send, &rows, reterr);
	bool hold = r == 0 && marks_hold(send, &rows);
	if (r == 0 && !hold)
		r = take_marks(send, &rows);
	pg_rows_finish(&rows);
	if (r < 0 || hold)
		return r;
	r = pg_exec(send->pg, "ROLLBACK", reterr);
	return r < 0 ? r : 1;
}

static int transact(struct send *send, int64_t n, const char *facts, struct wattle_error *reterr)
{
	int r = make_days(send, reterr);
	if (r == 0)
		r = begin(send, reterr);
	if (r != 0)
		return r;
	char *ids = NULL;
	r = copy_all(send, reterr);
	if (r == 0 && facts != NULL)
		r = put(send, facts, reterr);
	if (r == 0 && n > 0)
		r = mark_rows(send, &ids, reterr);
	if (r == 0)
		r = pg_exec(send->pg, "COMMIT", reterr);
	if (r == 0) {
		r = source_marks_copy(&send->source.next, &send->marks);
		count_batch(send, n);
	}
	if (r == 0 && ids != NULL) {
		free(send->span_ids);
		send->span_ids = ids;
		ids = NULL;
	}
	free(ids);
	return r;
}

/* ---- batches ---- */

static int fail_file(struct send *send, struct wattle_error *reterr)
{
	return sql_fail(send->source.db, send->source.path, reterr);
}

// NULL in *ret_json: the same as last time.
static int read_facts(struct send *send, const char **ret_json, struct wattle_error *reterr)
{
	buf_clear(&send->text);
	if (small_facts(&send->source, &send->text) != SQLITE_OK)
		return fail_file(send, reterr);
	bool is_same_text = send->facts.size == send->text.size && send->facts.size > 0 &&
		memcmp(send->facts.data, send->text.data, send->facts.size) == 0;
	*ret_json = is_same_text ? NULL : send->text.data;
	return 0;
}

static void remember_facts(struct send *send)
{
	buf_clear(&send->facts);
	buf_add(&send->facts, send->text.data, send->text.size);
}

// Once a connection: what the columns of this file mean, and what time it is here.
static int send_metrics(struct send *send, struct wattle_error *reterr)
{
	struct buf json;
	if (send->has_metrics)
		return 0;
	int r = source_open(&send->source, true, reterr);
	if (r < 0)
		return r;
	buf_init(&json, JSON_CEILING);
	if (small_metrics(&send->source, &json) != SQLITE_OK)
		r = fail_file(send, reterr);
	source_close(&send->source);
	if (r == 0) {
		r = put(send, json.data, reterr);
		send->has_metrics = r == 0;
		r = r < 0 ? lose(send, r) : 0;
	}
	buf_finish(&json);
	return r;
}

// All that a batch needs of the file, which is closed before the server is talked to.
static int64_t read_file(struct send *send, bool is_live, const char **ret_facts, struct wattle_error *reterr)
{
	int64_t r = source_open(&send->source, is_live, reterr);
	if (r == 0 && !send->is_laid_out) {
		r = source_lay_out(&send->source, send->servers, reterr);
		send->is_laid_out = r == 0;
	}
	if (r == 0)
		r = read_facts(send, ret_facts, reterr);
	if (r == 0)
		r = source_read(&send->source, &send->marks, reterr);
	source_close(&send->source);
	return r;
}

int send_batch(struct send *send, bool is_live, struct wattle_error *reterr)
{
	int r = make_ready(send, reterr);
	if (r == 0)
		r = send_metrics(send, reterr);
	if (r < 0)
		return r;
	const char *facts = NULL;
	int64_t n = read_file(send, is_live, &facts, reterr);
	if (n < 0 || (n == 0 && facts == NULL))
		return (int)n;
	r = transact(send, n, facts, reterr);
	if (r < 0)
		return lose(send, r);
	if (r == 0 && facts != NULL)
		remember_facts(send);
	return r == 1 || send->source.is_more;
}

/* ---- the end ---- */

static int count_differs(struct send *send, enum layout_table table, struct wattle_error *reterr)
{
	int64_t n = send->source.tables[table].is_made ? source_count(&send->source, table) : 0;
	int64_t sent = send->marks.tables[table].n;
	if (n == sent)
		return 0;
	return error_set(reterr, -EPROTO, "%s has %" PRId64 " rows of %s, and %" PRId64 " were sent: nothing is lost, keep it and report this",
		send->source.path, n, layout_names[table].name, sent);
}

static int send_processes(struct send *send, struct wattle_error *reterr)
{
	struct small_process at = {.pid = VALUE_MISSING, .is_more = true};
	int r = 0;
	while (r == 0 && at.is_more) {
		buf_clear(&send->text);
		r = small_processes(&send->source, &at, &send->text) == SQLITE_OK ? put(send, send->text.data, reterr)
										    : fail_file(send, reterr);
	}
	return r;
}

static int mark_one(struct send *send, const char *name, const struct source_mark *mark, struct wattle_error *reterr)
{
	struct buf json;
	buf_init(&json, 4096);
	buf_char(&json, '[');
	write_mark(&json, name, mark, NULL);
	buf_char(&json, ']');
	int r = send_marks(send, json.data, reterr);
	buf_finish(&json);
	return r;
}

// What tells one state of a file that is over from another: a further recording makes more of these.
static int64_t state_of(struct send *send)
{
	return sql_read_i64(send->source.db, "SELECT 2 * count(*) + (sum(complete) = count(*)) FROM segment", 0);
}

static int finish_transaction(struct send *send, struct wattle_error *reterr)
{
	send->state = state_of(send);
	struct source_mark processes = {send->state, sql_read_i64(send->source.db, "SELECT count(*) FROM process", 0)};
	bool is_sent = processes.mark == send->processes.mark && processes.n == send->processes.n;
	// This one waits for the disk, and with it all that were before.
	int r = pg_exec(send->pg, "BEGIN; SET LOCAL synchronous_commit = on", reterr);
	if (r == 0 && !is_sent)
		r = send_processes(send, reterr);
	if (r == 0)
		r = mark_one(send, processes_name, &processes, reterr);
	if (r == 0)
		r = pg_exec(send->pg, "COMMIT", reterr);
	if (r == 0)
		send->processes = processes;
	return r;
}

int send_rest(struct send *send, struct wattle_error *reterr)
{
	int r = make_ready(send, reterr);
	if (r == 0)
		r = source_open(&send->source, false, reterr);
	for (enum layout_table i = 0; r == 0 && i < LAYOUT_TABLES; i++)
		r = count_differs(send, i, reterr);
	if (r == 0) {
		r = finish_transaction(send, reterr);
		r = r < 0 ? lose(send, r) : 0;
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
		r = put(send, json, reterr);
	if (r == 0)
		r = mark_one(send, report_name, &report, reterr);
	if (r == 0)
		r = pg_exec(send->pg, "COMMIT", reterr);
	if (r == 0)
		send->report = report;
	return r < 0 ? lose(send, r) : 0;
}
