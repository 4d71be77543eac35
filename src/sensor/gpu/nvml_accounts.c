#include "sensor/gpu/nvml_accounts.h"

#include "base/util.h"

static const int64_t look_period_ns = NS_PER_S;
static const int accounting_on = 1;

void nvml_accounts_open(struct nvml_accounts *accounts, struct nvml_board *board)
{
	const struct nvml_api *api = board->api;
	int mode = 0;
	*accounts = (struct nvml_accounts){.looked_ns = VALUE_MISSING, .told_bytes = 0};
	if (api->accounting_mode == NULL || api->accounting_pids == NULL || api->account == NULL)
		return;
	if (!nvml_asks(board, NVML_QUERY_ACCOUNTS) ||
		nvml_note(board, NVML_QUERY_ACCOUNTS, api->accounting_mode(board->handle, &mode)) != NVML_SUCCESS)
		return;
	int64_t wall_ns = env_wall_ns(board->env);
	accounts->on = mode == accounting_on;
	accounts->opened_us = wall_ns > 0 ? (uint64_t)wall_ns / 1000 : 0;
}

// The account of a process; 0 if it is not of this run: numbers come again, and accounts stay.
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
	if (!value_ok(accounts->looked_ns) || match->t_ns - accounts->looked_ns >= look_period_ns)
		return true;
	return match->ended_ns > accounts->looked_ns;
}

static int64_t find_max_bytes(struct nvml_accounts *accounts, struct nvml_board *board,
	const struct nvml_accounts_room *room, struct pid_match *match)
{
	unsigned int count = (unsigned int)room->n;
	int64_t max_bytes = 0;
	int code = board->api->accounting_pids(board->handle, &count, room->pids);
	if (nvml_note(board, NVML_QUERY_ACCOUNTS, code) != NVML_SUCCESS || count > room->n)
		return 0;
	for (unsigned int i = 0; i < count && !board->lost; i++) {
		enum pid_method method;
		pid_t pid;
		if (pid_match_side(match, room->pids[i], &method, &pid) != PID_TARGET)
			continue;
		int64_t bytes = get_max_bytes(accounts, board, room->pids[i]);
		max_bytes = bytes > max_bytes ? bytes : max_bytes;
	}
	return max_bytes;
}

void nvml_accounts_read(struct nvml_accounts *accounts, struct nvml_board *board, const struct nvml_accounts_room *room,
	struct pid_match *match, int64_t *row)
{
	if (value_ok(row[DEVICE_TARGET_MEMORY]) && row[DEVICE_TARGET_MEMORY] > accounts->told_bytes)
		accounts->told_bytes = row[DEVICE_TARGET_MEMORY];
	if (!accounts->on || match->main_pid == 0 || !nvml_asks(board, NVML_QUERY_ACCOUNTS) || !is_due(accounts, match))
		return;
	accounts->looked_ns = match->t_ns;
	int64_t max_bytes = find_max_bytes(accounts, board, room, match);
	if (max_bytes <= accounts->told_bytes)
		return;
	accounts->told_bytes = max_bytes;
	row[DEVICE_TARGET_MEMORY] = max_bytes;
}
