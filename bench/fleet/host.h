/* One simulated host: the counters and samples of wattle serve at a time, as input of the shipped encoder. */
#pragma once

#include "serve/view.h"

enum { HOST_GPUS = 8, HOST_DOMAINS = 4 + HOST_GPUS, HOST_JOBS = 4 };

struct host {
	char name[32];
	size_t number;
	struct domain domains[HOST_DOMAINS];
	struct monitor_domain rows[HOST_DOMAINS];
	struct monitor_sample now;
	struct totals totals;
};

void host_open(struct host *host, size_t number);
// The figures of this time: powers that differ from host to host and the resulting energies.
void host_move(struct host *host, double seconds);
void host_close(struct host *host);
