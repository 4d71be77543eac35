#include "store/postgres/pq_internal.h"

#include "base/util.h"
#include "metric/metric.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

// The first row whose state is a prefix applies.
static const struct {
	const char *state;
	int error;
} meanings[] = {
	{"08", -ENOTCONN},    // connection exceptions
	{"57P", -ENOTCONN},   // the server shuts down, crashed, or is starting
	{"25P03", -ENOTCONN}, // idle session time-out
	{"53100", -ENOSPC},
	{"53", -EAGAIN}, // out of memory, too many connections
	{"40", -EAGAIN}, // deadlock, serialization
	{"55P03", -EAGAIN},
	{"57014", -EAGAIN}, // cancelled, for example by a statement time-out
	{"25006", -EAGAIN}, // read-only: a standby, which may be promoted
	{"58030", -EIO},
	{"42501", -EACCES},
	{"28", -EACCES},
	{"42P01", -ENOENT}, // table
	{"42883", -ENOENT}, // function
	{"3", -ENOENT},     // 3D000 database, 3F000 schema
	{"42703", -ENOTSUP},
	{"42P10", -ENOTSUP},
	{"23505", -EEXIST},
};

int pg__meaning_of(const char *sqlstate)
{
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (strncmp(sqlstate, meanings[i].state, strlen(meanings[i].state)) == 0)
			return meanings[i].error;
	return -EINVAL;
}

bool pg_may_pass(int error)
{
	return error == -ENOTCONN || error == -EAGAIN || error == -ENOSPC || error == -EIO;
}

// Copies the server's text without its label, details and line breaks.
static void copy_line(const char *text, char *out, size_t size)
{
	static const char label[] = "ERROR:  ", fatal[] = "FATAL:  ";
	if (strncmp(text, label, strlen(label)) == 0)
		text += strlen(label);
	if (strncmp(text, fatal, strlen(fatal)) == 0)
		text += strlen(fatal);
	snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
}

// If several addresses were tried, the message of the last one applies.
static const char *deciding_line(const char *text)
{
	static const char next[] = "\nconnection to server";
	for (const char *at; (at = strstr(text, next)) != NULL;)
		text = at + 1;
	return text;
}

int pg__lost(struct pg *pg, struct wattle_error *reterr)
{
	char why[400];
	if (pg->has_timed_out)
		return error_set(reterr, -ENOTCONN, "PostgreSQL at %s: no response for %d s", pg->where, pg->timeout_s);
	copy_line(deciding_line(pg->pq.error(pg->connection)), why, sizeof(why));
	return error_set(reterr, -ENOTCONN, "PostgreSQL at %s: %s", pg->where,
		why[0] != '\0' ? why : "connection lost");
}

int pg__fail(struct pg *pg, const PGresult *result, struct wattle_error *reterr)
{
	const char *state = result != NULL ? pg->pq.result_field(result, PG_DIAG_SQLSTATE) : NULL;
	snprintf(pg->sqlstate, sizeof(pg->sqlstate), "%s", state != NULL ? state : "");
	// A server that is killed sends no state, or its last messages before the connection is lost.
	if (state == NULL)
		return pg__lost(pg, reterr);
	char why[400];
	const char *primary = pg->pq.result_field(result, PG_DIAG_MESSAGE_PRIMARY);
	copy_line(primary != NULL ? primary : pg->pq.result_error(result), why, sizeof(why));
	// The server lacks a column: the store has not been brought up to date.
	bool is_older = strcmp(state, "42703") == 0;
	return error_set(reterr, pg__meaning_of(state), "PostgreSQL at %s: %s%s", pg->where, why,
		is_older
			? "; the store belongs to another version of wattle: its owner must run `wattle store init URL`"
			: "");
}

const char *pg_where(const struct pg *pg)
{
	return pg->where;
}

const char *pg_sqlstate(const struct pg *pg)
{
	return pg->sqlstate;
}

/* ---- statements ---- */

static int get_result(struct pg *pg, int is_sent, struct pg_rows *ret_rows, struct wattle_error *reterr)
{
	PGresult *result = is_sent == 1 ? pg__last_result(pg) : NULL;
	ExecStatusType status = result != NULL ? pg->pq.result_status(result) : PGRES_FATAL_ERROR;
	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY) {
		int r = pg__fail(pg, result, reterr);
		pg->pq.clear(result);
		return r;
	}
	if (ret_rows == NULL) {
		pg->pq.clear(result);
		return 0;
	}
	*ret_rows = (struct pg_rows){
		.result = result,
		.pg = pg,
		.n = (size_t)pg->pq.rows(result),
		.n_columns = (size_t)pg->pq.columns(result),
	};
	return 0;
}

