/* One connection to PostgreSQL by libpq, which is loaded on demand, so that other commands do not load it and its dependencies
 * (OpenSSL, Kerberos, LDAP). libpq handles TLS, passwords, service files and time-outs: ~/.pgpass, PGPASSWORD, PGSERVICEFILE,
 * sslmode=… in the URL.
 *
 * Functions return 0 or a negative errno, with a message that names the server and quotes its error:
 *	-ENOTCONN   server unreachable, silent, or connection lost                    -EACCES   missing right, or login refused
 *	-ENOENT     a table, function or database is missing                          -ENOSPC   the server's disk is full
 *	-EAGAIN     try again: deadlock, too many clients, cancelled                  -EEXIST   unique key
 *	-ENOTSUP    a column is missing: made by another version                      -EIO      the server's disk fails
 *	-ENOMEM, -EINVAL (all others), -ENOSYS (libpq is not installed: the message names the package) */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pg;

/* ---- connection ---- */

/* Accepts postgresql://… or postgres://…. A password in the URL is refused with the remedy, because `ps` would show it. Does
 * not connect and does not load libpq. 0, -EINVAL. */
int pg_check_url(const char *url, struct wattle_error *reterr);
int pg_library(struct wattle_error *reterr); // loads libpq only: 0, -ENOSYS
// Loads libpq if necessary and connects. Release *ret_pg with pg_close.
int pg_open(const char *url, struct pg **ret_pg, struct wattle_error *reterr);
void pg_close(struct pg *pg); // may be NULL
/* Sets how long the server may neither send nor accept data before the statement and the connection fail with -ENOTCONN.
 * may_continue (the default): after that time a second connection probes the server, and the wait continues as long as the server
 * accepts it: sorting the rows of a large job may take more than a minute. */
enum { PG_SILENCE_MAX_S = 60 };
void pg_set_timeout(struct pg *pg, int seconds, bool may_continue);
// "user@host/database" for messages, without the password.
const char *pg_where(const struct pg *pg);
const char *pg_sqlstate(const struct pg *pg); // SQLSTATE of the last failure, "" none
// Whether a failure may be temporary: connect again and repeat the transaction.
bool pg_may_pass(int error);

/* ---- statements ---- */

// Runs one or more statements and discards their rows.
int pg_exec(struct pg *pg, const char *sql, struct wattle_error *reterr);
// Ends a transaction: COMMIT if r is 0, otherwise ROLLBACK. Returns the result.
int pg_end(struct pg *pg, int r, struct wattle_error *reterr);
/* Runs one statement with parameters $1 … as text (NULL: null). Its rows arrive in binary format: cast to a type that the
 * functions below read (x::text for uuid, jsonb, numeric, arrays). ret_rows NULL: rows are discarded. */
struct pg_rows {
	void *result; // PGresult, owned
	const struct pg *pg;
	size_t n, n_columns;
};
int pg_query(struct pg *pg, const char *sql, const char *const *params, size_t n_params, struct pg_rows *ret_rows,
	struct wattle_error *reterr);
void pg_rows_finish(struct pg_rows *rows); // may be called repeatedly
int64_t pg_i64(const struct pg_rows *rows, size_t row, size_t column);     // int2/4/8, bool; VALUE_MISSING for null
double pg_double(const struct pg_rows *rows, size_t row, size_t column);   // float4/8, int2/4/8; NaN for null
const char *pg_text(const struct pg_rows *rows, size_t row, size_t column); // text, varchar, name; NULL for null; until finish
int64_t pg_time_ns(const struct pg_rows *rows, size_t row, size_t column); // timestamptz as Unix time; VALUE_MISSING for null

/* ---- COPY, binary ---- */

/* COPY table (columns) FROM STDIN (FORMAT binary): begin, any number of data calls, end. The bytes are the complete format,
 * including header and trailer (copy.c creates them). After a failure the transaction must be rolled back. */
int pg_copy_begin(struct pg *pg, const char *sql, struct wattle_error *reterr);
int pg_copy_data(struct pg *pg, const void *bytes, size_t size, struct wattle_error *reterr);
int pg_copy_end(struct pg *pg, struct wattle_error *reterr);

/* COPY (SELECT …) TO STDOUT (FORMAT binary): the fastest way to read many rows; rows are not kept in memory. */
struct pg_field {
	const unsigned char *bytes; // not aligned, not NUL-terminated
	int32_t size;               // -1: null
};
typedef int pg_row(void *data, const struct pg_field *fields, size_t n_fields); // a negative return value ends the reading
int pg_copy_out(struct pg *pg, const char *sql, pg_row *row, void *data, struct wattle_error *reterr);
int64_t pg_field_i64(const struct pg_field *field);     // as pg_i64
double pg_field_double(const struct pg_field *field);   // as pg_double
int64_t pg_field_time_ns(const struct pg_field *field); // as pg_time_ns
