#include "store/postgres/send.h"

#include "store/postgres/tables.h"

#include <errno.h>
#include <time.h>

enum { COPY_PIECE = 256 * 1024 };

struct send *send_new(const char *path, const char *url)
{
	struct send *send = calloc(1, sizeof(*send));
	if (send == NULL)
		return NULL;
	source_init(&send->source, path);
	source_init(&send->ahead.source, path);
	send->url = url;
	buf_init(&send->facts, SEND_JSON_CEILING);
	buf_init(&send->text, SEND_JSON_CEILING);
	return send;
}

static void disconnect(struct send *send)
{
	pg_close(send->pg);
	send->pg = NULL;
	free(send->servers);
	send->servers = NULL;
	send->is_laid_out = send->ahead.is_laid_out = send->has_marks = send->has_metrics = false;
	send->ahead.n = 0;
	send->n_days = 0;
	buf_clear(&send->facts);
}

void send_free(struct send *send)
{
	if (send == NULL)
		return;
	disconnect(send);
	source_finish(&send->source);
	source_finish(&send->ahead.source);
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

/* ---- connection ---- */

// From here on only the server's own state is trusted.
int send_abort(struct send *send, int r)
{
	send->has_marks = false;
	if (r == -EINVAL && send->pg != NULL && strcmp(pg_sqlstate(send->pg), "23514") == 0) {
		disconnect(send); // a partition was dropped concurrently: create it again
		return -EAGAIN;
	}
	disconnect(send);
	return r;
}

static int begin_sql(struct send *send, struct pg_rows *ret_rows, struct wattle_error *reterr)
{
	const char *const id = send->source.run_id;
	// The COMMIT need not wait for the disk: a crash of the server loses rows and marks together.
	int r = pg_exec(send->pg, "BEGIN; SET LOCAL synchronous_commit = off", reterr);
	return r < 0 ? r : pg_query(send->pg, PG_CALL_BEGIN, &id, 1, ret_rows, reterr);
}

static int query_marks(struct send *send, struct wattle_error *reterr)
{
	struct pg_rows rows = {0};
	int r = begin_sql(send, &rows, reterr);
	if (r == 0)
		r = send_take_marks(send, &rows);
	pg_rows_finish(&rows);
	if (r == 0) // check only: no run is started if none of its rows can be accepted
		r = pg_exec(send->pg, "ROLLBACK", reterr);
	send->has_marks = r == 0;
	return r;
}

// The server's columns are read per connection, because another wattle may have brought the store up to date.
static int query_columns(struct send *send, struct wattle_error *reterr)
{
	struct layout_server *servers = calloc_array(LAYOUT_TABLES, sizeof(*servers));
	if (servers == NULL)
		return error_set(reterr, -ENOMEM, "PostgreSQL: out of memory");
	int r = 0;
	for (enum layout_table i = 0; r == 0 && i < LAYOUT_TABLES; i++)
		r = layout_query(send->pg, i, &servers[i], reterr);
	if (r < 0)
		free(servers);
	else
		send->servers = servers;
	return r;
}

// Only the id is read from the file before the run's marks are requested from the server.
static int read_id(struct send *send, struct wattle_error *reterr)
{
	if (send->source.run_id[0] != '\0')
		return 0;
	int r = source_open(&send->source, true, reterr);
	source_close(&send->source);
	return r;
}

/* The server does not notice that a client waiting for a lock has disconnected, so each attempt would leave another waiting
 * backend. The lock time-out is therefore shorter than ours. */
static int connect_to(struct send *send, struct wattle_error *reterr)
{
	int r = pg_open(send->url, &send->pg, reterr);
	if (r < 0)
		return r;
	pg_set_timeout(send->pg, PG_SILENCE_MAX_S, false);
	r = pg_exec(send->pg, "SET lock_timeout = '45s'", reterr);
	return r < 0 ? r : pg_store_ensure(send->pg, NULL, reterr);
}

int send_make_ready(struct send *send, struct wattle_error *reterr)
{
	int r = read_id(send, reterr);
	if (r < 0)
		return r;
	if (send->pg == NULL)
		r = connect_to(send, reterr);
	if (r == 0 && send->servers == NULL)
		r = query_columns(send, reterr);
	if (r == 0 && !send->has_marks)
		r = query_marks(send, reterr);
	return r < 0 ? send_abort(send, r) : 0;
}

/* ---- days ---- */

static bool has_day(const struct send *send, int32_t day)
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
		return error_set(reterr, -EINVAL, "%s has rows whose time is out of range", send->source.path);
	const char *const days[] = {text, text};
	int r = pg_query(send->pg, PG_CALL_DAYS, days, 2, NULL, reterr);
	if (r < 0)
		return r;
	if (send->n_days == SEND_DAYS_CACHED)
		send->n_days = 0;
	send->days[send->n_days++] = day;
	return 0;
}

