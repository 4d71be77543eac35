/* Shared declarations of the NVML sensor. */
#pragma once

#include "sensor/gpu/nvml_api.h"
#include "sensor/gpu/pid_match.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* State shared by all readers of one board: its handle, its unsupported queries, and whether it is reachable. */

enum nvml_query {
	NVML_QUERY_ENERGY,
	NVML_QUERY_POWER,
	NVML_QUERY_FIELDS,
	NVML_QUERY_POWER_SAMPLES,
	NVML_QUERY_POWER_CAP,
	NVML_QUERY_UTILIZATION,
	NVML_QUERY_MEMORY_V2,
	NVML_QUERY_MEMORY_V1,
	NVML_QUERY_TEMPERATURE,
	NVML_QUERY_MEMORY_TEMPERATURE,
	NVML_QUERY_SM_CLOCK,
	NVML_QUERY_MEMORY_CLOCK,
	NVML_QUERY_THROTTLE,
	NVML_QUERY_SM_SAMPLES,
	NVML_QUERY_ACCOUNTS,
	NVML_QUERY_PROCESSES, // + enum nvml_process_kind
};

struct nvml_board {
	const struct nvml_api *api;   // borrowed
	const struct wattle_env *env; // borrowed: for the clocks
	nvml_device handle;           // NULL: refused by the driver, or not opened yet
	uint32_t unsupported;         // bit mask of enum nvml_query: queries that are not repeated
	bool lost;                    // fell off the bus
};

// Many GPUs lack some figures, and a driver call takes microseconds to milliseconds. A query that the driver reports as
// unsupported is not repeated on that board, and a board that fell off the bus gets no query.
static inline bool nvml_queries_enabled(const struct nvml_board *board, unsigned int query)
{
	return board->handle != NULL && !board->lost && (board->unsupported & UINT32_C(1) << query) == 0;
}

static inline void nvml_stop_querying(struct nvml_board *board, unsigned int query)
{
	board->unsupported |= UINT32_C(1) << query;
}

// Records codes after which a repeated query is pointless; returns the code.
static inline int nvml_note(struct nvml_board *board, unsigned int query, int code)
{
	if (code == NVML_GPU_IS_LOST)
		board->lost = true;
	if (code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND || code == NVML_VERSION_ARGUMENT ||
		code == NVML_DEPRECATED)
		nvml_stop_querying(board, query);
	return code;
}

/* Memory of a board, by whichever call the driver has. */

struct nvml_memory {
	uint64_t total_bytes, used_bytes; // without the driver's reserved memory, if that is reported
};

int nvml_memory_read(struct nvml_board *board, struct nvml_memory *ret_memory); // returns NVML's code

/* Processes on a GPU: the driver's process lists, merged into one set, then summed for the target and for all others. Nothing
 * here allocates; the sensor allocates at open. */

// One process on one GPU, or on one MIG instance of it.
struct nvml_process {
	uint32_t pid;
	uint64_t instance;   // GPU and compute instance combined; NVML_NO_INSTANCE without MIG
	uint64_t used_bytes; // NVML_NOT_AVAILABLE: not reported
	enum pid_side side;
	bool is_main;
};

#define NVML_NO_INSTANCE UINT64_MAX

static inline uint64_t nvml_instance_id(uint32_t gpu_instance, uint32_t compute_instance)
{
	return (uint64_t)gpu_instance << 32 | compute_instance;
}

// Ascending by pid, then instance; each pair occurs once.
struct nvml_process_set {
	struct nvml_process *processes; // room for `capacity`
	size_t n, capacity;
};

// Adds `count` records of `record_size` bytes as a list filled them. A process that both computes and draws is in two lists
// with the same total and is kept once. Records without an instance get `instance`. Returns false if the set is full.
bool nvml_process_set_add(struct nvml_process_set *set, const void *records, size_t record_size, size_t count,
	uint64_t instance);

/* Assigns the processes of one GPU to the target or to others. Ids unknown to pid_match are classified together, by their
 * open descriptors or because no other local process uses the GPU. */
struct nvml_owners {
	enum pid_method method; // weakest method used
	enum pid_side rest;     // side of the ids unknown to pid_match; PID_UNKNOWN: undecided
	bool presence_only;     // only the number of processes on each side is known
	int64_t target, others; // number of processes; VALUE_MISSING: unknown
};
// Also sets `side` of each process of the set.
void nvml_process_set_check(struct nvml_process_set *set, struct pid_match *match, unsigned int minor,
	struct nvml_owners *ret_owners);

