/* A connection as its own files see it: libpq's functions, and what they leave behind. */
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
	int patience_s;
	bool may_work; // who is silent for longer than that, as long as it answers others
	bool is_silent; // given up; the connection is of no further use
};

// The connection has gone: -ENOTCONN and why.
int pg__lost(struct pg *pg, struct wattle_error *reterr);
// What the server says of a statement that failed; as pq.h has it.
int pg__fail(struct pg *pg, const PGresult *result, struct wattle_error *reterr);
int pg__meaning_of(const char *sqlstate);
// What the server says to what was sent: the next result, or the last of all, which may say that a COPY begins. NULL: none, or is_silent.
PGresult *pg__next_result(struct pg *pg);
PGresult *pg__last_result(struct pg *pg);
bool pg__drain(struct pg *pg); // all that is to be sent is
bool pg__take(struct pg *pg, short events); // waits, and takes what came; false: is_silent, or gone
// How a server is connected to: keywords of libpq, the last NULL, and their values.
enum { PG_KEYWORDS = 9 };
extern const char *const pg__keywords[PG_KEYWORDS];
void pg__keyword_values(const char *url, const char *values[PG_KEYWORDS]);
bool pg__answers_others(const struct pg *pg); // the server takes another connection, whoever that may be
uint64_t pg__big_endian(const unsigned char *bytes, int32_t size);
