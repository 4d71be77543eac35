#include "sensor/gpu/nvml.h"

#include "base/util.h"

static const uint64_t min_hold_us = 333333, max_hold_us = 1000000; // see holds()
static const uint64_t max_ahead_us = 10000000; // clocks are adjusted occasionally, but by less than this

/* ---- sums of samples ---- */

static bool is_sample(const struct nvml_process_sample *sample, uint64_t last_seen_us)
{
	return sample->pid != 0 && sample->sm_percent <= 100 && sample->timestamp_us > last_seen_us;
}

static size_t drop_invalid(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		if (is_sample(&samples[i], last_seen_us))
			samples[kept++] = samples[i];
	}
	for (size_t i = kept; i < n; i++) // else a second pass over the samples would count some twice
		samples[i].pid = 0;
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

/* Mean of the first process's samples, weighted by the duration of each; *ret_count is their number. On the very first query
 * (last_seen_us == 0) the start of the first sample is unknown: it gets the duration of the second. */
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
		if (samples[i].timestamp_us != since_us) // else another sample with the same time stamp: same weight
			span_us = (double)(samples[i].timestamp_us - since_us);
		weighted += samples[i].sm_percent * span_us;
		weight_us += span_us;
		since_us = samples[i].timestamp_us;
	}
	return weighted / weight_us;
}

uint64_t nvml_sm_sum(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us, struct pid_match *match,
	struct nvml_sm_use *ret_use)
{
	enum pid_method method;
	pid_t pid;
	uint64_t newest_us = last_seen_us;
	*ret_use = (struct nvml_sm_use){0};
	n = drop_invalid(samples, n, last_seen_us);
	sort_samples(samples, n);
	for (size_t i = 0; i < n; i++)
		pid_match_add_seen(match, samples[i].pid);
	for (size_t i = 0, count; i < n; i += count) {
		double percent = mean_of_first(&samples[i], n - i, last_seen_us, &count);
		ret_use->percent[pid_match_side(match, samples[i].pid, &method, &pid)] += percent;
		if (samples[i + count - 1].timestamp_us > newest_us)
			newest_us = samples[i + count - 1].timestamp_us;
	}
	return newest_us;
}

size_t nvml_sm_of_pids(struct nvml_process_sample *samples, size_t n, uint64_t last_seen_us, struct nvml_pid_use *pids,
	size_t buffer)
{
	size_t n_pids = 0;
	n = drop_invalid(samples, n, last_seen_us);
	sort_samples(samples, n);
	for (size_t i = 0, count; i < n && n_pids < buffer; i += count) {
		pids[n_pids].pid = samples[i].pid;
		pids[n_pids++].percent = mean_of_first(&samples[i], n - i, last_seen_us, &count);
	}
	return n_pids;
}

/* ---- queries ---- */

// A time stamp far in the future, used as the newest, would hide all later samples for that long.
static unsigned int drop_future(const struct wattle_env *env, struct nvml_process_sample *samples, unsigned int n)
{
	int64_t wall_ns = env_wall_ns(env);
	if (wall_ns <= 0)
		return n;
	uint64_t latest_us = (uint64_t)wall_ns / 1000 + max_ahead_us;
	unsigned int kept = 0;
	for (unsigned int i = 0; i < n; i++) {
		if (samples[i].timestamp_us <= latest_us)
			samples[kept++] = samples[i];
	}
	return kept;
}

