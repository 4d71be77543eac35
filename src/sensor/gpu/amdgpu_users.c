#include "sensor/gpu/amdgpu_users.h"

#include "base/util.h"

static bool computes(pid_t pid, const struct kfd_process *processes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (processes[i].pid == pid && pid != 0)
			return true;
	return false;
}

// What the GPU is busy with beside drawing is divided by the compute units that each has; the only one has it all.
static double busy_of(const struct kfd_process *process, const struct kfd_process *processes, size_t n,
	double busy_percent)
{
	double units = 0;
	if (n == 1)
		return busy_percent;
	for (size_t i = 0; i < n; i++)
		units += value_to_double(processes[i].units, 1);
	return units > 0 ? busy_percent * (double)process->units / units : (double)NAN;
}

// Drops those that compute; the sum of what the others draw with.
static size_t keep_drawing(struct device_user *users, size_t n, const struct kfd_process *processes, size_t n_processes,
	double *ret_percent)
{
	size_t kept = 0;
	double percent = 0;
	for (size_t i = 0; i < n; i++) {
		if (computes(users[i].pid, processes, n_processes))
			continue;
		percent += users[i].busy_percent > 0 ? users[i].busy_percent : 0;
		users[kept++] = users[i];
	}
	*ret_percent = percent;
	return kept;
}

static struct device_user make_user(pid_t pid, double busy_percent, int64_t memory_bytes)
{
	return (struct device_user){pid, busy_percent, memory_bytes, (double)NAN};
}

size_t amdgpu_users_merge(struct device_user *users, size_t n, size_t room, const struct kfd_process *processes,
	size_t n_processes, int64_t busy_percent)
{
	double drawing_percent;
	size_t kept = keep_drawing(users, n, processes, n_processes, &drawing_percent);
	double left_percent = value_to_double(busy_percent, 1) - drawing_percent;
	if (left_percent < 0)
		left_percent = 0;
	for (size_t i = 0; i < n_processes && kept < room; i++)
		users[kept++] = make_user(processes[i].pid, busy_of(&processes[i], processes, n_processes, left_percent),
			processes[i].bytes);
	// Processes of other users are in neither list, unless we are root.
	if (n_processes == 0 && left_percent > 0 && kept < room)
		users[kept++] = make_user(0, left_percent, VALUE_MISSING);
	return kept;
}
