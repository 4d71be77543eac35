/* Energy and power of one board: which of the driver's ways to ask it answers, settled once at open.
 *
 * Energy comes from nvmlDeviceGetTotalEnergyConsumption, else from field 191 or 83. Power comes from field 186 (the
 * instant), else from nvmlDeviceGetPowerUsage, whose meaning differs from board to board (the instant, or the mean of the
 * last second). Where there is no energy counter, the driver's own buffer of power samples gives the mean power since the
 * reading before, so that nothing between two ticks is missed.
 *
 * Fields 185, 186 and 191 also exist for the module (CPU, GPU and memory) and for the GPU's memory. They are read in the
 * same call as the GPU's own fields. Grace-Hopper boards may refuse the GPU's own figures and answer for the module only:
 * then `scope` is NVML_SCOPE_MODULE. */
#pragma once

#include "sensor/gpu/nvml_board.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NVML_FIELDS_MAX = 3 * NVML_SCOPES };

/* A field of the energy counter has a time stamp, and no word says whether it is that of the counter's last update or
 * only of the query. It is believed once it was seen to stand still with the value and to move with it, several times,
 * and never again once it did otherwise. */
struct nvml_field_time {
	bool disproved;
	uint64_t last_mj;
	int64_t last_us; // 0: none yet
	unsigned int n_repeats, n_changes;
};

struct nvml_fields {           // what the driver answers of one scope
	uint32_t energy_field; // 191 or 83; 0: neither
	bool instant, average; // fields 186 and 185
	int refusal;           // of a scope that exists, but can't be read: the driver's code; else NVML_SUCCESS
	struct nvml_field_time time;
};

struct nvml_energy {
	enum nvml_scope scope; // of the GPU's own figures
	bool has_source;       // there is one for them
	bool counts;           // there is an energy counter
	bool by_call;          // it is read by its own function; else by the energy field of `scope`
	struct nvml_fields of[NVML_SCOPES];
	uint64_t power_seen_us; // newest sample of the power buffer so far, on the driver's clock
	int64_t power_fresh_ns; // when it was new to us
};

struct nvml_power_room {             // for the driver's buffer of samples; used for one board after the other
	struct nvml_sample *samples; // owned by the sensor
	size_t n;
};

struct nvml_spacing { // of the power samples; 0: unknown
	int64_t median_ns, jitter_ns;
};

// With power_only the energy counter is left alone: the domain was described before anybody could know that there is one.
void nvml_energy_open(struct nvml_energy *energy, struct nvml_board *board, bool power_only);
// How many samples of power the driver may return for this board; 0: it has no such buffer.
size_t nvml_energy_sample_room(struct nvml_board *board);
// Makes the first mean power begin now, and learns how often the driver samples from what it still remembers.
struct nvml_spacing nvml_energy_prime(struct nvml_energy *energy, struct nvml_board *board,
	const struct nvml_power_room *room);
/* Fills ENERGY, ENERGY_TIME, POWER and POWER_AVERAGE of each scope's row, with energy_only the first two. NULL: that
 * scope is not read. Scopes beside energy->scope cost no driver call of their own where the GPU's fields are read anyway. */
void nvml_energy_read(struct nvml_energy *energy, struct nvml_board *board, const struct nvml_power_room *room,
	int64_t t_ns, bool energy_only, int64_t *const rows[NVML_SCOPES]);
// Whether any figure of this scope can be had by fields.
bool nvml_fields_any(const struct nvml_fields *fields);

// Pure, for tests. One reading of the field: true if its time stamp is the counter's own, as far as is known.
bool nvml_field_time_feed(struct nvml_field_time *time, uint64_t energy_mj, int64_t timestamp_us);
// Mean over the samples later than *seen_us, weighted by the time each stands for; false if there are none.
bool nvml_power_mean(const struct nvml_sample *samples, size_t n, int value_type, uint64_t *seen_us, double *ret_mw);
// The value of a field or sample as a whole number; false for a negative or impossible one, or an unknown type.
bool nvml_value_u64(const union nvml_value *value, int value_type, uint64_t *ret_value);
