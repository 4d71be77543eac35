/* When to look between two ticks, for two reasons.
 *
 * So that the moments at which slow counters are updated are known: a round of looks at the start, a short one every half
 * minute, and one at the end until each counter has been updated once more. Counters that are updated about every
 * millisecond need none of this, nor does a sampling that is as fast as the looks.
 *
 * So that no wrap is missed, however seldom samples are taken: a counter is read at least four times in the time that the
 * most plausible power needs to fill it. */
#pragma once

#include "sampler/sampler.h"

struct probe {
	struct sampler *sampler; // borrowed
	size_t *edges_wanted;    // owned: one a device, edges of its watch at which this round is done with it
	int64_t began_ns;        // this round
	int64_t next_round_ns;
	bool is_first, active;
};

int probe_open(struct probe *probe, struct sampler *sampler, int64_t now_ns); // -ENOMEM
void probe_close(struct probe *probe);
void probe_again(struct probe *probe, int64_t now_ns); // as at the start: counters became ours to read
// The time of the next look or, between two rounds, of the next round's first; VALUE_MISSING: never again.
int64_t probe_next_ns(struct probe *probe, int64_t now_ns);

/* After the last tick. Begins the last round; probe_last_ns then gives times until every slow counter has been updated
 * since, or could have been. VALUE_MISSING: done. */
void probe_finish(struct probe *probe, int64_t start_ns, int64_t end_ns);
int64_t probe_last_ns(struct probe *probe, int64_t now_ns);
