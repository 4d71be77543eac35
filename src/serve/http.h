/* libmicrohttpd, loaded when it is wanted: it brings GnuTLS along, which no other command should have to start with.
 * Its header gives the types. */
#pragma once

#include "base/env.h"
#include "base/error.h"
#include "serve/tally.h"
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

// -ENOENT, -ENOSYS: a sentence that names the package.
int mhd_open(struct mhd *ret_mhd, struct wattle_error *reterr);
void mhd_close(struct mhd *mhd);

/* The secret that a client has to know, and how it says so: "Authorization: Bearer TOKEN" (Prometheus, curl), or
 * Basic with the token as the password under any name, which browsers ask people for. */

enum { TOKEN_MAX = 512, TOKEN_SHORT = 16 };

struct token {
	char text[TOKEN_MAX + 1];
	size_t length; // 0: none is asked for
};

/* The one line of a file. -EACCES: somebody else may read it, so it is no secret; -EINVAL: no token; else what open
 * and read have to say. A sentence in all cases. */
int token_read(struct token *ret_token, const char *path, struct wattle_error *reterr);
/* Whether the value of an Authorization header (NULL: there was none) has the token. Takes as long for any wrong
 * value of a length, so that nobody can find it letter by letter. */
bool token_matches(const struct token *token, const char *authorization);

/* What headers of a request mean. Pure. */

/* Whether a page of somebody else's can't be behind it. A name that an attacker owns may be made to lead to 127.0.0.1
 * once his page is loaded (DNS rebinding); his script then reads what is served here as its own. The browser says by
 * which name it came: only names that can't be made to lead here are well, and `name`, under which we were told to
 * listen ("" none). `host` is the header's value. */
bool ask_host_is_ours(const char *host, const char *name);

/* What browsers say of who asks (Sec-Fetch-Site, Sec-Fetch-Mode; NULL: not said): pages of other sites may lead here,
 * and no more. */
bool ask_is_from_elsewhere(const char *site, const char *mode);

/* Whether OpenMetrics is wanted at least as much as the classic text format, by an Accept header (NULL: none). */
bool ask_wants_openmetrics(const char *accept);

/* Where to listen: the text of --listen into a listening socket. "127.0.0.1:9095", "[::1]:9095", "localhost:0",
 * ":9095" (all addresses), "unix:/run/wattle/serve.sock". Port 0 is any free one. */

struct address {
	int fd;                // owned; listening, not blocking
	bool is_local;         // only programs of this machine reach it
	char host[256];        // as it was asked for, without brackets; "" all addresses, or a Unix socket
	char url[320];         // with the port that it got: "http://127.0.0.1:9095/"; of a Unix socket "unix:PATH"
	char socket_path[104]; // to be removed; "": none
	dev_t st_dev;          // of the socket as it was made
	ino_t st_ino;
};

/* -EINVAL: no such form or no such host, with a sentence that says what would be right; -EPERM: other machines could
 * reach it, and `may_be_public` is not set; else what bind and listen have to say. */
int address_open(struct address *ret_address, const char *listen, bool may_be_public, struct wattle_error *reterr);
void address_close(struct address *address);

/* The documents of one look as responses of the library, each made when it is first asked for and kept until the next
 * look: however many clients ask however often, each is made once a look. */

enum answer { ANSWER_PAGE, ANSWER_FIGURES, ANSWER_NOW, ANSWER_TRAIL, ANSWER_TEXT, ANSWER_OPENMETRICS, ANSWERS };

struct answers {
	const struct mhd *mhd;
	void (*telling)(void *data); // called before metrics are made
	void *data;
	struct MHD_Response *responses[ANSWERS]; // owned; NULL: not asked for since the last look
};

// NULL: no memory. Borrowed until the next look.
struct MHD_Response *answers_get(struct answers *answers, enum answer which, const struct view *view);
void answers_forget(struct answers *answers);
// A short text of its own: what is wrong with a request. NULL: no memory; the caller drops it.
struct MHD_Response *answer_text(const struct mhd *mhd, const char *text);

