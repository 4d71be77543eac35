#include "sensor/nvml_gpu.h"

#include "base/util.h"

#include <math.h>

/* NVIDIA states 5 % of the reading for the power sensors of older boards (manual of nvidia-smi, power draw). Of the energy
 * counter no maker states an error, so none is claimed: error_j is then that of its step and its edges. */
static const double power_error = 0.05;
// A limit of 300 W does not keep peaks of some milliseconds below 300 W.
static const double peak_over_limit = 1.2;
static const uint64_t min_sm_hold_us = 333333, max_sm_hold_us = 1000000; // see holds()

static uint32_t bit(unsigned int query)
{
	return UINT32_C(1) << query;
}

static bool asks(const struct nvml_gpu *gpu, unsigned int query)
{
	return !gpu->lost && (gpu->unsupported & bit(query)) == 0;
}

// Remembers the answers after which asking again is of no use; returns the code.
static int note(struct nvml_gpu *gpu, unsigned int query, int code)
{
	if (code == NVML_GPU_IS_LOST)
		gpu->lost = true;
	if (code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND || code == NVML_VERSION_ARGUMENT ||
		code == NVML_DEPRECATED)
		gpu->unsupported |= bit(query);
	return code;
}

/* What a query is asked with and answers into. Each returns NVML's code and fills the row only on success; a function
 * that this driver's library lacks is like one that this GPU does not support. */
struct query {
	const struct nvml_api *api;
	struct nvml_gpu *gpu;
	struct nvml_scratch *scratch;
	const struct sensor_context *context;
	int64_t *row;
};

