#include "sensor/gpu/amdgpu_use.h"

#include "base/util.h"

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b; // VALUE_MISSING is the least of all
}

static int64_t rest(int64_t whole, int64_t part)
{
	return value_ok(whole) && value_ok(part) ? larger(whole - part, 0) : VALUE_MISSING;
}

// The target's part, in percent; VALUE_MISSING where nothing tells it from the others'.
static int64_t target_percent(const struct drm_use *drm, const struct kfd_use *kfd, int64_t busy)
{
	bool computes = kfd != NULL && kfd->target_processes > 0,
	     others_compute = kfd != NULL && kfd->others_processes > 0;
	if (computes && !others_compute)
		return busy; // the only compute process there is
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

/* A process that computes has its memory in KFD's list; newer kernels show the same memory in its fdinfo. The others are
 * KFD's where there are compute processes: what else is in use then is mostly the driver's own. Without any, they are
 * all that is not the target's. */
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

// How many others draw nobody tells; how many compute, KFD does.
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
		kfd = NULL; // half an answer is none
	fill_utilization(drm, kfd, context, row);
	fill_memory(drm, kfd, context, row);
	fill_processes(drm, kfd, context, row);
}
