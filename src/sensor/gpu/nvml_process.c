#include "sensor/gpu/nvml.h"

#include "base/search.h"
#include "base/util.h"

static bool is_process_before(const void *item, const void *key)
{
	const struct nvml_process *process = item, *wanted = key;
	return process->pid != wanted->pid ? process->pid < wanted->pid : process->instance < wanted->instance;
}

// Returns the index of (pid, instance) in the set, or its insertion index.
static size_t find_slot(const struct nvml_process_set *set, uint32_t pid, uint64_t instance)
{
	const struct nvml_process wanted = {.pid = pid, .instance = instance};
	return search_first(set->processes, set->n, sizeof(wanted), &wanted, is_process_before);
}

// When two lists name one process, only one of them may know its memory.
static uint64_t known_bytes(uint64_t a, uint64_t b)
{
	if (a == NVML_NOT_AVAILABLE)
		return b;
	return b == NVML_NOT_AVAILABLE || a > b ? a : b;
}

static bool add_one(struct nvml_process_set *set, struct nvml_process process)
{
	size_t index = find_slot(set, process.pid, process.instance);
	struct nvml_process *here = &set->processes[index];
	if (index < set->n && here->pid == process.pid && here->instance == process.instance) {
		here->used_bytes = known_bytes(here->used_bytes, process.used_bytes);
		return true;
	}
	if (set->n == set->capacity)
		return false;
	memmove(here + 1, here, (set->n - index) * sizeof(*here));
	*here = process;
	set->n++;
	return true;
}

// All layouts begin alike; the second and later ones include the instances.
static struct nvml_process read_record(const unsigned char *record, size_t record_size, uint64_t instance)
{
	struct nvml_process_v2 wire = {.gpu_instance = UINT32_MAX, .compute_instance = UINT32_MAX};
	memcpy(&wire, record, record_size < sizeof(wire) ? record_size : sizeof(wire));
	uint64_t own = nvml_instance_id(wire.gpu_instance, wire.compute_instance);
	return (struct nvml_process){
		.pid = wire.pid,
		.instance = own != NVML_NO_INSTANCE ? own : instance,
		.used_bytes = wire.used_bytes,
	};
}

bool nvml_process_set_add(struct nvml_process_set *set, const void *records, size_t record_size, size_t count,
	uint64_t instance)
{
	const unsigned char *record = records;
	for (size_t i = 0; i < count; i++, record += record_size) {
		if (!add_one(set, read_record(record, record_size, instance)))
			return false;
	}
	return true;
}

/* ---- classification ---- */

// A process on several instances is one process.
static bool is_again(const struct nvml_process_set *set, size_t i)
{
	return i > 0 && set->processes[i - 1].pid == set->processes[i].pid;
}

static void check_one(struct nvml_process *process, struct pid_match *match, enum pid_method *weakest)
{
	enum pid_method method;
	pid_t pid;
	process->side = pid_match_side(match, process->pid, &method, &pid);
	process->is_main = process->side == PID_TARGET && pid == match->main_pid;
	if (method > *weakest)
		*weakest = method;
}

struct heads { // numbers of processes by pid_match result
	unsigned int sides[PID_UNKNOWN + 1];
};

static void resolve_rest(struct nvml_owners *owners, enum pid_side side, enum pid_method method, unsigned int n_rest)
{
	owners->rest = side;
	owners->method = method;
	if (side == PID_TARGET)
		owners->target += n_rest;
	else
		owners->others += n_rest;
}

static void resolve_presence(struct nvml_owners *owners, enum pid_method method, unsigned int target,
	unsigned int others)
{
	owners->presence_only = true;
	owners->method = method;
	owners->target = target;
	owners->others = others;
}

// Classifies all unknown ids together.
static void check_rest(struct nvml_owners *owners, const struct heads *heads, const struct pid_match *match,
	struct pid_holders holders)
{
	unsigned int rest = heads->sides[PID_UNKNOWN], known = heads->sides[PID_TARGET] + heads->sides[PID_OTHER];
	unsigned int unmet = holders.target > heads->sides[PID_TARGET] ? holders.target - heads->sides[PID_TARGET] : 0;
	if (match->n_recent == 0)
		resolve_rest(owners, PID_OTHER, PID_BY_EQUALITY, rest);
	else if (holders.can_decide && holders.target == 0)
		resolve_rest(owners, PID_OTHER, PID_BY_DESCRIPTORS, rest);
	else if (unmet == rest && holders.others == 0)
		resolve_rest(owners, PID_TARGET, PID_BY_DESCRIPTORS, rest);
	else if (known == 0 && unmet > 0 && rest > unmet)
		resolve_presence(owners, PID_BY_DESCRIPTORS, unmet, rest - unmet);
	else if (known == 0 && holders.others == 0)
		resolve_presence(owners, PID_BY_EXCLUSIVITY, rest, 0);
	else
		*owners = (struct nvml_owners){PID_UNMATCHED, PID_UNKNOWN, true, VALUE_MISSING, VALUE_MISSING};
}

void nvml_process_set_check(struct nvml_process_set *set, struct pid_match *match, unsigned int minor,
	struct nvml_owners *ret_owners)
{
	struct nvml_owners owners = {.rest = PID_UNKNOWN};
	struct heads heads = {0};
	for (size_t i = 0; i < set->n; i++)
		pid_match_add_seen(match, set->processes[i].pid);
	for (size_t i = 0; i < set->n; i++) {
		check_one(&set->processes[i], match, &owners.method);
		heads.sides[set->processes[i].side] += !is_again(set, i);
	}
	owners.target = heads.sides[PID_TARGET];
	owners.others = heads.sides[PID_OTHER];
	if (heads.sides[PID_UNKNOWN] > 0)
		check_rest(&owners, &heads, match, pid_match_holders(match, minor));
	for (size_t i = 0; i < set->n; i++)
		if (set->processes[i].side == PID_UNKNOWN)
			set->processes[i].side = owners.rest;
	*ret_owners = owners;
}

