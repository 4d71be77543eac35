/* The parts of the NVML sensor. */
#pragma once

#include "sensor/gpu/nvml_api.h"
#include "sensor/gpu/pid_match.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What all readers of one board share: its handle, what it can't, and whether it is there. */

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
	const struct wattle_env *env; // borrowed: the clocks
	nvml_device handle;           // NULL: the driver refuses it, or it was not opened yet
	uint32_t unsupported;         // a bit for each enum nvml_query that is not asked again
	bool lost;                    // fell off the bus
};

// Many GPUs lack some of the figures, and a driver call costs microseconds to milliseconds: a query that the driver says
// is not supported is not asked again on that board, and one that fell off the bus is not asked anything.
static inline bool nvml_asks(const struct nvml_board *board, unsigned int query)
{
	return board->handle != NULL && !board->lost && (board->unsupported & UINT32_C(1) << query) == 0;
}

static inline void nvml_stop_asking(struct nvml_board *board, unsigned int query)
{
	board->unsupported |= UINT32_C(1) << query;
}

// Remembers the answers after which asking again is of no use; returns the code.
static inline int nvml_note(struct nvml_board *board, unsigned int query, int code)
{
	if (code == NVML_GPU_IS_LOST)
		board->lost = true;
	if (code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND || code == NVML_VERSION_ARGUMENT ||
		code == NVML_DEPRECATED)
		nvml_stop_asking(board, query);
	return code;
}

/* Memory of a board, by whichever call its driver has. */

struct nvml_memory {
	uint64_t total_bytes, used_bytes; // both without what the driver reserves, where it says so
};

int nvml_memory_read(struct nvml_board *board, struct nvml_memory *ret_memory); // NVML's code

/* Who is on a GPU: the driver's process lists, made into one set, then into sums for the target and for all others.
 * Nothing here allocates; the memory is the sensor's, made at open. */

// One process on one GPU, or on one MIG instance of it.
struct nvml_process {
	uint32_t pid;
	uint64_t instance;   // GPU and compute instance in one number; NVML_NO_INSTANCE without MIG
	uint64_t used_bytes; // NVML_NOT_AVAILABLE: the driver does not say
	enum pid_side side;
	bool is_main;
};

#define NVML_NO_INSTANCE UINT64_MAX

static inline uint64_t nvml_instance_id(uint32_t gpu_instance, uint32_t compute_instance)
{
	return (uint64_t)gpu_instance << 32 | compute_instance;
}

// Ascending by pid, then instance; each pair once.
struct nvml_process_set {
	struct nvml_process *processes; // room for `capacity`
	size_t n, capacity;
};

// Adds `count` records of `record_size` bytes as a list filled them. A process that computes and draws stands in two
// lists with the same total, so it is kept once. Records without an instance of their own get `instance`. False if there
// was no more room.
bool nvml_process_set_add(struct nvml_process_set *set, const void *records, size_t record_size, size_t count,
	uint64_t instance);

/* Whose the processes of one GPU are. Ids that pid_match can't tell are settled together, by who has the device open or
 * because nobody else here uses it. */
struct nvml_owners {
	enum pid_method method; // the weakest that was needed
	enum pid_side rest;     // whose the ids are that pid_match does not know; PID_UNKNOWN: nobody can tell
	bool presence_only;     // only how many processes each side has is known, not which they are
	int64_t target, others; // processes; VALUE_MISSING: unknown
};
// Sets `side` of each process of the set too.
void nvml_process_set_judge(struct nvml_process_set *set, struct pid_match *match, unsigned int minor,
	struct nvml_owners *ret_owners);

// Fills MAIN_MEMORY, TARGET_MEMORY, OTHERS_MEMORY, TARGET_PROCESSES and OTHERS_PROCESSES. A sum of which a part is
// unknown stays missing; without a target only the others are filled.
void nvml_process_set_sum(const struct nvml_process_set *set, const struct nvml_owners *owners, bool has_target,
	int64_t *row);

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

/* SM use of the target and of all others, from the driver's samples of each process. */

struct nvml_sm_use {
	double percent[PID_UNKNOWN + 1]; // by enum pid_side
};

enum { NVML_USERS_MAX = 128 }; // on one GPU that are told one by one

