/* The metric table, and the record that transports values from the sampler to the store. */
#pragma once

#include "base/util.h"

#include <stddef.h>
#include <stdint.h>

enum metric_scope { METRIC_RUN, METRIC_DEVICE, METRIC_PROCESS, METRIC_SCOPES };
enum metric_kind { METRIC_COUNTER, METRIC_GAUGE };

/* Within a scope metrics are numbered from 0: RUN_SELF_CPU, …, RUN_COUNT; DEVICE_ENERGY, …, DEVICE_COUNT;
 * PROCESS_PROCESS_CPU, …, PROCESS_COUNT. These numbers index a row of values. */
#define METRIC_OF_RUN_RUN(id) RUN_##id,
#define METRIC_OF_RUN_DEVICE(id)
#define METRIC_OF_RUN_PROCESS(id)
#define METRIC_OF_DEVICE_RUN(id)
#define METRIC_OF_DEVICE_DEVICE(id) DEVICE_##id,
#define METRIC_OF_DEVICE_PROCESS(id)
#define METRIC_OF_PROCESS_RUN(id)
#define METRIC_OF_PROCESS_DEVICE(id)
#define METRIC_OF_PROCESS_PROCESS(id) id,
enum run_metric {
#define METRIC(id, scope, ...) METRIC_OF_RUN_##scope(id)
#include "metric/metrics.def"
	RUN_COUNT
};
enum device_metric {
#define METRIC(id, scope, ...) METRIC_OF_DEVICE_##scope(id)
#include "metric/metrics.def"
	DEVICE_COUNT
};
enum process_metric {
#define METRIC(id, scope, ...) METRIC_OF_PROCESS_##scope(id)
#include "metric/metrics.def"
	PROCESS_COUNT
};

struct metric {
	const char *name; // column name with its unit as suffix
	enum metric_kind kind;
	const char *unit;
	const char *source;
	const char *meaning;
	struct metric_family {
		const char *name; // name with its unit as suffix; NULL: none
		double scale;     // converts the metric's unit to that of the name
		const char *help; // one sentence
	} family;                 // OpenMetrics family
};

// The metrics of a scope, in the order of its enum; *ret_count is RUN_COUNT, DEVICE_COUNT or PROCESS_COUNT.
const struct metric *metric_table(enum metric_scope scope, size_t *ret_count);
const char *metric_scope_name(enum metric_scope scope); // "run", "device", "process"
const char *metric_kind_name(enum metric_kind kind);    // "counter", "gauge"

/* One row for the store: the values of one scope at one instant. */
struct record {
	int64_t t_ns;      // CLOCK_MONOTONIC
	int64_t id;        // METRIC_DEVICE: index of the device in struct devices; METRIC_PROCESS: pid; METRIC_RUN: 0
	int64_t start_ns;  // METRIC_PROCESS: start time of the process, which together with the pid identifies it; else 0
	uint32_t scope;    // enum metric_scope
	uint32_t n_values; // number of values in that scope
	int64_t values[];
};

/* Consecutive records in memory that is allocated once. */
struct batch {
	unsigned char *bytes; // owned
	size_t size, capacity;
	size_t n_samples; // number of RUN records
	size_t n_lost;    // number of RUN records that did not fit since the last clear
};

int batch_init(struct batch *batch, size_t capacity); // -ENOMEM
void batch_finish(struct batch *batch);
void batch_clear(struct batch *batch);
// Adds a record with values preset to VALUE_MISSING; returns NULL if the batch is full (RUN records are then counted in
// n_lost).
struct record *batch_add(struct batch *batch, enum metric_scope scope, int64_t t_ns, int64_t id, int64_t start_ns);
// for (const struct record *r = batch_first(b); r; r = batch_next(b, r))
const struct record *batch_first(const struct batch *batch);
const struct record *batch_next(const struct batch *batch, const struct record *record);

/* Reasons why a GPU's clocks are limited: NVML's reasons, to which the sensors of other makers map theirs (metric
 * throttle_reasons_bits). */

enum { THROTTLE_REASONS = 6 };
struct throttle_reason {
	int64_t bit;
	const char *key;   // NVML's name, for machine-readable output
	const char *words; // for display
};
extern const struct throttle_reason throttle_reasons[THROTTLE_REASONS];

// Returns the bits that limit a busy GPU; 0: none, or unknown.
int64_t throttle_held_back(int64_t bits);
enum { THROTTLE_PHRASE_SIZE = 160 };
void throttle_phrase(int64_t bits,
	char words[THROTTLE_PHRASE_SIZE]); // "power limit, thermal slowdown"; "" if there is no limit
