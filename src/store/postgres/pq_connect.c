/* Connecting to a server, and the reasons of a refusal. */
#include "store/postgres/pq_internal.h"

#include "base/clock.h"
#include "base/dl.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PQ_ROW(member, name) {.names = {#name}, .offset = offsetof(struct pq, member), .need = DL_REQUIRED},
static const struct dl_symbol symbols[] = {PQ_SYMBOLS(PQ_ROW)};
#undef PQ_ROW

/* ---- libpq ---- */

/* Never closed: its libraries (OpenSSL, Kerberos) register code that runs at process exit. Loading it again costs nothing. */
static int load(struct pq *ret_pq, struct wattle_error *reterr)
{
	static const char *const libraries[] = {"libpq.so.5", NULL};
	struct wattle_error why = {0};
	int r = dl_open(libraries, symbols, ARRAY_SIZE(symbols), ret_pq, &ret_pq->handle, &why);
	return r < 0
		? error_set(reterr, -ENOSYS, "PostgreSQL needs libpq (Debian: apt install libpq5): %.300s", why.text)
		: 0;
}

int pg_library(struct wattle_error *reterr)
{
	struct pq pq;
	return load(&pq, reterr);
}

// Modules never print; server notices are discarded.
static void ignore_notice(void *data, const char *message)
{
	(void)data;
	(void)message;
}

static void name_server(struct pg *pg)
{
	const char *user = pg->pq.user(pg->connection);
	const char *host = pg->pq.host(pg->connection);
	const char *database = pg->pq.database(pg->connection);
	snprintf(pg->where, sizeof(pg->where), "%.60s@%.120s/%.60s", user != NULL ? user : "",
		host != NULL && host[0] != '\0' ? host : "localhost", database != NULL ? database : "");
}

/* ---- refused ---- */

// Permanent failures that libpq itself reports, in English, before or instead of the server. The first entry found in the text
// applies.
static const struct {
	const char *words;
	int error;
} own_refusals[] = {
	{"no password supplied", -EACCES},
	{"certificate", -EACCES}, // the server's certificate is not trusted, or ours cannot be read
	{"private key", -EACCES},
	{"does not support SSL", -EACCES},
	{"service file", -EINVAL},
	{"definition of service", -EINVAL},
	{"invalid ", -EINVAL}, // in the URL
};

// Finds the next "FATAL: 28P01: …", with the label in any language. NULL: none follows.
static const char *next_state(const char *text)
{
	enum { STATE = 5 };
	for (const char *at = text; (at = strstr(at, ":  ")) != NULL; at++) {
		const char *state = at + strlen(":  ");
		if (strspn(state, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == STATE && state[STATE] == ':')
			return state;
	}
	return NULL;
}

// If several addresses and hosts were tried, one temporary failure is enough to try again.
static int meaning_of_refusal(const char *text)
{
	int r = -ENOTCONN;
	for (const char *at = text; (at = next_state(at)) != NULL;) {
		r = pg__meaning_of(at);
		if (pg_may_pass(r))
			return r;
	}
	for (size_t i = 0; r == -ENOTCONN && i < ARRAY_SIZE(own_refusals); i++)
		if (strstr(text, own_refusals[i].words) != NULL)
			r = own_refusals[i].error;
	return r;
}

/* For a refused connection libpq has no SQLSTATE, only a text in the server's language. A second attempt with maximum verbosity
 * includes the SQLSTATE in the text. A server that timed out is not tried again, because a time-out has no SQLSTATE. */
static int query_refusal_reason(struct pg *pg, int64_t began_ns, struct wattle_error *reterr)
{
	static const int64_t silence_ns = 5 * NS_PER_S;
	struct wattle_error why = {0};
	int r = meaning_of_refusal(pg->pq.error(pg->connection));
	pg__lost(pg, &why);
	if (r == -ENOTCONN && clock_now_ns() - began_ns < silence_ns) {
		pg->pq.set_verbosity(pg->connection, PQERRORS_VERBOSE);
		pg->pq.reset(pg->connection);
		pg->pq.set_verbosity(pg->connection, PQERRORS_DEFAULT);
		if (pg->pq.status(pg->connection) == CONNECTION_OK)
			return 0;
		r = meaning_of_refusal(pg->pq.error(pg->connection));
	}
	bool lacks_password = pg->pq.needs_password(pg->connection) == 1;
	return error_set(reterr, r, "%s%s", why.text,
		lacks_password ? "; put it into ~/.pgpass, a service file, or PGPASSWORD" : "");
}

/* ---- open ---- */

static int connect_to(struct pg *pg, struct wattle_error *reterr)
{
	const char *values[PG_KEYWORDS];
	pg__keyword_values(pg->url, values);
	int64_t began_ns = clock_now_ns();
	pg->connection = pg->pq.connect(pg__keywords, values, 1);
	if (pg->connection == NULL)
		return error_set(reterr, -ENOMEM, "PostgreSQL: out of memory");
	name_server(pg);
	pg->pq.set_notice(pg->connection, ignore_notice, NULL);
	int r = pg->pq.status(pg->connection) != CONNECTION_OK ? query_refusal_reason(pg, began_ns, reterr) : 0;
	if (r < 0)
		return r;
	pg->pq.set_nonblocking(pg->connection, 1);
	pg_set_timeout(pg, PG_SILENCE_MAX_S, false);
	// Fixes the formats that we parse, regardless of the settings of the server and the role.
	r = pg_exec(pg, "SET DateStyle = ISO; SET TimeZone = 'UTC'; SET extra_float_digits = 1", reterr);
	pg_set_timeout(pg, PG_SILENCE_MAX_S, true);
	return r;
}

int pg_open(const char *url, struct pg **ret_pg, struct wattle_error *reterr)
{
	struct pg *pg = calloc(1, sizeof(*pg));
	if (pg == NULL || (pg->url = strdup(url)) == NULL) {
		free(pg);
		return error_set(reterr, -ENOMEM, "PostgreSQL: out of memory");
	}
	int r = pg_check_url(url, reterr);
	if (r == 0)
		r = load(&pg->pq, reterr);
	if (r == 0)
		r = connect_to(pg, reterr);
	if (r < 0) {
		pg_close(pg);
		return r;
	}
	*ret_pg = pg;
	return 0;
}

void pg_close(struct pg *pg)
{
	if (pg == NULL)
		return;
	if (pg->connection != NULL)
		pg->pq.finish(pg->connection);
	free(pg->url);
	free(pg);
}