struct nvml_pid_use {
	uint32_t pid; // as the driver says
	double percent;
};

struct nvml_use {
	uint64_t seen_us;    // newest sample so far, on the driver's clock
	uint64_t spacing_us; // shortest time between two new ones; 0 before there were two
	int64_t fresh_ns;    // when it was new to us
	bool awaits_first;   // seen_us is of before the first reading: the use since then is not known yet
	struct nvml_sm_use last;
	struct nvml_pid_use pids[NVML_USERS_MAX]; // the same by process
	size_t n_pids;
};

struct nvml_use_room {
	struct nvml_process_sample *samples; // owned by the sensor
	size_t n;
};

// How many samples the driver may return for this board; also finds out whether it has any.
size_t nvml_use_sample_room(struct nvml_board *board);
// Makes the first reading begin now, not with what the driver still remembers from before.
void nvml_use_prime(struct nvml_use *use, struct nvml_board *board, const struct nvml_use_room *room);
// Fills TARGET_UTILIZATION and OTHERS_UTILIZATION; returns NVML's code.
int nvml_use_read(struct nvml_use *use, struct nvml_board *board, const struct nvml_use_room *room,
	struct pid_match *match, const struct nvml_owners *owners, int64_t *row);

/* Mean SM use over (last_seen_us, newest sample], summed over the processes of each side. A process may have several
 * samples: each stands for the time since the one before it, and they are averaged by that time, not added up. Known
 * garbage is left out: pid 0, more than 100 percent, samples that were seen before. Reorders `samples`; returns the
 * newest time stamp, last_seen_us if there was nothing new. */
uint64_t nvml_sm_sum(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us, struct pid_match *match,
	struct nvml_sm_use *ret_use);
/* The same for each process, from what nvml_sm_sum left in `samples`; returns how many processes. Those beyond `room` are left
 * out. */
size_t nvml_sm_of_pids(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us, struct nvml_pid_use *pids,
	size_t room);

/* A GPU that is cut into MIG instances. Energy is metered for the whole board only, so it stays the parent's, once; what
 * instances give is who had which part of it: the SM slices of the instances that target and others have processes on.
 * Instances are those of the start of the run. */

enum { NVML_INSTANCES_MAX = 16 }; // a board holds at most seven today

struct nvml_instance {
	nvml_device handle;
	uint64_t id;     // as in struct nvml_process
	uint32_t slices; // of SMs; 0: the driver does not say
	uint64_t memory_bytes;
	double share; // of the GPU
	char uuid[NVML_TEXT_MAX];
	char name[NVML_TEXT_MAX];
};

struct nvml_mig {
	bool on;
	uint32_t total_slices;
	struct nvml_instance instances[NVML_INSTANCES_MAX];
	size_t n;
};

// memory_bytes: of the whole GPU; 0 unknown.
void nvml_mig_open(struct nvml_mig *mig, const struct nvml_board *board, uint64_t memory_bytes);
// Fills TARGET_MIG_SHARE and OTHERS_MIG_SHARE from a set that was judged. Nothing where MIG is off.
void nvml_mig_put_shares(const struct nvml_mig *mig, const struct nvml_process_set *set,
	const struct nvml_owners *owners, bool has_target, int64_t *row);
// The part of the GPU that is one process's of the set: of its instance, divided with the others there. NaN where MIG is off, or
// it is not told on which instance the process is.
double nvml_mig_part_of(const struct nvml_mig *mig, const struct nvml_process_set *set,
	const struct nvml_process *process);
// Slices in the name of an instance: 3 for "… MIG 3g.20gb", 1 for "… MIG 1c.3g.20gb"; 0 if it tells none. Pure.
uint32_t nvml_mig_slices_of_name(const char *name);

/* Each process on one GPU, for those who look at all of them and not at one target. */

struct nvml_users {
	bool wanted, known;
	size_t n;
	struct device_user users[NVML_USERS_MAX];
	uint32_t ids[NVML_USERS_MAX]; // what the driver calls them
};

void nvml_users_forget(struct nvml_users *users);
// From the driver's lists: who, with how much memory and on what part of the GPU.
void nvml_users_list(struct nvml_users *users, const struct nvml_process_set *set, const struct nvml_mig *mig,
	struct pid_match *match);
