#include "sensor/gpu/nvml.h"

#include "base/util.h"

/* Number of slices into which the SMs of a board are divided: seven, or four on the A30 and similar boards. The driver
 * reports the maximum number of instances, which is equal wherever a one-slice instance exists. */
enum { SLICES_USUAL = 7, SLICES_MIN = 4, SLICES_MAX = 8 };

uint32_t nvml_mig_slices_of_name(const char *name)
{
	const char *at = strstr(name, "MIG ");
	if (at == NULL)
		return 0;
	at += 4;
	char *end;
	unsigned long slices = strtoul(at, &end, 10);
	bool fits = end != at && (*end == 'c' || *end == 'g') && end[1] == '.' && slices >= 1 && slices <= SLICES_MAX;
	return fits ? (uint32_t)slices : 0;
}

static uint32_t get_slices(const struct nvml_board *board, const struct nvml_instance *instance)
{
	struct nvml_attributes attributes = {0};
	const struct nvml_api *api = board->api;
	if (api->attributes != NULL && api->attributes(instance->handle, &attributes) == NVML_SUCCESS) {
		// A compute instance may be a part of its GPU instance.
		uint32_t slices = attributes.compute_slices > 0 ? attributes.compute_slices : attributes.gpu_slices;
		if (slices >= 1 && slices <= SLICES_MAX)
			return slices;
	}
	return nvml_mig_slices_of_name(instance->name);
}

static uint64_t get_id(const struct nvml_board *board, nvml_device handle)
{
	unsigned int gpu = UINT32_MAX, compute = UINT32_MAX;
	if (board->api->gpu_instance == NULL || board->api->gpu_instance(handle, &gpu) != NVML_SUCCESS)
		return NVML_NO_INSTANCE;
	if (board->api->compute_instance == NULL || board->api->compute_instance(handle, &compute) != NVML_SUCCESS)
		compute = 0;
	return nvml_instance_id(gpu, compute);
}

static uint64_t get_memory(const struct nvml_board *board, nvml_device handle)
{
	struct nvml_memory_v1 memory = {0};
	if (board->api->memory_v1 == NULL || board->api->memory_v1(handle, &memory) != NVML_SUCCESS)
		return 0;
	return memory.total_bytes;
}

static void get_text(int (*get)(nvml_device, char *, unsigned int), nvml_device handle, char *ret_text)
{
	ret_text[0] = '\0';
	if (get == NULL || get(handle, ret_text, NVML_TEXT_MAX) != NVML_SUCCESS)
		ret_text[0] = '\0';
	ret_text[NVML_TEXT_MAX - 1] = '\0';
}

static void find_instance(struct nvml_mig *mig, const struct nvml_board *board, unsigned int index)
{
	struct nvml_instance *instance = &mig->instances[mig->n];
	*instance = (struct nvml_instance){0};
	if (board->api->mig_by_index(board->handle, index, &instance->handle) != NVML_SUCCESS)
		return;
	get_text(board->api->uuid, instance->handle, instance->uuid);
	get_text(board->api->name, instance->handle, instance->name);
	instance->id = get_id(board, instance->handle);
	instance->memory_bytes = get_memory(board, instance->handle);
	instance->slices = get_slices(board, instance);
	mig->n++;
}

// The MIG mode decides. A library that lacks the call may still support instances.
static bool is_on(const struct nvml_board *board)
{
	unsigned int current = 0, pending;
	if (board->api->mig_mode == NULL)
		return true;
	return board->api->mig_mode(board->handle, &current, &pending) == NVML_SUCCESS && current == 1;
}

static bool share_by_slices(struct nvml_mig *mig, unsigned int max_instances)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < mig->n; i++) {
		if (mig->instances[i].slices == 0)
			return false;
		sum += mig->instances[i].slices;
	}
	bool usable = max_instances >= SLICES_MIN && max_instances <= SLICES_MAX;
	mig->total_slices = usable ? max_instances : SLICES_USUAL;
	if (sum > mig->total_slices)
		mig->total_slices = sum;
	for (size_t i = 0; i < mig->n; i++)
		mig->instances[i].share = (double)mig->instances[i].slices / mig->total_slices;
	return true;
}

// Without slice counts: memory is divided into eighths and SMs into sevenths, so this is slightly less exact.
static void share_by_memory(struct nvml_mig *mig, uint64_t memory_bytes)
{
	double sum = 0;
	for (size_t i = 0; i < mig->n; i++)
		sum += (double)mig->instances[i].memory_bytes;
	double whole = sum > (double)memory_bytes ? sum : (double)memory_bytes;
	for (size_t i = 0; i < mig->n && whole > 0; i++)
		mig->instances[i].share = (double)mig->instances[i].memory_bytes / whole;
}