static int get_samples(const struct nvml_use *use, const struct nvml_board *board, const struct nvml_use_buffer *buffer,
	unsigned int *ret_count)
{
	*ret_count = (unsigned int)buffer->n;
	if (board->api->sm_samples == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = board->api->sm_samples(board->handle, buffer->samples, ret_count, use->seen_us);
	if (code == NVML_SUCCESS && *ret_count > buffer->n)
		return NVML_INSUFFICIENT_SIZE;
	if (code == NVML_SUCCESS)
		*ret_count = drop_future(board->env, buffer->samples, *ret_count);
	return code;
}

static void note_fresh(struct nvml_use *use, uint64_t newest_us, int64_t t_ns)
{
	uint64_t spacing_us = newest_us - use->seen_us;
	if (use->seen_us != 0 && (use->spacing_us == 0 || spacing_us < use->spacing_us))
		use->spacing_us = spacing_us;
	use->seen_us = newest_us;
	use->fresh_ns = t_ns;
	use->awaits_first = false;
}

/* "No newer sample" means idle, or only that the driver, which samples every 1/6 to 1 s, has not sampled since the last
 * query. The last answer therefore holds for two observed sampling periods, within the bounds above, and is 0 afterwards. */
static bool holds(const struct nvml_use *use, int64_t t_ns)
{
	uint64_t hold_us = use->spacing_us * 2;
	if (hold_us == 0 || hold_us > max_hold_us)
		hold_us = max_hold_us;
	if (hold_us < min_hold_us)
		hold_us = min_hold_us;
	return use->fresh_ns != 0 && t_ns - use->fresh_ns < (int64_t)hold_us * 1000;
}

static void put_percents(const struct nvml_sm_use *last, enum pid_side rest, bool has_target, int64_t *row)
{
	double percent[PID_UNKNOWN + 1];
	memcpy(percent, last->percent, sizeof(percent));
	if (percent[PID_UNKNOWN] > 0 && rest == PID_UNKNOWN)
		return;
	percent[rest] += rest != PID_UNKNOWN ? percent[PID_UNKNOWN] : 0;
	row[DEVICE_OTHERS_UTILIZATION] = llround(percent[PID_OTHER]);
	if (has_target)
		row[DEVICE_TARGET_UTILIZATION] = llround(percent[PID_TARGET]);
}

int nvml_use_read(struct nvml_use *use, struct nvml_board *board, const struct nvml_use_buffer *buffer,
	struct pid_match *match, const struct nvml_owners *owners, int64_t *row)
{
	struct nvml_sm_use now;
	unsigned int count;
	int code = get_samples(use, board, buffer, &count);
	if (code != NVML_SUCCESS && code != NVML_NOT_FOUND)
		return code;
	if (code == NVML_NOT_FOUND)
		count = 0;
	uint64_t newest_us = nvml_sm_sum(buffer->samples, count, use->seen_us, match, &now);
	if (newest_us > use->seen_us) {
		use->n_pids = nvml_sm_of_pids(buffer->samples, count, use->seen_us, use->pids, ARRAY_SIZE(use->pids));
		note_fresh(use, newest_us, match->t_ns);
		use->last = now;
	} else if (!holds(use, match->t_ns)) {
		use->last = (struct nvml_sm_use){0};
		use->n_pids = 0;
		use->awaits_first = false;
	}
	if (use->awaits_first)
		return NVML_SUCCESS;
	put_percents(&use->last, owners->rest, match->main_pid != 0, row);
	return NVML_SUCCESS;
}

size_t nvml_use_buffer_size(struct nvml_board *board)
{
	unsigned int count = 0;
	if (board->api->sm_samples == NULL || !nvml_queries_enabled(board, NVML_QUERY_SM_SAMPLES))
		return 0;
	int code = board->api->sm_samples(board->handle, NULL, &count, 0);
	return nvml_note(board, NVML_QUERY_SM_SAMPLES, code) == NVML_INSUFFICIENT_SIZE ? count : 0;
}

void nvml_use_prime(struct nvml_use *use, struct nvml_board *board, const struct nvml_use_buffer *buffer)
{
	unsigned int count;
	if (!nvml_queries_enabled(board, NVML_QUERY_SM_SAMPLES))
		return;
	if (nvml_note(board, NVML_QUERY_SM_SAMPLES, get_samples(use, board, buffer, &count)) != NVML_SUCCESS)
		return;
	for (size_t i = 0; i < count; i++)
		if (is_sample(&buffer->samples[i], use->seen_us))
			use->seen_us = buffer->samples[i].timestamp_us;
	use->awaits_first = use->seen_us != 0;
	use->fresh_ns = use->awaits_first ? env_now_ns(board->env) : 0;
}

void nvml_users_clear(struct nvml_users *users)
{
	users->n = 0;
	users->known = false;
}

static struct device_user *add(struct nvml_users *users, uint32_t id, struct pid_match *match)
{
	if (users->n == NVML_USERS_MAX)
		return NULL;
	users->ids[users->n] = id;
	users->users[users->n] = (struct device_user){
		.pid = pid_match_local(match, id),
		.busy_percent = (double)NAN,
		.memory_bytes = VALUE_MISSING,
		.instance_percent = (double)NAN,
	};
	return &users->users[users->n++];
}

void nvml_users_list(struct nvml_users *users, const struct nvml_process_set *set, const struct nvml_mig *mig,
	struct pid_match *match)
{
	if (!users->wanted)
		return;
	nvml_users_clear(users);
	users->known = true;
	for (size_t i = 0; i < set->n; i++) {
		const struct nvml_process *process = &set->processes[i];
		struct device_user *user = add(users, process->pid, match);
		if (user == NULL)
			return;
		if (process->used_bytes <= INT64_MAX)
			user->memory_bytes = (int64_t)process->used_bytes;
		user->instance_percent = nvml_mig_part_of(mig, set, process) * 100;
	}
}

static struct device_user *find(struct nvml_users *users, uint32_t id)
{
	for (size_t i = 0; i < users->n; i++)
		if (users->ids[i] == id)
			return &users->users[i];
	return NULL;
}

void nvml_users_add_use(struct nvml_users *users, const struct nvml_use *use, struct pid_match *match)
{
	if (!users->wanted || use->awaits_first)
		return;
	for (size_t i = 0; i < users->n; i++) // the driver has no sample of idle processes
		users->users[i].busy_percent = 0;
	for (size_t i = 0; i < use->n_pids; i++) {
		struct device_user *user = find(users, use->pids[i].pid);
		if (user == NULL)
			user = add(users, use->pids[i].pid, match);
		if (user != NULL)
			user->busy_percent = use->pids[i].percent;
	}
}