int pg_exec(struct pg *pg, const char *sql, struct wattle_error *reterr)
{
	return get_result(pg, pg->pq.send(pg->connection, sql), NULL, reterr);
}

int pg_end(struct pg *pg, int r, struct wattle_error *reterr)
{
	if (r == 0)
		return pg_exec(pg, "COMMIT", reterr);
	pg_exec(pg, "ROLLBACK", NULL);
	return r;
}

int pg_query(struct pg *pg, const char *sql, const char *const *params, size_t n_params, struct pg_rows *ret_rows,
	struct wattle_error *reterr)
{
	int is_sent = pg->pq.send_params(pg->connection, sql, (int)n_params, NULL, params, NULL, NULL, 1);
	return get_result(pg, is_sent, ret_rows, reterr);
}

void pg_rows_finish(struct pg_rows *rows)
{
	if (rows->result != NULL)
		rows->pg->pq.clear(rows->result);
	*rows = (struct pg_rows){0};
}

/* ---- values ---- */

uint64_t pg__big_endian(const unsigned char *bytes, int32_t size)
{
	uint64_t value = 0;
	for (int32_t i = 0; i < size; i++)
		value = value << 8 | bytes[i];
	return value;
}

int64_t pg_field_i64(const struct pg_field *field)
{
	switch (field->size) {
	case 1:
		return field->bytes[0] != 0;
	case 2:
		return (int16_t)pg__big_endian(field->bytes, 2);
	case 4:
		return (int32_t)pg__big_endian(field->bytes, 4);
	case 8:
		return (int64_t)pg__big_endian(field->bytes, 8);
	default:
		return VALUE_MISSING;
	}
}

double pg_field_double(const struct pg_field *field)
{
	if (field->size != 8)
		return (double)NAN;
	uint64_t bits = pg__big_endian(field->bytes, 8);
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

int64_t pg_field_time_ns(const struct pg_field *field)
{
	static const int64_t epoch_us = INT64_C(946684800) * 1000000; // 2000-01-01, PostgreSQL's epoch
	static const int64_t max_us = INT64_MAX / 1000;
	int64_t us = pg_field_i64(field);
	if (us == VALUE_MISSING || field->size != 8 || us > max_us - epoch_us || us < -max_us)
		return VALUE_MISSING;
	return (us + epoch_us) * 1000;
}

static struct pg_field field_at(const struct pg_rows *rows, size_t row, size_t column)
{
	const struct pq *pq = &rows->pg->pq;
	const PGresult *result = rows->result;
	int r = (int)row, c = (int)column;
	if (row >= rows->n || column >= rows->n_columns || pq->is_null(result, r, c))
		return (struct pg_field){NULL, -1};
	return (struct pg_field){(const unsigned char *)pq->value(result, r, c), pq->length(result, r, c)};
}

int64_t pg_i64(const struct pg_rows *rows, size_t row, size_t column)
{
	struct pg_field field = field_at(rows, row, column);
	return pg_field_i64(&field);
}

double pg_double(const struct pg_rows *rows, size_t row, size_t column)
{
	enum { FLOAT4 = 700, FLOAT8 = 701 }; // oids of types; fixed
	struct pg_field field = field_at(rows, row, column);
	Oid type = column < rows->n_columns ? rows->pg->pq.type(rows->result, (int)column) : 0;
	if (type == FLOAT8)
		return pg_field_double(&field);
	if (type == FLOAT4 && field.size == 4) {
		uint32_t bits = (uint32_t)pg__big_endian(field.bytes, 4);
		float value;
		memcpy(&value, &bits, sizeof(value));
		return (double)value;
	}
	int64_t value = pg_field_i64(&field);
	return value != VALUE_MISSING ? (double)value : (double)NAN;
}

const char *pg_text(const struct pg_rows *rows, size_t row, size_t column)
{
	return (const char *)field_at(rows, row, column).bytes;
}

int64_t pg_time_ns(const struct pg_rows *rows, size_t row, size_t column)
{
	struct pg_field field = field_at(rows, row, column);
	return pg_field_time_ns(&field);
}
