/* What was, for the charts of a page that is opened later: the figures of the last looks, as many as there is room
 * for. Made once. */
#pragma once

#include "now/now.h"

enum { TRAIL_LOOKS = 600 };

enum trail_column {
	TRAIL_TOTAL_W,
	TRAIL_TARGET_W,
	TRAIL_OTHERS_W,
	TRAIL_OWN_W,
	TRAIL_IDLE_W,
	TRAIL_UNATTRIBUTED_W,
	TRAIL_BUSY_CORES,
	TRAIL_MEMORY_BYTES,
	TRAIL_COLUMNS
};
enum trail_domain_column {
	TRAIL_POWER_W,
#define DEVICE_LIVE(id, ...) TRAIL_##id,
#include "metric/metrics.def"
	TRAIL_DOMAIN_COLUMNS
};

struct trail {
	int64_t t_ns[TRAIL_LOOKS];
	float columns[TRAIL_COLUMNS][TRAIL_LOOKS];           // NaN unknown
	float (*domains)[TRAIL_DOMAIN_COLUMNS][TRAIL_LOOKS]; // owned: n_domains of them
	size_t n_domains, n, next;
};

int trail_init(struct trail *trail, size_t n_domains); // -ENOMEM
void trail_finish(struct trail *trail);
void trail_add(struct trail *trail, const struct now *now);
size_t trail_place(const struct trail *trail, size_t i); // where the i-th oldest look lies, i < n
