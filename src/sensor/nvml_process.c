#include "sensor/nvml_process.h"

#include "base/util.h"

// Where (pid, instance) stands in the set, or would.
static size_t find_place(const struct nvml_process_set *set, uint32_t pid, uint64_t instance)
{
	size_t low = 0, high = set->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct nvml_process *process = &set->processes[middle];
		if (process->pid < pid || (process->pid == pid && process->instance < instance))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Of two lists that name one process, one may know its memory and the other not.
static uint64_t known_bytes(uint64_t a, uint64_t b)
{
	if (a == NVML_NOT_AVAILABLE)
		return b;
	return b == NVML_NOT_AVAILABLE || a > b ? a : b;
}

static bool add_one(struct nvml_process_set *set, struct nvml_process process)
{
	size_t place = find_place(set, process.pid, process.instance);
	struct nvml_process *here = &set->processes[place];
	if (place < set->n && here->pid == process.pid && here->instance == process.instance) {
		here->used_bytes = known_bytes(here->used_bytes, process.used_bytes);
		return true;
	}
	if (set->n == set->capacity)
		return false;
	memmove(here + 1, here, (set->n - place) * sizeof(*here));
	*here = process;
	set->n++;
	return true;
}

// All layouts begin alike; the instances come with the second.
static struct nvml_process read_record(const unsigned char *record, size_t record_size)
{
	struct nvml_process_v2 wire = {.gpu_instance = UINT32_MAX, .compute_instance = UINT32_MAX};
	memcpy(&wire, record, record_size < sizeof(wire) ? record_size : sizeof(wire));
	return (struct nvml_process){
		.pid = wire.pid,
		.instance = (uint64_t)wire.gpu_instance << 32 | wire.compute_instance,
		.used_bytes = wire.used_bytes,
	};
}

bool nvml_process_set_add(struct nvml_process_set *set, const void *records, size_t record_size, size_t count)
{
	const unsigned char *record = records;
	for (size_t i = 0; i < count; i++, record += record_size) {
		if (!add_one(set, read_record(record, record_size)))
			return false;
	}
	return true;
}

struct side {
	int64_t processes;
	int64_t bytes; // VALUE_MISSING once a part is unknown
};

static void add_bytes(int64_t *sum_bytes, uint64_t used_bytes)
{
	if (!value_ok(*sum_bytes))
		return;
	if (used_bytes > INT64_MAX || __builtin_add_overflow(*sum_bytes, (int64_t)used_bytes, sum_bytes))
		*sum_bytes = VALUE_MISSING;
}

void nvml_process_set_sum(const struct nvml_process_set *set, const struct sensor_context *context, int64_t *row)
{
	struct side target = {0}, others = {0};
	int64_t main_bytes = 0;
	for (size_t i = 0; i < set->n; i++) {
		const struct nvml_process *process = &set->processes[i];
		pid_t pid = (pid_t)process->pid;
		struct side *side = sensor_context_has_pid(context, pid) ? &target : &others;
		side->processes += i == 0 || process[-1].pid != process->pid;
		add_bytes(&side->bytes, process->used_bytes);
		if (pid == context->main_pid)
			add_bytes(&main_bytes, process->used_bytes);
	}
	row[DEVICE_OTHERS_MEMORY] = others.bytes;
	row[DEVICE_OTHERS_PROCESSES] = others.processes;
	if (context->main_pid == 0)
		return;
	row[DEVICE_MAIN_MEMORY] = main_bytes;
	row[DEVICE_TARGET_MEMORY] = target.bytes;
	row[DEVICE_TARGET_PROCESSES] = target.processes;
}

static bool is_sample(const struct nvml_process_sample *sample, uint64_t last_seen_us)
{
	return sample->pid != 0 && sample->sm_percent <= 100 && sample->timestamp_us > last_seen_us;
}

static size_t drop_garbage(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		if (is_sample(&samples[i], last_seen_us))
			samples[kept++] = samples[i];
	}
	return kept;
}

static bool sample_before(const struct nvml_process_sample *a, const struct nvml_process_sample *b)
{
	return a->pid != b->pid ? a->pid < b->pid : a->timestamp_us < b->timestamp_us;
}

// By pid, then time. A Shell sort, because the C library's qsort may allocate.
static void sort_samples(struct nvml_process_sample *samples, size_t n)
{
	for (size_t gap = n / 2; gap > 0; gap /= 2) {
		for (size_t i = gap; i < n; i++) {
			struct nvml_process_sample moved = samples[i];
			size_t k = i;
			for (; k >= gap && sample_before(&moved, &samples[k - gap]); k -= gap)
				samples[k] = samples[k - gap];
			samples[k] = moved;
		}
	}
}

/* Mean of the first process's samples, by the time that each stands for; *ret_count is how many there are. Where the
 * first one begins is unknown on the very first query (last_seen_us == 0): it then counts as long as the second. */
static double mean_of_first(const struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us,
	size_t *ret_count)
{
	size_t count = 1;
	while (count < n && samples[count].pid == samples[0].pid)
		count++;
	*ret_count = count;
	uint64_t since_us = last_seen_us;
	if (since_us == 0 && count > 1)
		since_us = 2 * samples[0].timestamp_us - samples[1].timestamp_us;
	double weighted = 0, weight_us = 0, span_us = 1;
	for (size_t i = 0; i < count; i++) {
		if (samples[i].timestamp_us != since_us) // else a second sample of the same time: it weighs as much
			span_us = (double)(samples[i].timestamp_us - since_us);
		weighted += samples[i].sm_percent * span_us;
		weight_us += span_us;
		since_us = samples[i].timestamp_us;
	}
	return weighted / weight_us;
}

uint64_t nvml_sm_sum(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us,
	const struct sensor_context *context, struct nvml_sm_use *ret_use)
{
	uint64_t newest_us = last_seen_us;
	*ret_use = (struct nvml_sm_use){0};
	n = drop_garbage(samples, n, last_seen_us);
	sort_samples(samples, n);
	for (size_t i = 0, count; i < n; i += count) {
		double percent = mean_of_first(&samples[i], n - i, last_seen_us, &count);
		if (sensor_context_has_pid(context, (pid_t)samples[i].pid))
			ret_use->target_percent += percent;
		else
			ret_use->others_percent += percent;
		if (samples[i + count - 1].timestamp_us > newest_us)
			newest_us = samples[i + count - 1].timestamp_us;
	}
	return newest_us;
}
