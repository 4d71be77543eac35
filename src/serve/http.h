/* libmicrohttpd, loaded at run time on first use: it pulls in GnuTLS, which no other command should load. Its header
 * supplies the types. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "serve/totals.h"
#include "serve/view.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// SYMBOL(member, name)
#define MHD_SYMBOLS(SYMBOL)                                                                                            \
	SYMBOL(start, MHD_start_daemon)                                                                                \
	SYMBOL(stop, MHD_stop_daemon)                                                                                  \
	SYMBOL(run, MHD_run)                                                                                           \
	SYMBOL(timeout, MHD_get_timeout)                                                                               \
	SYMBOL(daemon_info, MHD_get_daemon_info)                                                                       \
	SYMBOL(connection_info, MHD_get_connection_info)                                                               \
	SYMBOL(values, MHD_get_connection_values)                                                                      \
	SYMBOL(value, MHD_lookup_connection_value)                                                                     \
	SYMBOL(response, MHD_create_response_from_buffer)                                                              \
	SYMBOL(header, MHD_add_response_header)                                                                        \
	SYMBOL(queue, MHD_queue_response)                                                                              \
	SYMBOL(drop, MHD_destroy_response)

struct mhd {
	void *handle; // owned
#define MHD_MEMBER(member, name) __typeof__(name) *member;
	MHD_SYMBOLS(MHD_MEMBER)
#undef MHD_MEMBER
};

// -ENOENT, -ENOSYS; *reterr names the missing package.
int mhd_open(struct mhd *ret_mhd, struct wattle_error *reterr);
void mhd_close(struct mhd *mhd);

/* The access token. Clients send "Authorization: Bearer TOKEN" (Prometheus, curl) or Basic with the token as password and
 * any user name (browsers prompt for it). */

enum { TOKEN_MAX = 512, TOKEN_SHORT = 16 };

struct token {
	char text[TOKEN_MAX + 1];
	size_t length; // bytes; 0: no token required
};

/* Reads the token, the only line of a file. -EACCES: other users can read the file; -EINVAL: not a token; else the errno
 * of open or read. Always sets *reterr. */
int token_read(struct token *ret_token, const char *path, struct wattle_error *reterr);
/* True if the value of an Authorization header (NULL: absent) contains the token. The run time depends on the length of
 * the value only, so timing does not reveal the token. */
bool token_matches(const struct token *token, const char *authorization);

/* Interpretation of request headers. Pure functions. */

/* True if the Host header value `host` rules out DNS rebinding. In that attack, a name that the attacker owns resolves to
 * 127.0.0.1 after the attacker's page has loaded, and the page's script reads this server as its own origin. Only names
 * that an attacker cannot redirect are accepted, and `name`, the host of --listen ("": none). */
bool request_host_is_ours(const char *host, const char *name);

/* True if a page of another site sent the request, by the Sec-Fetch-Site and Sec-Fetch-Mode headers (NULL: absent). Links
 * from other sites to this server are allowed. */
bool request_is_cross_site(const char *site, const char *mode);

/* True if the Accept header (NULL: absent) ranks OpenMetrics at least as high as the classic text format. */
bool request_wants_openmetrics(const char *accept);

/* The listening address: opens a socket from the text of --listen. Forms: "127.0.0.1:9095", "[::1]:9095", "localhost:0",
 * ":9095" (all addresses), "unix:/run/wattle/serve.sock". Port 0 selects any free port. */

struct address {
	int fd;                // owned; listening, non-blocking
	bool is_local;         // reachable from this machine only
	char host[256];        // as given, without brackets; "": all addresses, or a Unix socket
	char url[320];         // with the actual port: "http://127.0.0.1:9095/"; for a Unix socket "unix:PATH"
	char socket_path[104]; // removed on close; "": none
	dev_t st_dev;          // identity of the socket file when it was created
	ino_t st_ino;
};

/* -EINVAL: malformed address or unknown host, *reterr shows the accepted forms; -EPERM: other machines could connect and
 * `may_be_public` is false; else the errno of bind or listen. */
int address_open(struct address *ret_address, const char *listen, bool may_be_public, struct wattle_error *reterr);
void address_close(struct address *address);

/* The documents of one sample as libmicrohttpd responses. Each document is generated on its first request and cached until
 * the next sample, so each is generated at most once per sample. */

enum response_kind {
	RESPONSE_PAGE,
	RESPONSE_FIGURES,
	RESPONSE_NOW,
	RESPONSE_HISTORY,
	RESPONSE_TEXT,
	RESPONSE_OPENMETRICS,
	RESPONSES
};

struct response_cache {
	const struct mhd *mhd;
	void (*before_metrics)(void *data); // called before metrics are generated
	void *data;
	struct MHD_Response *responses[RESPONSES]; // owned; NULL: not requested since the last sample
};

// NULL: no memory. The result is borrowed until the next sample.
struct MHD_Response *response_cache_get(struct response_cache *responses_cached, enum response_kind which,
	const struct view *view);