/* ---- sums ---- */

static void add_bytes(int64_t *sum_bytes, uint64_t used_bytes)
{
	if (!value_ok(*sum_bytes))
		return;
	if (used_bytes > INT64_MAX || __builtin_add_overflow(*sum_bytes, (int64_t)used_bytes, sum_bytes))
		*sum_bytes = VALUE_MISSING;
}

static void sum_memory(const struct nvml_process_set *set, const struct nvml_owners *owners, bool has_target,
	int64_t *row)
{
	int64_t sums[PID_UNKNOWN + 1] = {0}, main_bytes = 0;
	for (size_t i = 0; i < set->n; i++) {
		const struct nvml_process *process = &set->processes[i];
		add_bytes(&sums[process->side], process->used_bytes);
		if (process->is_main)
			add_bytes(&main_bytes, process->used_bytes);
	}
	row[DEVICE_OTHERS_MEMORY] = sums[PID_OTHER];
	if (!has_target)
		return;
	// For ids classified only by descriptors, the main process is unknown.
	bool knows_main = owners->method < PID_BY_CGROUP || sums[PID_TARGET] == 0;
	row[DEVICE_MAIN_MEMORY] = knows_main ? main_bytes : VALUE_MISSING;
	row[DEVICE_TARGET_MEMORY] = sums[PID_TARGET];
}

void nvml_process_set_sum(const struct nvml_process_set *set, const struct nvml_owners *owners, bool has_target,
	int64_t *row)
{
	row[DEVICE_OTHERS_PROCESSES] = owners->others;
	if (has_target)
		row[DEVICE_TARGET_PROCESSES] = owners->target;
	if (!owners->presence_only)
		sum_memory(set, owners, has_target, row);
}

static const int64_t scan_period_ns = NS_PER_S;
static const int accounting_on = 1;

void nvml_accounts_open(struct nvml_accounts *accounts, struct nvml_board *board)
{
	const struct nvml_api *api = board->api;
	int mode = 0;
	*accounts = (struct nvml_accounts){.queried_ns = VALUE_MISSING, .reported_bytes = 0};
	if (api->accounting_mode == NULL || api->accounting_pids == NULL || api->account == NULL)
		return;
	if (!nvml_queries_enabled(board, NVML_QUERY_ACCOUNTS) ||
		nvml_note(board, NVML_QUERY_ACCOUNTS, api->accounting_mode(board->handle, &mode)) != NVML_SUCCESS)
		return;
	int64_t wall_ns = env_wall_ns(board->env);
	accounts->on = mode == accounting_on;
	accounts->opened_us = wall_ns > 0 ? (uint64_t)wall_ns / 1000 : 0;
}

// Returns the account of a process; 0 if it is from before this run: pids are reused, and accounts persist.
static int64_t get_max_bytes(const struct nvml_accounts *accounts, struct nvml_board *board, unsigned int pid)
{
	struct nvml_account account = {0};
	int code = board->api->account(board->handle, pid, &account);
	if (code == NVML_GPU_IS_LOST)
		board->lost = true;
	bool is_old = account.is_running == 0 && account.start_us != 0 && account.start_us < accounts->opened_us;
	return code == NVML_SUCCESS && !is_old && account.max_bytes <= INT64_MAX ? (int64_t)account.max_bytes : 0;
}

static bool is_due(const struct nvml_accounts *accounts, const struct pid_match *match)
{
	if (!value_ok(accounts->queried_ns) || match->t_ns - accounts->queried_ns >= scan_period_ns)
		return true;
	return match->ended_ns > accounts->queried_ns;
}

static int64_t find_max_bytes(struct nvml_accounts *accounts, struct nvml_board *board,
	const struct nvml_accounts_buffer *buffer, struct pid_match *match)
{
	unsigned int count = (unsigned int)buffer->n;
	int64_t max_bytes = 0;
	int code = board->api->accounting_pids(board->handle, &count, buffer->pids);
	if (nvml_note(board, NVML_QUERY_ACCOUNTS, code) != NVML_SUCCESS || count > buffer->n)
		return 0;
	for (unsigned int i = 0; i < count && !board->lost; i++) {
		enum pid_method method;
		pid_t pid;
		if (pid_match_side(match, buffer->pids[i], &method, &pid) != PID_TARGET)
			continue;
		int64_t bytes = get_max_bytes(accounts, board, buffer->pids[i]);
		max_bytes = bytes > max_bytes ? bytes : max_bytes;
	}
	return max_bytes;
}

void nvml_accounts_read(struct nvml_accounts *accounts, struct nvml_board *board,
	const struct nvml_accounts_buffer *buffer, struct pid_match *match, int64_t *row)
{
	if (value_ok(row[DEVICE_TARGET_MEMORY]) && row[DEVICE_TARGET_MEMORY] > accounts->reported_bytes)
		accounts->reported_bytes = row[DEVICE_TARGET_MEMORY];
	if (!accounts->on || match->main_pid == 0 || !nvml_queries_enabled(board, NVML_QUERY_ACCOUNTS) ||
		!is_due(accounts, match))
		return;
	accounts->queried_ns = match->t_ns;
	int64_t max_bytes = find_max_bytes(accounts, board, buffer, match);
	if (max_bytes <= accounts->reported_bytes)
		return;
	accounts->reported_bytes = max_bytes;
	row[DEVICE_TARGET_MEMORY] = max_bytes;
}
