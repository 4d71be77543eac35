/* Several recorders of one job on one machine: which of its sensors this one reads. One claim for what belongs to the machine as a
 * whole, one for each GPU, so that ranks that see different GPUs read a part each. The event `sensors` tells in the run file
 * who reads what from when. */
#pragma once

#include "job/job.h"
#include "sampler/sampler.h"

#include <stdbool.h>
#include <stddef.h>

struct claims {
	struct sampler *sampler; // borrowed
	int64_t rank;            // ours; VALUE_MISSING unknown
	struct claimed {
		struct claim claim;
		const struct domain *first; // of its devices: names the thing
		pid_t told_owner;           // what the last event said; 0: nothing, or that nobody is known
	} * things;                         // owned
	size_t n;
	size_t *thing_of; // owned: one a device
};

/* group: the same text for all who share (job, machine); NULL or "": nobody, every sensor is ours and there is nothing to do.
 * target: what is measured, a pid. -ENOMEM. */
int claims_open(struct claims *claims, struct sampler *sampler, const char *group, int64_t rank, pid_t target);
// Descriptors to be watched for EPOLLIN | EPOLLRDHUP, which change with each turn; -1: none.
int claims_fd(const struct claims *claims, size_t thing);
/* One of them hung up, or fd is -1 (at each tick): takes over what can be. True if a descriptor changed and wants to be watched;
 * *ret_took: sensors became ours. */
bool claims_turn(struct claims *claims, int fd, int64_t t_ns, bool *ret_took);
bool claims_has(const struct claims *claims, int fd);
// When the last reading is done: the others need not wait for us to store it.
void claims_let_go(struct claims *claims);
void claims_close(struct claims *claims);