// Fills MAIN_MEMORY, TARGET_MEMORY, OTHERS_MEMORY, TARGET_PROCESSES and OTHERS_PROCESSES. A sum with an unknown part stays
// missing. Without a target only the OTHERS_ values are filled.
void nvml_process_set_sum(const struct nvml_process_set *set, const struct nvml_owners *owners, bool has_target,
	int64_t *row);

/* Energy and power of one board. The driver's query method is selected once, at open.
 *
 * Energy comes from nvmlDeviceGetTotalEnergyConsumption, else from field 191 or 83. Power comes from field 186
 * (instantaneous), else from nvmlDeviceGetPowerUsage, whose meaning depends on the board (instantaneous, or the mean of the
 * last second). Without an energy counter, the driver's buffer of power samples yields the mean power since the previous
 * reading, so that changes between two ticks are included.
 *
 * Fields 185, 186 and 191 also exist for the module (CPU, GPU and memory) and for the GPU's memory. They are read in the same
 * call as the GPU's own fields. Grace-Hopper boards may refuse the GPU's own figures and answer for the module only: then
 * `scope` is NVML_SCOPE_MODULE. */

enum { NVML_FIELDS_MAX = 3 * NVML_SCOPES };

/* A field of the energy counter has a time stamp. NVIDIA does not document whether it is the time of the counter's last
 * update or of the query. It is used after it has several times stayed constant with the value and changed with it. A single
 * contradiction disables it for good. */
struct nvml_field_time {
	bool disproved;
	uint64_t last_mj;
	int64_t last_us; // 0: none yet
	unsigned int n_repeats, n_changes;
};

struct nvml_fields {           // figures available for one scope
	uint32_t energy_field; // 191 or 83; 0: neither
	bool instant, average; // fields 186 and 185
	int refusal;           // driver's code for a scope that exists but can't be read; else NVML_SUCCESS
	struct nvml_field_time time;
};

struct nvml_energy {
	enum nvml_scope scope; // scope of the GPU's own figures
	bool has_source;       // the GPU's own figures have a source
	bool counts;           // an energy counter exists
	bool by_call;          // read by its own function, not by the energy field of `scope`
	struct nvml_fields of[NVML_SCOPES];
	uint64_t power_seen_us; // latest sample read from the power buffer, on the driver's clock
	int64_t power_fresh_ns; // time at which that sample was first seen
};

struct nvml_power_buffer {           // buffer for the driver's samples, used for one board after another
	struct nvml_sample *samples; // owned by the sensor
	size_t n;
};

struct nvml_spacing { // time between power samples; 0: unknown
	int64_t median_ns, jitter_ns;
};

// With power_only the energy counter is not used: the domain was described before the counter could be detected.
void nvml_energy_open(struct nvml_energy *energy, struct nvml_board *board, bool power_only);
// Maximum number of power samples the driver returns for this board; 0: it has no such buffer.
size_t nvml_energy_buffer_size(struct nvml_board *board);
// Starts the first mean power now, and determines the driver's sampling period from its buffer.
struct nvml_spacing nvml_energy_prime(struct nvml_energy *energy, struct nvml_board *board,
	const struct nvml_power_buffer *buffer);
/* Fills ENERGY, ENERGY_TIME, POWER and POWER_AVERAGE of each scope's row, with energy_only the first two. A NULL row means
 * that the scope is not read. Scopes other than energy->scope cost no extra driver call where the GPU's fields are read
 * anyway. */
void nvml_energy_read(struct nvml_energy *energy, struct nvml_board *board, const struct nvml_power_buffer *buffer,
	int64_t t_ns, bool energy_only, int64_t *const rows[NVML_SCOPES]);
// Whether any figure of this scope is available through fields.
bool nvml_fields_any(const struct nvml_fields *fields);

// Pure, for tests. Takes one reading of the field; returns true if its time stamp has proved to be the counter's own.
bool nvml_field_time_feed(struct nvml_field_time *time, uint64_t energy_mj, int64_t timestamp_us);
// Mean of the samples later than *seen_us, weighted by the duration of each; false if there are none.
bool nvml_power_mean(const struct nvml_sample *samples, size_t n, int value_type, uint64_t *seen_us, double *ret_mw);
// Converts a field or sample to an integer; false for a negative or invalid value, or an unknown type.
bool nvml_value_u64(const union nvml_value *value, int value_type, uint64_t *ret_value);

