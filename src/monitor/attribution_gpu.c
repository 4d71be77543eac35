// GPU part of attribute_power: shares as in reports, and the shares of single processes by the same measure.
#include "monitor/internal.h"

#include "base/nan_sum.h"
#include "base/util.h"

/* ---- measures of users ---- */

static double instance_of(const struct device_user *user)
{
	return user->instance_percent;
}

static double busy_of(const struct device_user *user)
{
	return user->busy_percent;
}

static double memory_of(const struct device_user *user)
{
	return value_to_double(user->memory_bytes, 1);
}

static double presence_of(const struct device_user *user)
{
	return 1;
}

struct users {
	const struct device_user *at;
	size_t n;
	struct process_table *processes;
};

static struct process_row *row_of(const struct users *users, size_t i)
{
	return users->at[i].pid > 0 ? process_table_find(users->processes, users->at[i].pid) : NULL;
}

// Returns NaN if the value of any user is unknown, because the others would otherwise get its share.
static double sum_of(const struct users *users, double (*of)(const struct device_user *), bool target_only)
{
	double sum = users->n > 0 ? 0 : (double)NAN;
	for (size_t i = 0; i < users->n; i++) {
		const struct process_row *row = target_only ? row_of(users, i) : NULL;
		sum += !target_only || (row != NULL && row->now.is_target) ? of(&users->at[i]) : 0 * of(&users->at[i]);
	}
	return sum;
}

/* ---- use by target and others: from the sensor, else summed over users ---- */

static void fill(const int64_t *row, enum device_metric target, enum device_metric others, const struct users *users,
	double (*of)(const struct device_user *), double *ret_target, double *ret_others)
{
	*ret_target = value_ok(row[target]) ? (double)row[target] : 0; // without a target, sensors report only the others
	*ret_others = value_to_double(row[others], 1);
	if (!isnan(*ret_others) || of == NULL)
		return;
	*ret_target = sum_of(users, of, true);
	*ret_others = sum_of(users, of, false) - *ret_target;
}

static struct gpu_use use_of(const int64_t *row, const struct users *users)
{
	struct gpu_use use = {.busy_percent = value_to_double(row[DEVICE_UTILIZATION], 1)};
	struct gpu_part *target = &use.target, *others = &use.others;
	fill(row, DEVICE_TARGET_PROCESSES, DEVICE_OTHERS_PROCESSES, users, NULL, &target->processes,
		&others->processes);
	fill(row, DEVICE_TARGET_UTILIZATION, DEVICE_OTHERS_UTILIZATION, users, busy_of, &target->busy, &others->busy);
	fill(row, DEVICE_TARGET_MEMORY, DEVICE_OTHERS_MEMORY, users, memory_of, &target->memory, &others->memory);
	target->slices = value_to_double(row[DEVICE_TARGET_MIG_SHARE], 1e-6);
	others->slices = value_to_double(row[DEVICE_OTHERS_MIG_SHARE], 1e-6);
	if (isnan(target->slices) && isnan(others->slices)) {
		target->slices = sum_of(users, instance_of, true) / 100;
		others->slices = sum_of(users, instance_of, false) / 100 - target->slices;
	}
	return use;
}

/* ---- single processes ---- */

struct keys {
	double (*of)(const struct device_user *); // NULL: no measure of their shares
	double whole;
};

/* Uses the sensor's total if it is larger than the sum over the list: the list is limited, and users beyond it have a
 * share too. The sums are of whole numbers, so differences of up to 1 are ignored. */
static struct keys keys_by(double (*of)(const struct device_user *), const struct users *users, double target,
	double others)
{
	double sum = sum_of(users, of, false), reported = target + others;
	return (struct keys){of, reported > sum + 1 ? reported : sum};
}

static struct keys keys_of(const struct shares *shares, const struct gpu_use *use, const struct users *users)
{
	switch ((int)shares->method) {
	case METHOD_MIG_SLICES:
		return (struct keys){instance_of, fmax(sum_of(users, instance_of, false), 100)};
	case METHOD_SM_TIME:
		return keys_by(busy_of, users, use->target.busy, use->others.busy);
	case METHOD_GPU_MEMORY:
		return keys_by(memory_of, users, use->target.memory, use->others.memory);
	case METHOD_IDLE: // holding memory on an idle GPU costs no energy
		return (struct keys){presence_of, INFINITY};
	case METHOD_EXCLUSIVE: // with several users, the exclusive one is unknown
		return use->target.processes + use->others.processes == 1 && users->n == 1
			? (struct keys){presence_of, 1}
			: (struct keys){0};
	default:
		return (struct keys){0};
	}
}

static void use_device(struct monitor_process *process, const struct device_user *user)
{
	process->gpu_percent = nan_sum(process->gpu_percent, user->busy_percent);
	if (!value_ok(user->memory_bytes))
		return;
	int64_t held = value_ok(process->gpu_memory_bytes) ? process->gpu_memory_bytes : 0;
	process->gpu_memory_bytes = held + user->memory_bytes;
}

static void give(const struct users *users, const struct keys *keys, const struct monitor_domain *domain,
	double added_j)
{
	for (size_t i = 0; i < users->n; i++) {
		struct process_row *row = row_of(users, i);
		if (row == NULL)
			continue;
		use_device(&row->now, &users->at[i]);
		double part = keys->of != NULL ? keys->of(&users->at[i]) / keys->whole : (double)NAN;
		if (isnan(part) || !domain->in_total)
			continue;
		row->now.gpu_w = nan_sum(row->now.gpu_w, part * domain->power_w);
		row->now.energy_j = nan_sum(row->now.energy_j, part * added_j);
		row->added_j[MONITOR_GPU] += part * added_j;
	}
}

/* ---- a GPU ---- */

void attribute_gpu_begin(struct process_table *processes)
{
	for (size_t i = 0; i < processes->n; i++) {
		struct monitor_process *process = &processes->rows[i].now;
		process->gpu_percent = process->gpu_w = (double)NAN;
		process->gpu_memory_bytes = VALUE_MISSING;
		processes->rows[i].added_j[MONITOR_GPU] = 0;
	}
}

struct shares attribute_gpu(struct domain_table *domains, size_t i, struct process_table *processes)
{
	const size_t device = domains->device_of[i];
	struct users users = {.processes = processes};
	users.at = sensor_set_users(&domains->sensors, device, &users.n);
	users.n = users.at != NULL ? users.n : 0;
	struct gpu_use use = use_of(domains->rows[device], &users);
	struct shares shares = shares_of_gpu(&use);
	struct keys keys = keys_of(&shares, &use, &users);
	give(&users, &keys, &domains->domains[i], (double)domains->tracks[device].added_uj * 1e-6);
	return shares;
}
