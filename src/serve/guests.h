/* Who is connected, seen through the library: how long each takes (visits), and what those who scrape have got (scrapers). */
#pragma once

#include "base/env.h"
#include "serve/mhd.h"
#include "serve/scrapers.h"
#include "serve/visits.h"

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
