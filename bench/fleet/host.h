/* One simulated host: what wattle serve would have counted and seen there at a moment, as the shipped encoder takes it. */
#pragma once

#include "serve/view.h"

enum { HOST_GPUS = 8, HOST_DOMAINS = 4 + HOST_GPUS, HOST_JOBS = 4 };

struct host {
	char name[32];
	size_t number;
	struct domain domains[HOST_DOMAINS];
	struct now_domain rows[HOST_DOMAINS];
	struct now now;
	struct tally tally;
};

void host_open(struct host *host, size_t number);
// The figures of this moment: powers that differ from host to host and joules that follow from them.
void host_move(struct host *host, double seconds);
void host_close(struct host *host);