void nvml_mig_open(struct nvml_mig *mig, const struct nvml_board *board, uint64_t memory_bytes)
{
	unsigned int max = 0;
	*mig = (struct nvml_mig){0};
	if (board->api->mig_max == NULL || board->api->mig_by_index == NULL || !is_on(board))
		return;
	if (board->api->mig_max(board->handle, &max) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < max && i < NVML_INSTANCES_MAX; i++)
		find_instance(mig, board, i);
	mig->on = mig->n > 0;
	if (mig->on && !share_by_slices(mig, max))
		share_by_memory(mig, memory_bytes);
}

/* ---- shares ---- */

struct tenants { // processes of one instance
	unsigned int processes[PID_UNKNOWN + 1];
	double bytes[PID_UNKNOWN + 1];
	bool bytes_unknown;
};

// Some drivers omit the compute instance from a record: then the GPU instance decides.
static bool is_on_instance(const struct nvml_process *process, const struct nvml_instance *instance)
{
	if (process->instance == instance->id)
		return true;
	return (uint32_t)process->instance == UINT32_MAX && process->instance >> 32 == instance->id >> 32;
}

static bool has_unassigned(const struct nvml_process_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->processes[i].instance == NVML_NO_INSTANCE)
			return true;
	return false;
}

static struct tenants find_tenants(const struct nvml_process_set *set, const struct nvml_instance *instance)
{
	struct tenants tenants = {0};
	for (size_t i = 0; i < set->n; i++) {
		const struct nvml_process *process = &set->processes[i];
		if (process->instance == NVML_NO_INSTANCE || !is_on_instance(process, instance))
			continue;
		tenants.processes[process->side]++;
		tenants.bytes_unknown = tenants.bytes_unknown || process->used_bytes == NVML_NOT_AVAILABLE;
		tenants.bytes[process->side] += (double)process->used_bytes;
	}
	return tenants;
}

// The target's fraction of an instance that it may share with others.
static double target_part(const struct tenants *tenants)
{
	double target = tenants->processes[PID_TARGET], others = tenants->processes[PID_OTHER];
	double target_bytes = tenants->bytes[PID_TARGET], others_bytes = tenants->bytes[PID_OTHER];
	if (target > 0 && others > 0 && !tenants->bytes_unknown && target_bytes + others_bytes > 0)
		return target_bytes / (target_bytes + others_bytes);
	return target / (target + others);
}

void nvml_mig_put_shares(const struct nvml_mig *mig, const struct nvml_process_set *set,
	const struct nvml_owners *owners, bool has_target, int64_t *row)
{
	double target = 0, others = 0;
	if (has_unassigned(set)) // on an unknown instance: an instance that looks free may be in use
		return;
	for (size_t i = 0; i < mig->n; i++) {
		struct tenants tenants = find_tenants(set, &mig->instances[i]);
		if (owners->method == PID_BY_EXCLUSIVITY) {
			tenants.processes[PID_TARGET] += tenants.processes[PID_UNKNOWN];
			tenants.processes[PID_UNKNOWN] = 0;
		}
		if (tenants.processes[PID_UNKNOWN] > 0)
			return;
		if (tenants.processes[PID_TARGET] + tenants.processes[PID_OTHER] == 0)
			continue;
		double part = target_part(&tenants);
		target += part * mig->instances[i].share;
		others += (1 - part) * mig->instances[i].share;
	}
	if (!mig->on)
		return;
	row[DEVICE_OTHERS_MIG_SHARE] = llround(others * 1e6);
	if (has_target)
		row[DEVICE_TARGET_MIG_SHARE] = llround(target * 1e6);
}

// In proportion to memory if it is known for all processes of the instance, else in equal parts.
static double part_of_instance(const struct tenants *tenants, const struct nvml_process *process)
{
	double bytes = 0, heads = 0;
	for (int side = 0; side <= PID_UNKNOWN; side++) {
		bytes += tenants->bytes[side];
		heads += tenants->processes[side];
	}
	return !tenants->bytes_unknown && bytes > 0 ? (double)process->used_bytes / bytes : 1 / heads;
}

double nvml_mig_part_of(const struct nvml_mig *mig, const struct nvml_process_set *set,
	const struct nvml_process *process)
{
	if (!mig->on || process->instance == NVML_NO_INSTANCE)
		return (double)NAN;
	for (size_t i = 0; i < mig->n; i++) {
		if (!is_on_instance(process, &mig->instances[i]))
			continue;
		struct tenants tenants = find_tenants(set, &mig->instances[i]);
		return part_of_instance(&tenants, process) * mig->instances[i].share;
	}
	return (double)NAN;
}
