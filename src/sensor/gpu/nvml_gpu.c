#include "sensor/gpu/nvml.h"

#include "base/util.h"

#include <errno.h>

static int get_memory_v2(const struct nvml_board *board, struct nvml_memory *ret_memory)
{
	struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2_VERSION};
	if (board->api->memory_v2 == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = board->api->memory_v2(board->handle, &memory);
	if (code != NVML_SUCCESS)
		return code;
	bool split = memory.reserved_bytes <= memory.total_bytes;
	ret_memory->total_bytes = memory.total_bytes - (split ? memory.reserved_bytes : 0);
	ret_memory->used_bytes = memory.used_bytes;
	return code;
}

static int get_memory_v1(const struct nvml_board *board, struct nvml_memory *ret_memory)
{
	struct nvml_memory_v1 memory;
	if (board->api->memory_v1 == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = board->api->memory_v1(board->handle, &memory);
	if (code != NVML_SUCCESS)
		return code;
	*ret_memory = (struct nvml_memory){memory.total_bytes, memory.used_bytes};
	return code;
}

/* Since R510 the first call includes the driver's own memory in the used memory, so the second call, introduced with R510, is
 * preferred. Before R510 the total excluded the reserved part. */
int nvml_memory_read(struct nvml_board *board, struct nvml_memory *ret_memory)
{
	if (nvml_queries_enabled(board, NVML_QUERY_MEMORY_V2)) {
		int code = nvml_note(board, NVML_QUERY_MEMORY_V2, get_memory_v2(board, ret_memory));
		if (nvml_queries_enabled(board, NVML_QUERY_MEMORY_V2))
			return code;
	}
	if (!nvml_queries_enabled(board, NVML_QUERY_MEMORY_V1))
		return NVML_NOT_SUPPORTED;
	return nvml_note(board, NVML_QUERY_MEMORY_V1, get_memory_v1(board, ret_memory));
}

// Capacities of the process and sample lists. They are fixed at open and therefore generous.
enum { RECORDS = 4096, SAMPLES_MIN = 1024, SAMPLES_MAX = 65536 };

// Twice the number the driver announces: the list may grow.
static size_t with_margin(size_t asked)
{
	size_t n = asked < SAMPLES_MAX / 2 ? asked * 2 : SAMPLES_MAX;
	return n > SAMPLES_MIN ? n : SAMPLES_MIN;
}

int nvml_scratch_open(struct nvml_scratch *scratch, size_t n_use, size_t n_power)
{
	*scratch = (struct nvml_scratch){
		.records = calloc_array(RECORDS, sizeof(struct nvml_process_r535)),
		.n_records = RECORDS,
		.processes = {.processes = calloc_array(RECORDS, sizeof(struct nvml_process)), .capacity = RECORDS},
		.use = {.samples = calloc_array(with_margin(n_use), sizeof(struct nvml_process_sample)),
			.n = with_margin(n_use)},
		.power = {.samples = calloc_array(with_margin(n_power), sizeof(struct nvml_sample)),
			.n = with_margin(n_power)},
		.accounts = {.pids = calloc_array(RECORDS, sizeof(unsigned int)), .n = RECORDS},
	};
	bool all = scratch->records != NULL && scratch->processes.processes != NULL && scratch->use.samples != NULL &&
		scratch->power.samples != NULL && scratch->accounts.pids != NULL;
	return all ? 0 : -ENOMEM;
}

void nvml_scratch_close(struct nvml_scratch *scratch)
{
	free(scratch->records);
	free(scratch->processes.processes);
	free(scratch->use.samples);
	free(scratch->power.samples);
	free(scratch->accounts.pids);
	*scratch = (struct nvml_scratch){0};
}

// The analysis attributes energy in windows of 100 ms, and drivers sample SM utilization no faster.
static const int64_t rate_period_ns[NVML_RATES] = {[NVML_FAST] = 100 * NS_PER_MS, [NVML_SLOW] = NS_PER_S};
// A board that fell off the bus usually needs a reboot; one call a second detects its return.
static const int64_t retry_ns = NS_PER_S;

/* Inputs and outputs of a query. Each query returns NVML's code and fills the row only on success. A function missing from
 * this driver's library is treated as unsupported by the GPU. */
struct query {
	const struct nvml_api *api;
	struct nvml_gpu *gpu;
	int64_t *row;
};

static int read_number(int (*get)(nvml_device, unsigned int *), const struct query *q, enum device_metric metric)
{
	unsigned int value;
	if (get == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = get(q->gpu->board.handle, &value);
	if (code == NVML_SUCCESS)
		q->row[metric] = value;
	return code;
}

static int read_power_cap(const struct query *q)
{
	return read_number(q->api->enforced_limit_mw, q, DEVICE_POWER_CAP);
}

static int read_utilization(const struct query *q)
{
	struct nvml_utilization utilization;
	if (q->api->utilization == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = q->api->utilization(q->gpu->board.handle, &utilization);
	if (code != NVML_SUCCESS)
		return code;
	// Drivers write arbitrary numbers where they have no value.
	if (utilization.gpu_percent <= 100)
		q->row[DEVICE_UTILIZATION] = utilization.gpu_percent;
	if (utilization.memory_percent <= 100)
		q->row[DEVICE_MEMORY_UTILIZATION] = utilization.memory_percent;
	return code;
}

// Query functions with an additional argument that selects the sensor or clock.
static int read_number_of(int (*get)(nvml_device, int, unsigned int *), int which, const struct query *q,
	enum device_metric metric)
{
	unsigned int value;
	if (get == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = get(q->gpu->board.handle, which, &value);
	if (code == NVML_SUCCESS)
		q->row[metric] = value;
	return code;
}

static int read_temperature(const struct query *q)
{
	return read_number_of(q->api->temperature_c, 0, q, DEVICE_TEMPERATURE);
}

// Only boards with HBM have it, and no powered board is at 0 °C.
static int read_memory_temperature(const struct query *q)
{
	struct nvml_field field = {.id = NVML_FIELD_MEMORY_TEMPERATURE};
	uint64_t celsius;
	if (q->api->fields == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = q->api->fields(q->gpu->board.handle, 1, &field);
	code = code == NVML_SUCCESS ? field.code : code;
	if (code == NVML_INVALID_ARGUMENT) // from a driver that does not know the field
		return NVML_NOT_SUPPORTED;
	if (code == NVML_SUCCESS && nvml_value_u64(&field.value, field.value_type, &celsius) && celsius > 0 &&
		celsius < 200)
		q->row[DEVICE_MEMORY_TEMPERATURE] = (int64_t)celsius;
	return code;
}

static int read_sm_clock(const struct query *q)
{
	return read_number_of(q->api->clock_mhz, NVML_CLOCK_SM, q, DEVICE_SM_CLOCK);
}

static int read_memory_clock(const struct query *q)
{
	return read_number_of(q->api->clock_mhz, NVML_CLOCK_MEMORY, q, DEVICE_MEMORY_CLOCK);
}

static int read_throttle(const struct query *q)
{
	uint64_t bits;
	if (q->api->throttle_bits == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = q->api->throttle_bits(q->gpu->board.handle, &bits);
	if (code == NVML_SUCCESS && bits <= INT64_MAX)
		q->row[DEVICE_THROTTLE_REASONS] = (int64_t)bits;
	return code;
}

/* ---- memory and processes ---- */

// A board that shares the machine's memory returns zeros, which mean unknown.
static void read_memory(struct nvml_gpu *gpu, int64_t *row)
{
	struct nvml_memory memory;
	if (nvml_memory_read(&gpu->board, &memory) == NVML_SUCCESS && memory.used_bytes <= INT64_MAX &&
		memory.total_bytes > 0)
		row[DEVICE_MEMORY_USED] = (int64_t)memory.used_bytes;
}

static int list_processes(const struct nvml_process_call *call, nvml_device handle, uint64_t instance,
	struct nvml_scratch *scratch)
{
	unsigned int count = (unsigned int)scratch->n_records;
	if (call->list == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = call->list(handle, &count, scratch->records);
	if (code != NVML_SUCCESS)
		return code;
	if (count > scratch->n_records)
		return NVML_INSUFFICIENT_SIZE;
	bool fits = nvml_process_set_add(&scratch->processes, scratch->records, call->record_size, count, instance);
	return fits ? code : NVML_INSUFFICIENT_SIZE;
}

/* The sums need all available lists: if one of them fails this time, nothing is known. Without the compute list, processes
 * are unknown; the graphics and MPS lists are optional. */
static bool list_all(struct nvml_gpu *gpu, struct nvml_scratch *scratch)
{
	struct nvml_board *board = &gpu->board;
	scratch->processes.n = 0;
	for (unsigned int kind = 0; kind < NVML_PROCESS_KINDS; kind++) {
		unsigned int query = NVML_QUERY_PROCESSES + kind;
		if (!nvml_queries_enabled(board, query))
			continue;
		int code = list_processes(&board->api->processes[kind], board->handle, NVML_NO_INSTANCE, scratch);
		if (nvml_note(board, query, code) != NVML_SUCCESS && nvml_queries_enabled(board, query))
			return false;
	}
	return nvml_queries_enabled(board, NVML_QUERY_PROCESSES + NVML_COMPUTE);
}

static bool knows_instances(const struct nvml_process_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->processes[i].instance != NVML_NO_INSTANCE)
			return true;
	return false;
}

// Reads the lists of each instance: the board's list may be empty or lack the instance of a process.
static bool list_by_instance(struct nvml_gpu *gpu, struct nvml_scratch *scratch)
{
	bool any = false;
	scratch->processes.n = 0;
	for (size_t i = 0; i < gpu->mig.n; i++)
		for (unsigned int kind = 0; kind < NVML_PROCESS_KINDS; kind++) {
			const struct nvml_instance *instance = &gpu->mig.instances[i];
			int code = list_processes(&gpu->board.api->processes[kind], instance->handle, instance->id,
				scratch);
			any = any || (code == NVML_SUCCESS && kind == NVML_COMPUTE);
			gpu->board.lost = gpu->board.lost || code == NVML_GPU_IS_LOST;
		}
	return any;
}

static void report_method(struct nvml_gpu *gpu, bool has_target)
{
	const char *note = has_target ? pid_method_note(gpu->owners.method) : "";
	if (note[0] != '\0') // keep the note of a method once used: it determined the attribution of part of the run
		text_copy(gpu->domain->note, sizeof(gpu->domain->note), note);
}

static void read_processes(struct nvml_gpu *gpu, struct nvml_scratch *scratch, struct pid_match *match, int64_t *row)
{
	bool has_target = match->main_pid != 0;
	struct nvml_process_set *set = &scratch->processes;
	bool known = list_all(gpu, scratch);
	if (gpu->mig.on && !(known && knows_instances(set))) {
		bool by_instance = list_by_instance(gpu, scratch);
		known = (by_instance && set->n > 0) || list_all(gpu, scratch) || by_instance;
	}
	gpu->owners = (struct nvml_owners){.rest = PID_UNKNOWN};
	nvml_users_clear(&gpu->users);
	if (!known)
		return;
	nvml_process_set_check(set, match, gpu->minor, &gpu->owners);
	nvml_process_set_sum(set, &gpu->owners, has_target, row);
	nvml_mig_put_shares(&gpu->mig, set, &gpu->owners, has_target, row);
	nvml_accounts_read(&gpu->accounts, &gpu->board, &scratch->accounts, match, row);
	nvml_users_list(&gpu->users, set, &gpu->mig, match);
	report_method(gpu, has_target);
}

static void read_use(struct nvml_gpu *gpu, struct nvml_scratch *scratch, struct pid_match *match, int64_t *row)
{
	if (!nvml_queries_enabled(&gpu->board, NVML_QUERY_SM_SAMPLES))
		return;
	int code = nvml_use_read(&gpu->use, &gpu->board, &scratch->use, match, &gpu->owners, row);
	if (nvml_note(&gpu->board, NVML_QUERY_SM_SAMPLES, code) == NVML_SUCCESS)
		nvml_users_add_use(&gpu->users, &gpu->use, match);
}

/* ---- reading ---- */

static const struct {
	enum nvml_query query;
	enum nvml_rate pace;
	enum device_metric metric;
	int (*read)(const struct query *);
} queries[] = {
	{NVML_QUERY_POWER_CAP, NVML_SLOW, DEVICE_POWER_CAP, read_power_cap},
	{NVML_QUERY_UTILIZATION, NVML_FAST, DEVICE_UTILIZATION, read_utilization},
	{NVML_QUERY_TEMPERATURE, NVML_FAST, DEVICE_TEMPERATURE, read_temperature},
	{NVML_QUERY_MEMORY_TEMPERATURE, NVML_FAST, DEVICE_MEMORY_TEMPERATURE, read_memory_temperature},
	{NVML_QUERY_SM_CLOCK, NVML_FAST, DEVICE_SM_CLOCK, read_sm_clock},
	{NVML_QUERY_MEMORY_CLOCK, NVML_FAST, DEVICE_MEMORY_CLOCK, read_memory_clock},
	{NVML_QUERY_THROTTLE, NVML_FAST, DEVICE_THROTTLE_REASONS, read_throttle},
};

// Ticks may come slightly early: nine tenths of the period are enough.
static bool is_due(struct nvml_gpu *gpu, enum nvml_rate pace, const struct sensor_context *context)
{
	if (context->t_ns < gpu->next_ns[pace])
		return false;
	gpu->next_ns[pace] = context->t_ns + rate_period_ns[pace] / 10 * 9;
	return true;
}

static void ask(struct nvml_gpu *gpu, enum nvml_rate pace)
{
	const struct query q = {gpu->board.api, gpu, gpu->held};
	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		if (queries[i].pace != pace)
			continue;
		gpu->held[queries[i].metric] = VALUE_MISSING;
		if (nvml_queries_enabled(&gpu->board, queries[i].query))
			nvml_note(&gpu->board, queries[i].query, queries[i].read(&q));
	}
}

static void forget(struct nvml_gpu *gpu)
{
	for (size_t i = 0; i < DEVICE_COUNT; i++)
		gpu->held[i] = VALUE_MISSING;
	nvml_users_clear(&gpu->users);
}

static void use_fast_rate(struct nvml_gpu *gpu, struct nvml_scratch *scratch, struct pid_match *match)
{
	int64_t power_cap_mw = gpu->held[DEVICE_POWER_CAP];
	forget(gpu);
	gpu->held[DEVICE_POWER_CAP] = power_cap_mw;
	ask(gpu, NVML_FAST);
	read_memory(gpu, gpu->held);
	read_processes(gpu, scratch, match, gpu->held);
	read_use(gpu, scratch, match, gpu->held);
}

// Reads all figures other than energy and power if they are due; else repeats the held values.
static void read_the_rest(struct nvml_gpu *gpu, struct nvml_scratch *scratch, struct pid_match *match,
	const struct sensor_context *context, int64_t *row)
{
	// Values held from before the target's start, or beyond its end, would be attributed to the wrong period.
	bool has_target = context->n_target_pids > 0;
	if (has_target != gpu->had_target)
		gpu->next_ns[NVML_FAST] = 0;
	gpu->had_target = has_target;
	if (is_due(gpu, NVML_FAST, context))
		use_fast_rate(gpu, scratch, match);
	if (is_due(gpu, NVML_SLOW, context))
		ask(gpu, NVML_SLOW);
	for (size_t i = 0; i < DEVICE_COUNT; i++)
		if (value_ok(gpu->held[i]))
			row[i] = gpu->held[i];
}

static void report_lost(struct nvml_gpu *gpu, int64_t t_ns)
{
	static const char note[] = "fell off the bus; its energy up to then is kept";
	gpu->retry_ns = t_ns + retry_ns;
	text_copy(gpu->domain->note, sizeof(gpu->domain->note), note);
	forget(gpu);
	memset(gpu->next_ns, 0, sizeof(gpu->next_ns));
}

static void report_recovered(struct nvml_gpu *gpu)
{
	if (gpu->retry_ns == 0)
		return;
	gpu->retry_ns = 0;
	text_copy(gpu->domain->note, sizeof(gpu->domain->note), "fell off the bus and came back");
}

void nvml_gpu_read(struct nvml_gpu *gpu, struct nvml_scratch *scratch, struct pid_match *match,
	const struct sensor_context *context, int64_t *const rows[NVML_SCOPES])
{
	if (gpu->board.handle == NULL || context->t_ns < gpu->retry_ns)
		return;
	gpu->board.lost = false;
	// Energy comes first because its time must match the sample's.
	nvml_energy_read(&gpu->energy, &gpu->board, &scratch->power, context->t_ns, context->energy_only, rows);
	if (!context->energy_only && !gpu->board.lost)
		read_the_rest(gpu, scratch, match, context, rows[NVML_SCOPE_GPU]);
	if (gpu->board.lost)
		report_lost(gpu, context->t_ns);
	else
		report_recovered(gpu);
}
