#include "sensor/gpu/drm.h"

#include "base/util.h"

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b; // VALUE_MISSING is the smallest value
}

static int64_t rest(int64_t whole, int64_t part)
{
	return value_ok(whole) && value_ok(part) ? larger(whole - part, 0) : VALUE_MISSING;
}

// Returns the target's share in percent; VALUE_MISSING where no source separates it from other processes.
static int64_t target_percent(const struct drm_use *drm, const struct kfd_use *kfd, int64_t busy)
{
	bool computes = kfd != NULL && kfd->target_processes > 0,
	     others_compute = kfd != NULL && kfd->others_processes > 0;
	if (computes && !others_compute)
		return busy; // the target has the only compute process
	if (computes) {
		int64_t units = value_ok(kfd->target_units) && value_ok(kfd->others_units)
			? kfd->target_units + kfd->others_units
			: 0;
		return units > 0 && value_ok(busy) ? (busy * kfd->target_units + units / 2) / units : VALUE_MISSING;
	}
	if (!drm->known || isnan(drm->busy_percent))
		return VALUE_MISSING;
	int64_t percent = (int64_t)(drm->busy_percent + 0.5);
	return percent < 100 ? percent : 100;
}

static void fill_utilization(const struct drm_use *drm, const struct kfd_use *kfd, const struct sensor_context *context,
	int64_t *row)
{
	int64_t busy = row[DEVICE_UTILIZATION];
	if (context->n_target_pids == 0) {
		row[DEVICE_OTHERS_UTILIZATION] = busy;
		return;
	}
	row[DEVICE_TARGET_UTILIZATION] = target_percent(drm, kfd, busy);
	row[DEVICE_OTHERS_UTILIZATION] = rest(busy, row[DEVICE_TARGET_UTILIZATION]);
}

/* KFD lists the memory of compute processes; newer kernels also count it in fdinfo. If there are compute processes, the
 * memory of others is that of KFD's other processes, because the remaining used memory belongs mostly to the driver.
 * Without compute processes, all memory that is not the target's belongs to others. */
static void fill_memory(const struct drm_use *drm, const struct kfd_use *kfd, const struct sensor_context *context,
	int64_t *row)
{
	bool computing = kfd != NULL && kfd->target_processes + kfd->others_processes > 0;
	int64_t target = drm->known ? drm->memory_bytes : VALUE_MISSING;
	int64_t main = drm->known ? drm->main_memory_bytes : VALUE_MISSING;
	if (context->n_target_pids == 0)
		target = main = VALUE_MISSING;
	else if (kfd != NULL) {
		target = larger(target, kfd->target_bytes);
		main = larger(main, kfd->main_bytes);
	}
	row[DEVICE_TARGET_MEMORY] = target;
	row[DEVICE_MAIN_MEMORY] = main;
	if (computing)
		row[DEVICE_OTHERS_MEMORY] = kfd->others_bytes;
	else
		row[DEVICE_OTHERS_MEMORY] = context->n_target_pids > 0 ? rest(row[DEVICE_MEMORY_USED], target)
								       : row[DEVICE_MEMORY_USED];
}

// No source counts the other processes that draw; KFD counts those that compute.
static void fill_processes(const struct drm_use *drm, const struct kfd_use *kfd, const struct sensor_context *context,
	int64_t *row)
{
	bool computing = kfd != NULL && kfd->target_processes + kfd->others_processes > 0;
	if (context->n_target_pids > 0) {
		int64_t target = drm->known ? drm->processes : VALUE_MISSING;
		row[DEVICE_TARGET_PROCESSES] = kfd != NULL ? larger(target, kfd->target_processes) : target;
	}
	if (computing)
		row[DEVICE_OTHERS_PROCESSES] = kfd->others_processes;
}

void amdgpu_use_fill(const struct drm_use *drm, const struct kfd_use *kfd, const struct sensor_context *context,
	int64_t *row)
{
	if (kfd != NULL && kfd->unknown_processes > 0)
		kfd = NULL; // a partial answer is not used
	fill_utilization(drm, kfd, context, row);
	fill_memory(drm, kfd, context, row);
	fill_processes(drm, kfd, context, row);
}

static bool computes(pid_t pid, const struct kfd_process *processes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (processes[i].pid == pid && pid != 0)
			return true;
	return false;
}

// Busy time without graphics is divided in proportion to compute units; a single process gets all of it.
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

// Removes processes that also compute; returns the sum of graphics use of the rest.
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
		users[kept++] = make_user(processes[i].pid,
			busy_of(&processes[i], processes, n_processes, left_percent), processes[i].bytes);
	// Neither list shows processes of other users unless wattle runs as root.
	if (n_processes == 0 && left_percent > 0 && kept < room)
		users[kept++] = make_user(0, left_percent, VALUE_MISSING);
	return kept;
}
