/* Waits for the server with a time limit. libpq's own calls wait forever: over a Unix socket a stopped server stays connected,
 * and over TCP its kernel continues to acknowledge. */
#include "store/postgres/pq_internal.h"

#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* The URL may override the keywords before it. An unreachable peer (TCP only) is given up within a minute; a server that
 * accepts the connection and does not answer, such as a stopped one, sooner. */
const char *const pg__keywords[PG_KEYWORDS] = {"fallback_application_name", "keepalives_idle", "keepalives_interval",
	"keepalives_count", "tcp_user_timeout", "connect_timeout", "dbname", "client_encoding", NULL};

void pg__keyword_values(const char *url, const char *values[PG_KEYWORDS])
{
	const char *patience = getenv("PGCONNECT_TIMEOUT");
	const char *const all[] = {"wattle", "20", "10", "3", "60000", patience != NULL ? patience : "10", url, "UTF8",
		NULL};
	static_assert(ARRAY_SIZE(all) == PG_KEYWORDS, "one value per keyword");
	memcpy(values, all, sizeof(all));
}

bool pg__answers_others(const struct pg *pg)
{
	const char *values[PG_KEYWORDS];
	pg__keyword_values(pg->url, values);
	return pg->pq.ping(pg__keywords, values, 1) == PQPING_OK;
}

void pg_set_timeout(struct pg *pg, int seconds, bool may_continue)
{
	pg->timeout_s = seconds;
	pg->may_continue = may_continue;
}

// After a time-out, the connection is not used again.
static bool await(struct pg *pg, short events)
{
	struct pollfd socket = {.fd = pg->pq.socket(pg->connection), .events = events};
	int n = 0;
	while (!pg->has_timed_out && (n = poll(&socket, 1, pg->timeout_s * 1000)) <= 0) {
		if (n < 0 && errno != EINTR)
			return false;
		pg->has_timed_out = n == 0 && !(pg->may_continue && pg__answers_others(pg));
	}
	return n > 0;
}

/* A TLS record has up to 16 KiB. libpq reads 8 KiB or more at a time, and poll does not see the rest. */
bool pg__take(struct pg *pg, short events)
{
	return await(pg, events) && pg->pq.consume(pg->connection) != 0 && pg->pq.consume(pg->connection) != 0;
}

bool pg__drain(struct pg *pg)
{
	int unsent;
	// Reads incoming data while sending: a server that cannot send its answers stops reading.
	while ((unsent = pg->pq.flush(pg->connection)) > 0)
		if (!pg__take(pg, POLLIN | POLLOUT))
			return false;
	return unsent == 0;
}

PGresult *pg__next_result(struct pg *pg)
{
	// A message that the server sent before it disconnected is also a result, so results are read even from a broken
	// connection.
	pg__drain(pg);
	while (!pg->has_timed_out && pg->pq.is_busy(pg->connection) && pg__take(pg, POLLIN))
		continue;
	return pg->has_timed_out ? NULL : pg->pq.get_result(pg->connection);
}

static bool is_copy(ExecStatusType status)
{
	return status == PGRES_COPY_IN || status == PGRES_COPY_OUT;
}

PGresult *pg__last_result(struct pg *pg)
{
	PGresult *last = NULL, *next;
	while ((next = pg__next_result(pg)) != NULL) {
		pg->pq.clear(last);
		last = next;
		if (is_copy(pg->pq.result_status(last)) || pg->pq.status(pg->connection) != CONNECTION_OK)
			return last;
	}
	if (pg->has_timed_out) {
		pg->pq.clear(last);
		last = NULL;
	}
	return last;
}