static int read_energy(const struct query *q)
{
	uint64_t energy_mj;
	if (q->api->energy_mj == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = q->api->energy_mj(q->gpu->handle, &energy_mj);
	if (code == NVML_SUCCESS && energy_mj <= INT64_MAX / 1000)
		q->row[DEVICE_ENERGY] = (int64_t)energy_mj * 1000;
	return code;
}

static int read_number(int (*get)(nvml_device, unsigned int *), const struct query *q, enum device_metric metric)
{
	unsigned int value;
	if (get == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = get(q->gpu->handle, &value);
	if (code == NVML_SUCCESS)
		q->row[metric] = value;
	return code;
}

static int read_power(const struct query *q)
{
	return read_number(q->api->power_mw, q, DEVICE_POWER);
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
	int code = q->api->utilization(q->gpu->handle, &utilization);
	if (code != NVML_SUCCESS)
		return code;
	q->row[DEVICE_UTILIZATION] = utilization.gpu_percent;
	q->row[DEVICE_MEMORY_UTILIZATION] = utilization.memory_percent;
	return code;
}

// The forms with one more argument that says which sensor or clock.
static int read_number_of(int (*get)(nvml_device, int, unsigned int *), int which, const struct query *q,
	enum device_metric metric)
{
	unsigned int value;
	if (get == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = get(q->gpu->handle, which, &value);
	if (code == NVML_SUCCESS)
		q->row[metric] = value;
	return code;
}

static int read_temperature(const struct query *q)
{
	return read_number_of(q->api->temperature_c, 0, q, DEVICE_TEMPERATURE);
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
	int code = q->api->throttle_bits(q->gpu->handle, &bits);
	if (code == NVML_SUCCESS && bits <= INT64_MAX)
		q->row[DEVICE_THROTTLE_REASONS] = (int64_t)bits;
	return code;
}

struct memory {
	uint64_t total_bytes, used_bytes; // both without what the driver reserves, where it says so
};

static int get_memory_v2(const struct nvml_api *api, nvml_device handle, struct memory *ret_memory)
{
	struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2_VERSION};
	if (api->memory_v2 == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = api->memory_v2(handle, &memory);
	if (code != NVML_SUCCESS)
		return code;
	bool split = memory.reserved_bytes <= memory.total_bytes;
	ret_memory->total_bytes = memory.total_bytes - (split ? memory.reserved_bytes : 0);
	ret_memory->used_bytes = memory.used_bytes;
	return code;
}

static int get_memory_v1(const struct nvml_api *api, nvml_device handle, struct memory *ret_memory)
{
	struct nvml_memory_v1 memory;
	if (api->memory_v1 == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = api->memory_v1(handle, &memory);
	if (code != NVML_SUCCESS)
		return code;
	*ret_memory = (struct memory){memory.total_bytes, memory.used_bytes};
	return code;
}

/* Since R510 the first call counts the driver's own memory among the used, so the second, which came with that driver,
 * is preferred; before R510 the reserved part was hidden in a smaller total. */
static int get_memory(const struct nvml_api *api, struct nvml_gpu *gpu, struct memory *ret_memory)
{
	if (asks(gpu, NVML_QUERY_MEMORY_V2)) {
		int code = note(gpu, NVML_QUERY_MEMORY_V2, get_memory_v2(api, gpu->handle, ret_memory));
		if (asks(gpu, NVML_QUERY_MEMORY_V2))
			return code;
	}
	if (!asks(gpu, NVML_QUERY_MEMORY_V1))
		return NVML_NOT_SUPPORTED;
	return note(gpu, NVML_QUERY_MEMORY_V1, get_memory_v1(api, gpu->handle, ret_memory));
}

static void read_memory(const struct query *q)
{
	struct memory memory;
	if (get_memory(q->api, q->gpu, &memory) == NVML_SUCCESS && memory.used_bytes <= INT64_MAX)
		q->row[DEVICE_MEMORY_USED] = (int64_t)memory.used_bytes;
}

static int list_processes(const struct query *q, const struct nvml_process_call *call)
{
	unsigned int count = (unsigned int)q->scratch->n_records;
	if (call->list == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = call->list(q->gpu->handle, &count, q->scratch->records);
	if (code != NVML_SUCCESS)
		return code;
	if (count > q->scratch->n_records)
		return NVML_INSUFFICIENT_SIZE;
	bool fits = nvml_process_set_add(&q->scratch->processes, q->scratch->records, call->record_size, count);
	return fits ? code : NVML_INSUFFICIENT_SIZE;
}

/* The sums need all lists there are: with one of them failing this time, nothing is filled. Without the compute list,
 * processes are unknown; the graphics and MPS lists may be missing. */
static void read_processes(const struct query *q)
{
	q->scratch->processes.n = 0;
	for (unsigned int kind = 0; kind < NVML_PROCESS_KINDS; kind++) {
		unsigned int query = NVML_QUERY_PROCESSES + kind;
		if (!asks(q->gpu, query))
			continue;
		int code = note(q->gpu, query, list_processes(q, &q->api->processes[kind]));
		if (code != NVML_SUCCESS && asks(q->gpu, query))
			return;
	}
	if (asks(q->gpu, NVML_QUERY_PROCESSES + NVML_COMPUTE))
		nvml_process_set_sum(&q->scratch->processes, q->context, q->row);
}

static int get_samples(const struct query *q, unsigned int *ret_count)
{
	*ret_count = (unsigned int)q->scratch->n_samples;
	if (q->api->sm_samples == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = q->api->sm_samples(q->gpu->handle, q->scratch->samples, ret_count, q->gpu->sm_seen_us);
	if (code == NVML_SUCCESS && *ret_count > q->scratch->n_samples)
		return NVML_INSUFFICIENT_SIZE;
	return code;
}

static void note_fresh(struct nvml_gpu *gpu, uint64_t newest_us, int64_t t_ns)
{
	uint64_t spacing_us = newest_us - gpu->sm_seen_us;
	if (gpu->sm_seen_us != 0 && (gpu->sm_spacing_us == 0 || spacing_us < gpu->sm_spacing_us))
		gpu->sm_spacing_us = spacing_us;
	gpu->sm_seen_us = newest_us;
	gpu->sm_fresh_ns = t_ns;
}

/* "Nothing newer" means idle, or only that the driver, which samples every 1/6 to 1 s, has not sampled since we asked
 * last. So the last answer holds for two of its periods as seen here, within those bounds, and is 0 from then on. */
static bool holds(const struct nvml_gpu *gpu, int64_t t_ns)
{
	uint64_t hold_us = gpu->sm_spacing_us * 2;
	if (hold_us == 0 || hold_us > max_sm_hold_us)
		hold_us = max_sm_hold_us;
	if (hold_us < min_sm_hold_us)
		hold_us = min_sm_hold_us;
	return gpu->sm_fresh_ns != 0 && t_ns - gpu->sm_fresh_ns < (int64_t)hold_us * 1000;
}

static int read_sm_samples(const struct query *q)
{
	struct nvml_gpu *gpu = q->gpu;
	struct nvml_sm_use use;
	unsigned int count;
	int code = get_samples(q, &count);
	if (code != NVML_SUCCESS && code != NVML_NOT_FOUND)
		return code;
	if (code == NVML_NOT_FOUND)
		count = 0;
	uint64_t newest_us = nvml_sm_sum(q->scratch->samples, count, gpu->sm_seen_us, q->context, &use);
	if (newest_us > gpu->sm_seen_us) {
		note_fresh(gpu, newest_us, q->context->t_ns);
		gpu->sm_use = use;
	} else if (!holds(gpu, q->context->t_ns)) {
		gpu->sm_use = (struct nvml_sm_use){0};
	}
	q->row[DEVICE_OTHERS_UTILIZATION] = llround(gpu->sm_use.others_percent);
	if (q->context->main_pid != 0)
		q->row[DEVICE_TARGET_UTILIZATION] = llround(gpu->sm_use.target_percent);
	return NVML_SUCCESS;
}

// Energy and power first: they are the ones whose time must be the sample's.
static const struct {
	enum nvml_query query;
	int (*read)(const struct query *);
} queries[] = {
	{NVML_QUERY_ENERGY, read_energy},
	{NVML_QUERY_POWER, read_power},
	{NVML_QUERY_POWER_CAP, read_power_cap},
	{NVML_QUERY_UTILIZATION, read_utilization},
	{NVML_QUERY_TEMPERATURE, read_temperature},
	{NVML_QUERY_SM_CLOCK, read_sm_clock},
	{NVML_QUERY_MEMORY_CLOCK, read_memory_clock},
	{NVML_QUERY_THROTTLE, read_throttle},
	{NVML_QUERY_SM_SAMPLES, read_sm_samples},
};

void nvml_gpu_read(const struct nvml_api *api, struct nvml_gpu *gpu, struct nvml_scratch *scratch,
	const struct sensor_context *context, int64_t *row)
{
	struct query q = {api, gpu, scratch, context, row};
	for (size_t i = 0; i < ARRAY_SIZE(queries); i++) {
		if (asks(gpu, queries[i].query))
			note(gpu, queries[i].query, queries[i].read(&q));
	}
	read_memory(&q);
	read_processes(&q);
}

static void get_text(int (*get)(nvml_device, char *, unsigned int), nvml_device handle, char *ret_text, size_t size)
{
	char text[NVML_TEXT_MAX] = "";
	if (get == NULL || get(handle, text, sizeof(text)) != NVML_SUCCESS)
		return;
	text[sizeof(text) - 1] = '\0';
	text_copy(ret_text, size, text);
}

// 0, for the default of all GPUs, where the driver does not say.
static double get_max_power_w(const struct nvml_api *api, nvml_device handle)
{
	unsigned int min_mw, max_mw;
	if (api->limit_range_mw == NULL || api->limit_range_mw(handle, &min_mw, &max_mw) != NVML_SUCCESS)
		return 0;
	return max_mw / 1000.0 * peak_over_limit;
}

/* Whether the board counts energy can't be told from its name: all since Volta should, some do not. Only an answer
 * decides; a counter that fails now for another reason is not relied on either. */
static bool counts_energy(const struct nvml_api *api, struct nvml_gpu *gpu)
{
	int64_t row[DEVICE_COUNT];
	row[DEVICE_ENERGY] = VALUE_MISSING;
	struct query q = {.api = api, .gpu = gpu, .row = row};
	note(gpu, NVML_QUERY_ENERGY, read_energy(&q));
	if (value_ok(row[DEVICE_ENERGY]))
		return true;
	gpu->unsupported |= bit(NVML_QUERY_ENERGY);
	return false;
}

void nvml_gpu_describe(const struct nvml_api *api, struct nvml_gpu *gpu, struct domain *domain)
{
	struct memory memory;
	get_text(api->name, gpu->handle, domain->device, sizeof(domain->device));
	get_text(api->uuid, gpu->handle, domain->uuid, sizeof(domain->uuid));
	domain->has_energy = counts_energy(api, gpu);
	domain->provenance = domain->has_energy ? PROVENANCE_MEASURED : PROVENANCE_DERIVED;
	domain->resolution_uj = domain->has_energy ? 1000 : 0;
	domain->relative_error = domain->has_energy ? 0 : power_error;
	domain->max_power_w = get_max_power_w(api, gpu->handle);
	if (get_memory(api, gpu, &memory) == NVML_SUCCESS && memory.total_bytes <= INT64_MAX)
		domain->memory_total_bytes = memory.total_bytes;
}

double nvml_gpu_speed(const struct nvml_api *api, const struct nvml_gpu *gpu)
{
	unsigned int cores, clock_mhz;
	if (gpu->handle == NULL || api->cores == NULL || api->max_clock_mhz == NULL)
		return 0;
	if (api->cores(gpu->handle, &cores) != NVML_SUCCESS ||
		api->max_clock_mhz(gpu->handle, NVML_CLOCK_SM, &clock_mhz) != NVML_SUCCESS)
		return 0;
	return (double)cores * clock_mhz;
}

size_t nvml_gpu_sample_room(const struct nvml_api *api, struct nvml_gpu *gpu)
{
	unsigned int count = 0;
	if (api->sm_samples == NULL || !asks(gpu, NVML_QUERY_SM_SAMPLES))
		return 0;
	int code = note(gpu, NVML_QUERY_SM_SAMPLES, api->sm_samples(gpu->handle, NULL, &count, 0));
	return code == NVML_INSUFFICIENT_SIZE ? count : 0;
}

void nvml_gpu_prime(const struct nvml_api *api, struct nvml_gpu *gpu, struct nvml_scratch *scratch)
{
	const struct sensor_context nobody = {0};
	struct query q = {.api = api, .gpu = gpu, .scratch = scratch, .context = &nobody};
	struct nvml_sm_use before;
	unsigned int count;
	if (!asks(gpu, NVML_QUERY_SM_SAMPLES))
		return;
	if (note(gpu, NVML_QUERY_SM_SAMPLES, get_samples(&q, &count)) == NVML_SUCCESS)
		gpu->sm_seen_us = nvml_sm_sum(scratch->samples, count, 0, &nobody, &before);
}
