/* A connection as its own files see it: libpq's functions, and what they leave behind. */
#pragma once

#include "store/postgres/pq.h"

#include <libpq-fe.h>

// SYMBOL(member, name)
#define PQ_SYMBOLS(SYMBOL)                                                                                             \
	SYMBOL(connect, PQconnectdbParams)                                                                             \
	SYMBOL(finish, PQfinish)                                                                                       \
	SYMBOL(status, PQstatus)                                                                                       \
	SYMBOL(error, PQerrorMessage)                                                                                  \
	SYMBOL(user, PQuser)                                                                                           \
	SYMBOL(host, PQhost)                                                                                           \
	SYMBOL(database, PQdb)                                                                                         \
	SYMBOL(set_notice, PQsetNoticeProcessor)                                                                       \
	SYMBOL(exec, PQexec)                                                                                           \
	SYMBOL(exec_params, PQexecParams)                                                                              \
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
};

// The connection has gone: -ENOTCONN and why.
int pg__lost(struct pg *pg, struct wattle_error *reterr);
// What the server says of a statement that failed; as pq.h has it.
int pg__fail(struct pg *pg, const PGresult *result, struct wattle_error *reterr);
uint64_t pg__big_endian(const unsigned char *bytes, int32_t size);