// Before the transaction: partitions are created in their own transaction.
static int make_days(struct send *send, struct wattle_error *reterr)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < send->source.n_days; i++)
		if (!has_day(send, send->source.days[i]))
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

int send_put(struct send *send, const char *json, struct wattle_error *reterr)
{
	const char *const values[] = {send->source.run_id, json};
	return pg_query(send->pg, PG_CALL_PUT, values, 2, NULL, reterr);
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
		if (send_is_new(send, i))
			send->count.bytes += (int64_t)send->source.tables[i].rows.size;
}

int send_begin(struct send *send, struct wattle_error *reterr)
{
	struct pg_rows rows = {0};
	int r = begin_sql(send, &rows, reterr);
	bool hold = r == 0 && send_marks_hold(send, &rows);
	if (r == 0 && !hold)
		r = send_take_marks(send, &rows);
	pg_rows_finish(&rows);
	if (r < 0 || hold)
		return r;
	r = pg_exec(send->pg, "ROLLBACK", reterr);
	return r < 0 ? r : 1;
}

int send_fail_file(struct send *send, struct wattle_error *reterr)
{
	return sql_fail(send->source.db, send->source.path, reterr);
}

// Once per connection, within a transaction: the description of this file's columns, and the host's time.
static int send_metrics(struct send *send, struct wattle_error *reterr)
{
	struct buf json;
	int r = send->has_metrics ? 0 : source_open(&send->source, send->source.is_live, reterr);
	if (r < 0 || send->has_metrics)
		return r;
	buf_init(&json, SEND_JSON_CEILING);
	if (metadata_json_metrics(&send->source, &json) != SQLITE_OK)
		r = send_fail_file(send, reterr);
	source_close(&send->source);
	if (r == 0)
		r = send_put(send, json.data, reterr);
	send->has_metrics = r == 0;
	buf_finish(&json);
	return r;
}

static int transact(struct send *send, int64_t n, const char *facts, struct wattle_error *reterr)
{
	int r = make_days(send, reterr);
	if (r == 0)
		r = send_begin(send, reterr);
	if (r == 0)
		r = send_metrics(send, reterr);
	if (r != 0)
		return r;
	char *ids = NULL;
	pipeline_begin(send);
	r = copy_all(send, reterr);
	if (r == 0 && facts != NULL)
		r = send_put(send, facts, reterr);
	if (r == 0 && n > 0)
		r = send_mark_rows(send, &ids, reterr);
	if (r == 0)
		r = pg_exec(send->pg, "COMMIT", reterr);
	pipeline_end(send, r == 0);
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

// *ret_json NULL: unchanged since the last time.
static int read_metadata(struct send *send, const char **ret_json, struct wattle_error *reterr)
{
	buf_clear(&send->text);
	if (metadata_json_run(&send->source, &send->text) != SQLITE_OK)
		return send_fail_file(send, reterr);
	bool is_same_text = send->facts.size == send->text.size && send->facts.size > 0 &&
		memcmp(send->facts.data, send->text.data, send->facts.size) == 0;
	*ret_json = is_same_text ? NULL : send->text.data;
	return 0;
}

static void remember_metadata(struct send *send)
{
	buf_clear(&send->facts);
	buf_add(&send->facts, send->text.data, send->text.size);
}

// Reads everything a batch needs from the file, which is closed before the server is contacted.
static int64_t read_file(struct send *send, bool is_live, const char **ret_metadata, struct wattle_error *reterr)
{
	int64_t r = source_open(&send->source, is_live, reterr);
	if (r == 0 && !send->is_laid_out) {
		r = source_lay_out(&send->source, send->servers, reterr);
		send->is_laid_out = r == 0;
	}
	if (r == 0 && !send->is_checked) {
		r = source_check(&send->source, &send->marks, reterr);
		send->is_checked = r == 0;
	}
	if (r == 0)
		r = read_metadata(send, ret_metadata, reterr);
	if (r == 0)
		r = source_read(&send->source, &send->marks, reterr);
	source_close(&send->source);
	return r;
}

int send_batch(struct send *send, bool is_live, struct wattle_error *reterr)
{
	int r = send_make_ready(send, reterr);
	if (r < 0)
		return r;
	const char *facts = NULL;
	int64_t n = pipeline_read_results(send);
	bool is_ahead = n > 0;
	if (!is_ahead)
		n = read_file(send, is_live, &facts, reterr);
	if (n < 0 || (n == 0 && facts == NULL))
		return (int)n;
	r = transact(send, n, facts, reterr);
	if (r < 0)
		return send_abort(send, r);
	if (r == 0 && facts != NULL)
		remember_metadata(send);
	return r == 1 || send->source.is_more || is_ahead; // after a batch that was read ahead, facts must still be compared
}