/* SM utilization of the target and of all others, from the driver's per-process samples. */

struct nvml_sm_use {
	double percent[PID_UNKNOWN + 1]; // indexed by enum pid_side
};

enum { NVML_USERS_MAX = 128 }; // processes of one GPU that are listed individually

struct nvml_pid_use {
	uint32_t pid; // pid as reported by the driver
	double percent;
};

struct nvml_use {
	uint64_t seen_us;    // latest sample, on the driver's clock
	uint64_t spacing_us; // shortest time between two new samples; 0 before there were two
	int64_t fresh_ns;    // time at which the latest sample was first seen
	bool awaits_first;   // seen_us is from before the first reading: later use is not known yet
	struct nvml_sm_use last;
	struct nvml_pid_use pids[NVML_USERS_MAX]; // per process
	size_t n_pids;
};

struct nvml_use_buffer {
	struct nvml_process_sample *samples; // owned by the sensor
	size_t n;
};

// Maximum number of samples the driver returns for this board; also detects whether it has any.
size_t nvml_use_buffer_size(struct nvml_board *board);
// Starts the first reading now and discards samples that the driver buffered before.
void nvml_use_prime(struct nvml_use *use, struct nvml_board *board, const struct nvml_use_buffer *buffer);
// Fills TARGET_UTILIZATION and OTHERS_UTILIZATION; returns NVML's code.
int nvml_use_read(struct nvml_use *use, struct nvml_board *board, const struct nvml_use_buffer *buffer,
	struct pid_match *match, const struct nvml_owners *owners, int64_t *row);

/* Mean SM utilization over (last_seen_us, newest sample], summed over the processes of each side. Each of several samples of
 * a process stands for the time since its predecessor; they are averaged by that time, not added. Invalid samples are
 * ignored: pid 0, more than 100 percent, and samples already seen. Reorders `samples`. Returns the newest time stamp, or
 * last_seen_us if there is no new sample. */
uint64_t nvml_sm_sum(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us, struct pid_match *match,
	struct nvml_sm_use *ret_use);
/* The same per process, from the samples that nvml_sm_sum left in `samples`. Returns the number of processes; those beyond
 * `room` are ignored. */
size_t nvml_sm_of_pids(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us, struct nvml_pid_use *pids,
	size_t buffer);

/* A GPU partitioned into MIG instances. Energy is metered for the whole board only, so it is counted once, for the parent.
 * Instances show how the board is shared: by the SM slices of the instances on which the target and others have processes.
 * The list of instances is that at the start of the run. */

enum { NVML_INSTANCES_MAX = 16 }; // today's boards have at most seven

struct nvml_instance {
	nvml_device handle;
	uint64_t id;     // as in struct nvml_process
	uint32_t slices; // of SMs; 0: not reported
	uint64_t memory_bytes;
	double share; // fraction of the GPU
	char uuid[NVML_TEXT_MAX];
	char name[NVML_TEXT_MAX];
};

struct nvml_mig {
	bool on;
	uint32_t total_slices;
	struct nvml_instance instances[NVML_INSTANCES_MAX];
	size_t n;
};

// memory_bytes: of the whole GPU; 0: unknown.
void nvml_mig_open(struct nvml_mig *mig, const struct nvml_board *board, uint64_t memory_bytes);
// Fills TARGET_MIG_SHARE and OTHERS_MIG_SHARE from a classified set. Fills nothing if MIG is off.
void nvml_mig_put_shares(const struct nvml_mig *mig, const struct nvml_process_set *set,
	const struct nvml_owners *owners, bool has_target, int64_t *row);
// Fraction of the GPU that belongs to one process of the set: that of its instance, divided among the processes there. NaN if
// MIG is off, or if the process's instance is unknown.
double nvml_mig_part_of(const struct nvml_mig *mig, const struct nvml_process_set *set,
	const struct nvml_process *process);
// Number of slices in the name of an instance: 3 for "… MIG 3g.20gb", 1 for "… MIG 1c.3g.20gb", 0 if there is none. Pure.
uint32_t nvml_mig_slices_of_name(const char *name);

/* Individual processes on one GPU, for measurements of the whole machine. */

struct nvml_users {
	bool wanted, known;
	size_t n;
	struct device_user users[NVML_USERS_MAX];
	uint32_t ids[NVML_USERS_MAX]; // pids as reported by the driver
};

