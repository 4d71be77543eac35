/* One connection to PostgreSQL by libpq, which is loaded when it is wanted: no other command should have to start with it, and
 * what it brings along (OpenSSL, Kerberos, LDAP). TLS, passwords, service files and time-outs are libpq's own business: ~/.pgpass,
 * PGPASSWORD, PGSERVICEFILE, sslmode=… of the URL.
 *
 * Returned are 0 or a negative errno, with a sentence that names the server and says what the server said:
 *	-ENOTCONN   the server is not there, is silent, or has gone in mid-talk       -EACCES   a right is missing, or we are refused
 *	-ENOENT     a table, function or database is missing                          -ENOSPC   the server's disk is full
 *	-EAGAIN     try again: deadlock, too many clients, cancelled                  -EEXIST   unique key
 *	-ENOTSUP    a column is missing: made by another version                      -EIO      the server's disk fails
 *	-ENOMEM, -EINVAL (all else), -ENOSYS (libpq is not installed: the sentence names the package) */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pg;

/* ---- connection ---- */

/* postgresql://… or postgres://…; a password inside is refused with the remedy (it would stand in `ps`). No connection is made and
 * libpq is not loaded. 0, -EINVAL. */
int pg_check_url(const char *url, struct wattle_error *reterr);
int pg_library(struct wattle_error *reterr); // only loads it: 0, -ENOSYS
// Loads libpq if need be and connects. *ret_pg goes to pg_close.
int pg_open(const char *url, struct pg **ret_pg, struct wattle_error *reterr);
void pg_close(struct pg *pg); // NULL is fine
/* How long the server may say nothing, and take nothing, before a statement fails with -ENOTCONN and the connection with it. May it work,
 * as at first, it is knocked at then, and waited for as long as it answers: sorting the rows of a large job may take more than a minute. */
enum { PG_SILENCE_MOST_S = 60 };
void pg_set_patience(struct pg *pg, int seconds, bool may_work);
// "user@host/database" for messages: never a password.
const char *pg_where(const struct pg *pg);
const char *pg_sqlstate(const struct pg *pg); // of the last failure, "" none
// A failure that time may heal: connect again, begin the transaction again.
bool pg_may_pass(int error);

/* ---- statements ---- */

// One or several statements whose rows nobody wants.
int pg_exec(struct pg *pg, const char *sql, struct wattle_error *reterr);
// Ends a transaction: COMMIT if what was done in it came to 0, else ROLLBACK, and returns what became of it.
int pg_end(struct pg *pg, int r, struct wattle_error *reterr);
/* One statement with parameters $1 … as text (NULL: null), and its rows, which come in binary format: cast to a type that the
 * functions below read (x::text for uuid, jsonb, numeric, arrays). ret_rows NULL: none are wanted. */
struct pg_rows {
	void *result; // PGresult, owned
	const struct pg *pg;
	size_t n, n_columns;
};
int pg_query(struct pg *pg, const char *sql, const char *const *params, size_t n_params, struct pg_rows *ret_rows,
	struct wattle_error *reterr);
void pg_rows_finish(struct pg_rows *rows); // any number of times
int64_t pg_i64(const struct pg_rows *rows, size_t row, size_t column);     // int2/4/8, bool; VALUE_MISSING for null
double pg_double(const struct pg_rows *rows, size_t row, size_t column);   // float4/8, int2/4/8; NaN for null
const char *pg_text(const struct pg_rows *rows, size_t row, size_t column); // text, varchar, name; NULL for null; until finish
int64_t pg_time_ns(const struct pg_rows *rows, size_t row, size_t column); // timestamptz as Unix time; VALUE_MISSING for null

/* ---- COPY, binary ---- */

/* COPY table (columns) FROM STDIN (FORMAT binary): begin, any number of data, end. The bytes are the whole of the format, header and
 * trailer included (copy.h makes them). After a failure the transaction is to be rolled back. */
int pg_copy_begin(struct pg *pg, const char *sql, struct wattle_error *reterr);
int pg_copy_data(struct pg *pg, const void *bytes, size_t size, struct wattle_error *reterr);
int pg_copy_end(struct pg *pg, struct wattle_error *reterr);

/* COPY (SELECT …) TO STDOUT (FORMAT binary): the quickest way to read many rows, none of them is kept. */
struct pg_field {
	const unsigned char *bytes; // not aligned, not NUL-terminated
	int32_t size;               // -1: null
};
typedef int pg_row(void *data, const struct pg_field *fields, size_t n_fields); // negative ends the reading
int pg_copy_out(struct pg *pg, const char *sql, pg_row *row, void *data, struct wattle_error *reterr);
int64_t pg_field_i64(const struct pg_field *field);     // as pg_i64
double pg_field_double(const struct pg_field *field);   // as pg_double
int64_t pg_field_time_ns(const struct pg_field *field); // as pg_time_ns