void response_cache_clear(struct response_cache *responses_cached);
// Creates a response with a short error text. NULL: no memory; the caller drops it.
struct MHD_Response *response_text(const struct mhd *mhd, const char *text);

/* Connections, and the rule that selects which one to close when there are too many. Clients that send nothing, send one
 * byte at a time or never read the response must not keep others out. (libmicrohttpd restarts its own timeout with each
 * byte, and its limit per address would block every client behind a proxy.) The module reads no clock. It uses
 * shutdown(2), poll(2) and the kernel's byte counts on the sockets.
 *
 * From CONNECTION_TABLE_CROWDED connections on, each new connection closes one: of the origin with the most connections, the one with
 * the least progress. A client is late if it has been in its state for longer than CONNECTION_GRACE_S plus the time to read its
 * response at CONNECTION_MIN_RATE. An origin can therefore fill only the places that no other origin needs. Among the clients
 * of one origin, late clients are closed first, answered or not; then clients that wait for no response, the oldest first.
 *
 * The library reads a connection in the run after the run that accepted it. Until then its progress is unknown, and it is
 * closed only if all others are equally new. One run accepts at most 10 connections, so a client that sends its request at
 * once is answered however many others connect. All addresses of this machine are one origin, because each local user can
 * use all of them. */

enum {
	CONNECTION_TABLE_MAX = 64,     // concurrent connections
	CONNECTION_TABLE_CROWDED = 56, // connections from which on each new one closes another
	CONNECTION_GRACE_S = 1,
	CONNECTION_MIN_RATE = 16 << 10, // bytes/s; clients that read more slowly are late
	CONNECTION_TIMEOUT_S = 30,      // timeout of receiving a complete request and of sending its response
	CONNECTION_SCRAPER_S = 300,     // timeout of the next request of a scraper, which its connection identifies
};

struct connection {
	int fd;           // of the connection, borrowed; -1: free entry
	uint64_t line;    // unique connection number
	uint64_t origin;  // client origin; connections of one origin share a part of the places
	uint64_t run;     // number of the library run that accepted it
	int64_t since_ns; // start of the current state
	uint64_t bytes;   // response bytes acknowledged at since_ns
	bool is_responding; // true: a complete request has arrived and its response is being sent; false: waiting for a request
	bool is_over;     // already shut down
	uint32_t scraper; // id of the scraper that receives this response
	bool has_scraped;
	uint64_t scraped_sample; // sample number of the last scrape; 0: the request was not a scrape
};

struct connection_table {
	struct connection items[CONNECTION_TABLE_MAX];
	size_t n;
	uint64_t last_line;
	uint64_t run;     // number of the current library run; incremented before each run
	uint64_t n_ended; // connections closed or shut down
};

void connection_table_init(struct connection_table *table);
struct connection *connection_table_add(struct connection_table *table, int fd, uint64_t origin,
	int64_t t_ns); // NULL: table full
// True if the peer has closed the connection; the library may not have noticed yet.
bool connection_has_hung_up(const struct connection *entry);
void connection_table_remove(struct connection_table *table, struct connection *entry);
// A complete request has arrived; its response follows.
void connection_start_response(struct connection *entry, int64_t t_ns);
// The response has been sent. When places are short, the connection is closed so that waiting clients are accepted in turn.
void connection_table_response_sent(struct connection_table *table, struct connection *entry, int64_t t_ns);
// Shuts down connections that exceed their timeout.
void connection_table_expire(struct connection_table *table, int64_t t_ns);

/* Connection tracking for libmicrohttpd callbacks: timeouts (connection_table) and the samples that scrapers have
 * received (scrapers). */

struct connections {
	const struct mhd *mhd;        // borrowed
	const struct wattle_env *env; // borrowed
	struct connection_table table;
	struct scrapers *scrapers; // borrowed
};

void connections_init(struct connections *connections, const struct mhd *mhd, const struct wattle_env *env,
	struct scrapers *scrapers);
void connections_notify(struct connections *connections, struct MHD_Connection *connection, void **entry,
	enum MHD_ConnectionNotificationCode what);
// A complete request has arrived. look: number of the sample whose metrics it receives; 0: not a scrape.
void connections_request(struct connections *connections, struct MHD_Connection *connection, uint64_t sample);
// The response has been sent, or the connection failed.
void connections_completed(struct connections *connections, struct MHD_Connection *connection,
	enum MHD_RequestTerminationCode how);

/* Authorisation and routing of requests. */

struct request_rules {
	const struct mhd *mhd;
	const char *name;          // host of --listen; "": none
	const struct token *token; // length 0: no token required
	bool checks_host;          // check the Host header: no token is required and the address is local
};

bool request_is_reading(const char *method); // GET, HEAD
// Queues the response. MHD_NO: close the connection. *ret_is_scrape: an authorised client receives metrics.
enum MHD_Result request_answer(const struct request_rules *rules, struct response_cache *responses_cached,
	const struct view *view, struct MHD_Connection *connection, const char *path, const char *method,
	bool *ret_is_scrape);