/* Connections, and which of them to close when there are too many, so that clients that say nothing, say it one byte at a time or never read the
 * answer don't keep others out. (libmicrohttpd's own time limit starts again with each byte, and its limit per address would refuse
 * everybody behind a proxy.) Without clocks; of the sockets it uses shutdown(2), poll(2) and the kernel's byte counts.
 *
 * When places run short, each new connection closes one: of the origin that has most connections, the one with the least progress. Late
 * is a client that has been in its state for longer than VISIT_GRACE_S and than reading its answer takes at VISIT_LEAST_RATE. So an origin
 * can fill only the places that no other one wants, and among the clients of one origin those that neither ask nor read go first,
 * whether they were answered or not; then those that wait for no answer, the oldest first.
 *
 * The library reads a connection in the run after the one that accepted it. Until then nothing is known of its progress, and it is closed
 * only if all others are as new. A run accepts 10 connections at most, so a client that sends its request at once is answered
 * however many others connect. All addresses of this machine are one origin, as each user of it has all of them. */

enum {
	VISITS_MAX = 64,   // connections at once
	VISITS_ROOMY = 56, // from so many on, each new connection closes another
	VISIT_GRACE_S = 1,
	VISIT_LEAST_RATE = 16 << 10, // bytes per second at which a client reads that is not late
	VISIT_PATIENCE_S = 30,       // for a request to come, whole, and for its answer to be read
	VISIT_SCRAPER_S = 300,       // for the next request of one who scrapes: by its connection it is known again
};

struct visit {
	int fd;           // of the connection, borrowed; -1: free
	uint64_t line;    // a number that no other connection has had
	uint64_t origin;  // who may be behind it: connections of one origin share a part of the places
	uint64_t run;     // of the library, in which it was accepted
	int64_t since_ns; // when the state below began
	uint64_t bytes;   // of answers that were acknowledged by then
	bool is_answered; // a request has come whole and its answer goes out; else one is awaited
	bool is_over;     // shown out already
	uint32_t scraper; // whom the metrics of this look go out to
	bool has_scraped;
	uint64_t scraped_look; // 0: it was something else that was asked for
};

struct visits {
	struct visit items[VISITS_MAX];
	size_t n;
	uint64_t last_line;
	uint64_t run;     // of the library: counted up before each
	uint64_t n_ended; // connections that were closed, or are to be
};

void visits_init(struct visits *visits);
struct visit *visits_begin(struct visits *visits, int fd, uint64_t origin, int64_t t_ns); // NULL: full
// Whether the other side has hung up, which the library may not have noticed yet.
bool visit_has_hung_up(const struct visit *visit);
void visits_end(struct visits *visits, struct visit *visit);
// A request has come whole: its answer goes out.
void visit_is_asked(struct visit *visit, int64_t t_ns);
// The answer is out. When places are short the connection is closed: each client that waits to be accepted gets its turn.
void visits_answered(struct visits *visits, struct visit *visit, int64_t t_ns);
// Hangs up on those who take too long.
void visits_sweep(struct visits *visits, int64_t t_ns);

/* Who is connected, seen through the library: how long each takes (visits), and what those who scrape have got (scrapers). */

struct guests {
	const struct mhd *mhd;        // borrowed
	const struct wattle_env *env; // borrowed
	struct visits visits;
	struct scrapers *scrapers; // borrowed
};

void guests_init(struct guests *guests, const struct mhd *mhd, const struct wattle_env *env, struct scrapers *scrapers);
void guests_connection(struct guests *guests, struct MHD_Connection *connection, void **visit,
	enum MHD_ConnectionNotificationCode what);
// A request is here, whole. look: the one whose metrics it gets; 0: it asks for something else.
void guests_ask(struct guests *guests, struct MHD_Connection *connection, uint64_t look);
// Its answer is out, or the connection is broken.
void guests_answered(struct guests *guests, struct MHD_Connection *connection, enum MHD_RequestTerminationCode how);

/* What a request is answered with: may it ask, what does it ask for. */

struct request_rules {
	const struct mhd *mhd;
	const char *name;          // under which we were told to listen; "" none
	const struct token *token; // length 0: none is asked for
	bool checks_host;          // without a token, on an address of this machine: by which name it comes matters
};

bool request_is_reading(const char *method); // GET, HEAD
// Queues the answer. MHD_NO: hang up. *ret_is_scrape: who may ask gets metrics.
enum MHD_Result request_answer(const struct request_rules *rules, struct answers *answers, const struct view *view,
	struct MHD_Connection *connection, const char *path, const char *method, bool *ret_is_scrape);