void nvml_users_clear(struct nvml_users *users);
// Lists the processes from the driver's lists, with their memory and their fraction of the GPU.
void nvml_users_list(struct nvml_users *users, const struct nvml_process_set *set, const struct nvml_mig *mig,
	struct pid_match *match);
// Adds SM utilization from the driver's samples, and processes that appear only there.
void nvml_users_add_use(struct nvml_users *users, const struct nvml_use *use, struct pid_match *match);

/* The driver's accounting of processes, if accounting mode is on: the peak memory of each process, kept after its exit. It
 * covers target processes that start and exit between two readings. */

struct nvml_accounts {
	bool on;
	uint64_t opened_us; // wall clock; accounts of processes that ended earlier do not belong to this run
	int64_t queried_ns; // time of the last query; VALUE_MISSING: never
	int64_t reported_bytes; // largest target memory stored in a row so far
};

struct nvml_accounts_buffer {
	unsigned int *pids; // owned by the sensor
	size_t n;
};

void nvml_accounts_open(struct nvml_accounts *accounts, struct nvml_board *board);
/* Raises TARGET_MEMORY of this row to the largest account of the target's processes, unless an earlier row has that much.
 * Queries the driver once a second, and when a process of the target has ended. */
void nvml_accounts_read(struct nvml_accounts *accounts, struct nvml_board *board,
	const struct nvml_accounts_buffer *buffer, struct pid_match *match, int64_t *row);

/* Buffers for the driver's answers, allocated at open and used for one GPU after another. */

struct nvml_scratch {
	void *records; // owned; n_records of the largest layout
	size_t n_records;
	struct nvml_process_set processes;  // .processes owned
	struct nvml_use_buffer use;         // .samples owned
	struct nvml_power_buffer power;     // .samples owned
	struct nvml_accounts_buffer accounts; // .pids owned
};

// Allocates room for the numbers of SM and power samples that a driver announced, and for more processes than exist.
int nvml_scratch_open(struct nvml_scratch *scratch, size_t n_use, size_t n_power); // -ENOMEM
void nvml_scratch_close(struct nvml_scratch *scratch);

/* One GPU of NVML: its description, and one reading of all its figures.
 *
 * Energy and power are read each time. Figures that change slowly, or cost milliseconds of driver time, have periods of their
 * own, so that fast sampling does not make twenty driver calls per tick. Rows in between repeat the last value. */

enum nvml_rate { NVML_FAST, NVML_SLOW, NVML_RATES };

struct nvml_gpu {
	struct nvml_board board;
	struct domain *domain; // owned by the sensor
	struct domain *beside[NVML_SCOPES]; // owned by the sensor: of the module and of the memory; NULL: none
	struct nvml_energy energy;
	struct nvml_use use;
	struct nvml_mig mig;
	struct nvml_accounts accounts;
	struct nvml_owners owners;
	struct nvml_users users;
	unsigned int minor;          // of /dev/nvidia<minor>
	int on_bus;                  // index in nvml_bus; -1: not found there
	int64_t next_ns[NVML_RATES]; // time of the next query of each pace
	int64_t held[DEVICE_COUNT];  // last values of the figures with a pace
	bool had_target;             // whether there was a target at the last reading
	int64_t retry_ns;            // for a lost board: time of the next check
};

// Fills the domain of a GPU with a valid handle: name, UUID, memory, limits, and its energy source. With power_only its
// energy is integrated from power.
void nvml_gpu_describe(struct nvml_gpu *gpu, bool power_only);
// Describes the domain of the GPU's module or of its memory; `index` is the module's number.
void nvml_gpu_describe_beside(struct nvml_gpu *gpu, enum nvml_scope scope, int index, struct domain *ret_domain);
// Explains why a GPU has no readable energy or power although other figures are readable, and gives a remedy.
void nvml_gpu_explain_no_power(struct nvml_gpu *gpu, char *ret_why, size_t size, const char **ret_remedy);
// Estimated speed (cores times highest clock), used to guess CUDA's order of GPUs; 0: unknown.
double nvml_gpu_speed(const struct nvml_gpu *gpu);
// Starts the first reading now and discards data that the driver buffered before.
void nvml_gpu_prime(struct nvml_gpu *gpu, const struct nvml_scratch *scratch);

// Takes one reading into rows preset to VALUE_MISSING, which failed values keep. rows: by scope; NULL: not wanted.
void nvml_gpu_read(struct nvml_gpu *gpu, struct nvml_scratch *scratch, struct pid_match *match,
	const struct sensor_context *context, int64_t *const rows[NVML_SCOPES]);
