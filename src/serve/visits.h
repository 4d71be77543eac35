/* Who is connected and for how long, so that clients that say nothing, say it one byte at a time or never read the
 * answer don't keep others out. (libmicrohttpd's own time limit starts again with each byte.) Pure but for
 * shutdown(2) and poll(2) on the sockets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VISITS_MAX = 64,       // connections at once
	VISITS_ROOMY = 56,     // with more than these, who has been silent for longest is shown out
	VISIT_PATIENCE_S = 30, // for a request to come, whole, and for its answer to be read
	VISIT_SCRAPER_S = 300, // for the next request of one who scrapes: by its connection it is known again
};

struct visit {
	int fd;           // of the connection, borrowed; -1: free
	uint64_t line;    // a number that no other connection has had
	int64_t since_ns; // when the state below began
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
};

void visits_init(struct visits *visits);
struct visit *visits_begin(struct visits *visits, int fd, int64_t t_ns); // NULL: full
// Whether the other side has hung up, which the library may not have noticed yet.
bool visit_has_hung_up(const struct visit *visit);
void visits_end(struct visits *visits, struct visit *visit);
void visit_is_answered(struct visit *visit, bool is_answered, int64_t t_ns);
// Hangs up on those who take too long.
void visits_sweep(struct visits *visits, int64_t t_ns);
