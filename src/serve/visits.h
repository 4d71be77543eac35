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
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