// From its samples of SM use: how busy each was. Those that no list has are added.
void nvml_users_add_use(struct nvml_users *users, const struct nvml_use *use, struct pid_match *match);

/* The driver's accounts of processes, where accounting mode is on: the largest memory each ever had, kept when it has
 * ended. So a process of the target that came and went between two readings still counts. */

struct nvml_accounts {
	bool on;
	uint64_t opened_us; // wall clock: older accounts of processes that have ended are none of this run's
	int64_t looked_ns;  // VALUE_MISSING: never
	int64_t told_bytes; // the largest memory of the target that a row has told so far
};

struct nvml_accounts_room {
	unsigned int *pids; // owned by the sensor
	size_t n;
};

void nvml_accounts_open(struct nvml_accounts *accounts, struct nvml_board *board);
/* Raises TARGET_MEMORY of this row to the largest account of the target's processes, if no row has told as much yet. Asks
 * the driver once a second, and when a process of the target has ended. */
void nvml_accounts_read(struct nvml_accounts *accounts, struct nvml_board *board, const struct nvml_accounts_room *room,
	struct pid_match *match, int64_t *row);

/* Room for the driver's answers, made once at open and used for one GPU after the other. */

struct nvml_scratch {
	void *records; // owned; n_records of the largest layout
	size_t n_records;
	struct nvml_process_set processes;  // .processes owned
	struct nvml_use_room use;           // .samples owned
	struct nvml_power_room power;       // .samples owned
	struct nvml_accounts_room accounts; // .pids owned
};

// Room for so many samples of SM use and of power as a driver said it may return, and for more processes than there are.
int nvml_scratch_open(struct nvml_scratch *scratch, size_t n_use, size_t n_power); // -ENOMEM
void nvml_scratch_close(struct nvml_scratch *scratch);

/* One GPU behind NVML: what it is, and one reading of everything it tells.
 *
 * Energy and power are read each time. What changes slowly, or costs a driver milliseconds, has a pace of its own, so that
 * fast sampling is not paid for with twenty calls a tick; in the rows between, the last value stands. */

enum nvml_pace { NVML_OFTEN, NVML_SELDOM, NVML_PACES };

struct nvml_gpu {
	struct nvml_board board;
	struct domain *domain; // the sensor's
	struct domain *beside[NVML_SCOPES]; // the sensor's: of the module and of the memory; NULL: there is none
	struct nvml_energy energy;
	struct nvml_use use;
	struct nvml_mig mig;
	struct nvml_accounts accounts;
	struct nvml_owners owners;
	struct nvml_users users;
	unsigned int minor;          // of /dev/nvidia<minor>
	int on_bus;                  // its place in nvml_bus; -1: not found there
	int64_t next_ns[NVML_PACES]; // when the queries of that pace are due
	int64_t held[DEVICE_COUNT];  // the last values of what has a pace
	bool had_target;             // at the last reading
	int64_t retry_ns;            // lost: when to look whether it is back
};

// Fills the domain of a GPU whose handle could be had: name, UUID, memory, limits, and how its energy is told. With
// power_only its energy is left to be integrated from power.
void nvml_gpu_describe(struct nvml_gpu *gpu, bool power_only);
// The domain of the module that the GPU is on, or of its memory; `index` is the module's number.
void nvml_gpu_describe_beside(struct nvml_gpu *gpu, enum nvml_scope scope, int index, struct domain *ret_domain);
// A GPU of which only other figures than energy and power can be read: why, and what can be done.
void nvml_gpu_explain_no_power(struct nvml_gpu *gpu, char *ret_why, size_t size, const char **ret_remedy);
// Rough speed to guess CUDA's order of GPUs: cores times highest clock; 0 unknown.
double nvml_gpu_speed(const struct nvml_gpu *gpu);
// Makes the first reading begin now, not with what the driver still remembers from before.
void nvml_gpu_prime(struct nvml_gpu *gpu, const struct nvml_scratch *scratch);

// One reading into rows that are preset to VALUE_MISSING. What fails stays so. rows: by scope, NULL what is not wanted.
void nvml_gpu_read(struct nvml_gpu *gpu, struct nvml_scratch *scratch, struct pid_match *match,
	const struct sensor_context *context, int64_t *const rows[NVML_SCOPES]);
