/* A connection as seen by the pq*.c files: libpq's functions and its state. */
#pragma once

#include "store/postgres/pq.h"

#include <libpq-fe.h>

// SYMBOL(member, name)
#define PQ_SYMBOLS(SYMBOL)                                                                                             \
	SYMBOL(connect, PQconnectdbParams)                                                                             \
	SYMBOL(finish, PQfinish)                                                                                       \
	SYMBOL(reset, PQreset)                                                                                         \
	SYMBOL(ping, PQpingParams)                                                                                     \
	SYMBOL(needs_password, PQconnectionNeedsPassword)                                                              \
	SYMBOL(status, PQstatus)                                                                                       \
	SYMBOL(socket, PQsocket)                                                                                       \
	SYMBOL(set_nonblocking, PQsetnonblocking)                                                                      \
	SYMBOL(set_verbosity, PQsetErrorVerbosity)                                                                     \
	SYMBOL(error, PQerrorMessage)                                                                                  \
	SYMBOL(user, PQuser)                                                                                           \
	SYMBOL(host, PQhost)                                                                                           \
	SYMBOL(database, PQdb)                                                                                         \
	SYMBOL(set_notice, PQsetNoticeProcessor)                                                                       \
	SYMBOL(send, PQsendQuery)                                                                                      \
	SYMBOL(send_params, PQsendQueryParams)                                                                         \
	SYMBOL(flush, PQflush)                                                                                         \
	SYMBOL(consume, PQconsumeInput)                                                                                \
	SYMBOL(is_busy, PQisBusy)                                                                                      \
	SYMBOL(get_result, PQgetResult)                                                                                \
	SYMBOL(result_status, PQresultStatus)                                                                          \
	SYMBOL(result_field, PQresultErrorField)                                                                       \
	SYMBOL(result_error, PQresultErrorMessage)                                                                     \
	SYMBOL(clear, PQclear)                                                                                         \
	SYMBOL(rows, PQntuples)                                                                                        \
	SYMBOL(columns, PQnfields)                                                                                     \
	SYMBOL(value, PQgetvalue)                                                                                      \
	SYMBOL(length, PQgetlength)                                                                                    \
	SYMBOL(is_null, PQgetisnull)                                                                                   \
	SYMBOL(type, PQftype)                                                                                          \
	SYMBOL(put, PQputCopyData)                                                                                     \
	SYMBOL(put_end, PQputCopyEnd)                                                                                  \
	SYMBOL(get, PQgetCopyData)                                                                                     \
	SYMBOL(free, PQfreemem)

struct pq {
	void *handle;
#define PQ_MEMBER(member, name) __typeof__(name) *member;
	PQ_SYMBOLS(PQ_MEMBER)
#undef PQ_MEMBER
};

struct pg {
	struct pq pq;
	PGconn *connection; // owned
	char where[256];
	char sqlstate[6];
	char *url; // owned
	int timeout_s;
	bool may_continue;  // a silent server is waited for as long as it accepts other connections
	bool has_timed_out; // timed out; the connection can no longer be used
};

// The connection is lost: sets the message and returns -ENOTCONN.
int pg__lost(struct pg *pg, struct wattle_error *reterr);
// Error of a failed statement: sets the message and returns the code of pq.h.
int pg__fail(struct pg *pg, const PGresult *result, struct wattle_error *reterr);
int pg__meaning_of(const char *sqlstate);
// The server's next result, or the last of all results, which may announce a COPY. NULL: none, or has_timed_out.
PGresult *pg__next_result(struct pg *pg);
PGresult *pg__last_result(struct pg *pg);
bool pg__drain(struct pg *pg); // true: all data has been sent
bool pg__take(struct pg *pg, short events); // waits and reads available data; false: has_timed_out, or connection lost
// Parameters of a connection: keywords of libpq, terminated by NULL, and their values.
enum { PG_KEYWORDS = 9 };
extern const char *const pg__keywords[PG_KEYWORDS];
void pg__keyword_values(const char *url, const char *values[PG_KEYWORDS]);
bool pg__answers_others(const struct pg *pg); // whether the server accepts another connection
uint64_t pg__big_endian(const unsigned char *bytes, int32_t size);
