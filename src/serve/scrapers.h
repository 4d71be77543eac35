/* Who scrapes, and what they all have got: what has ended is told until then. A client is an address and the name of a program, so that
 * two Prometheus servers of a pair each get what the other has had, and somebody with curl takes nothing away from either. Behind one
 * address (a pair on one host, a NAT) each has a connection of its own, which it keeps: one that comes while all others of its kind are
 * connected is another client. Pure. */
#pragma once

#include "serve/told.h"

#include <jansson.h>
#include <sys/socket.h>

enum {
	SCRAPERS_MAX = 32,
	SCRAPER_PATIENCE_S =
		300,           // who has not come for so long has gone: Prometheus itself forgets a series after that
	SCRAPER_RHYTHMS = 2,   // … unless its own rhythm is slower: then so many times that, and
	SCRAPER_RHYTHM_S = 900 // no slower one than this
};

struct scraper {
	uint32_t id;
	uint64_t line;  // the connection that it has; 0: it has hung up
	uint64_t look;  // the last that it has got, whole
	int64_t t_ns;   // … and when
	int64_t gap_ns; // time between the last two; 0: it came once
};

struct scrapers {
	struct scraper items[SCRAPERS_MAX];
	size_t n;
};

// address: without its port, which is another at each connection; NULL: a Unix socket. program: User-Agent, or NULL.
uint32_t scraper_id(const struct sockaddr *address, const char *program);
// line: a number of the connection that no other has had.
void scrapers_note(struct scrapers *scrapers, uint32_t id, uint64_t line, uint64_t look, int64_t t_ns);
void scrapers_hang_up(struct scrapers *scrapers, uint64_t line);
// What everybody has got who still comes; look 0: there is nobody.
struct told_seen scrapers_seen(const struct scrapers *scrapers, int64_t t_ns);

/* Over restarts: who came is waited for, or the first who comes would take the last words of before from the others. An array, and back;
 * same_boot: its times are of our clock. */
extern const struct object_type scrapers_type; // data: struct scrapers
void scrapers_read(struct scrapers *scrapers, const json_t *array, bool same_boot, int64_t t_ns);
