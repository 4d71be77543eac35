#include "now/divide_gpu.h"

/* ---- the target ---- */

static bool share_of(int64_t target, int64_t others, struct split *ret_split)
{
	double t = value_to_double(target, 1), o = value_to_double(others, 1);
	if (!value_ok(target)) // without a target the sensors tell of the others alone
		t = 0;
	if (!(t + o > 0))
		return false;
	*ret_split = (struct split){.target = t / (t + o)};
	return true;
}

static bool by_slices(const int64_t *row, struct split *ret_split)
{
	double target = value_to_double(row[DEVICE_TARGET_MIG_SHARE], 1e-6);
	double others = value_to_double(row[DEVICE_OTHERS_MIG_SHARE], 1e-6);
	if (isnan(target) && isnan(others))
		return false;
	target = target > 0 ? target : 0;
	others = others > 0 ? others : 0;
	double whole = fmax(target + others, 1);
	*ret_split = (struct split){.target = target / whole, .idle = 1 - (target + others) / whole};
	return true;
}

// Busy with nobody on it is not: somebody is there whom we may not see, as in a container.
static bool is_idle(const int64_t *row)
{
	int64_t target = row[DEVICE_TARGET_PROCESSES], busy_percent = row[DEVICE_UTILIZATION];
	bool nobody = row[DEVICE_OTHERS_PROCESSES] == 0 && (target == 0 || !value_ok(target));
	return busy_percent == 0 || (nobody && !value_ok(busy_percent));
}

// As shares_gpu of the report: slices, SM time, memory, presence. False: the sensor's sums don't tell.
static bool split_by_sums(const int64_t *row, struct split *ret_split)
{
	int64_t target = row[DEVICE_TARGET_PROCESSES], others = row[DEVICE_OTHERS_PROCESSES];
	if (by_slices(row, ret_split) ||
		share_of(row[DEVICE_TARGET_UTILIZATION], row[DEVICE_OTHERS_UTILIZATION], ret_split) ||
		share_of(row[DEVICE_TARGET_MEMORY], row[DEVICE_OTHERS_MEMORY], ret_split))
		return true;
	bool absent = others > 0 && (target == 0 || !value_ok(target)), alone = target > 0 && others == 0;
	*ret_split = (struct split){.target = alone ? 1 : 0};
	return absent || alone;
}

/* ---- its users, one by one ---- */

// What a GPU is divided by among its users, best first.
static double by_instance(const struct device_user *user)
{
	return user->instance_percent;
}

static double by_busy_time(const struct device_user *user)
{
	return user->busy_percent;
}

static double by_memory(const struct device_user *user)
{
	return value_to_double(user->memory_bytes, 1);
}

static double by_head(const struct device_user *user)
{
	return 1;
}

// It rests: to hold memory of it costs nothing.
static double by_nothing(const struct device_user *user)
{
	return 0;
}

struct keys {
	double (*of)(const struct device_user *); // NULL: nothing tells their parts
	double whole;
};

// NaN if it is not known of one of them, for whose part the others would get.
static double sum_of(const struct device_user *users, size_t n, double (*of)(const struct device_user *))
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += of(&users[i]);
	return sum;
}

/* What the sensor counted of all users: a list has room for so many, and those beyond it have a part all the same. Sums are of
 * whole numbers, so what is less than one more is no more. */
static double sum_of_sensor(const int64_t *row, double sum, enum device_metric target, enum device_metric others)
{
	double told = value_to_double(row[others], 1);
	if (value_ok(row[target]))
		told += (double)row[target];
	return told > sum + 1 ? told : sum;
}

// An empty list is no proof, nor is one of a single user: who looks may see none but his own. The card's own count is.
static bool is_alone(const int64_t *row)
{
	int64_t target = row[DEVICE_TARGET_PROCESSES], others = row[DEVICE_OTHERS_PROCESSES];
	return value_ok(others) && others + (value_ok(target) ? target : 0) == 1;
}

static struct keys choose_keys(const int64_t *row, const struct device_user *users, size_t n)
{
	double slices = sum_of(users, n, by_instance), busy = sum_of(users, n, by_busy_time),
	       memory = sum_of(users, n, by_memory);
	if (slices > 0) // those that nobody has are idle, not the others'
		return (struct keys){by_instance, fmax(slices, 100)};
	if (busy > 0)
		return (struct keys){by_busy_time,
			sum_of_sensor(row, busy, DEVICE_TARGET_UTILIZATION, DEVICE_OTHERS_UTILIZATION)};
	if (memory > 0)
		return (struct keys){by_memory, sum_of_sensor(row, memory, DEVICE_TARGET_MEMORY, DEVICE_OTHERS_MEMORY)};
	return n == 1 && is_alone(row) ? (struct keys){by_head, 1} : (struct keys){0};
}

static void use_device(struct now_process *process, const struct device_user *user)
{
	process->gpu_percent = add_known(process->gpu_percent, user->busy_percent);
	if (!value_ok(user->memory_bytes))
		return;
	int64_t held = value_ok(process->gpu_memory_bytes) ? process->gpu_memory_bytes : 0;
	process->gpu_memory_bytes = held + user->memory_bytes;
}

// Returns the target's part, of what is divided by these keys.
static double give(const struct device_user *users, size_t n, const struct keys *keys, const struct now_domain *domain,
	const struct meter *meter, struct process_table *processes)
{
	double target = 0;
	for (size_t i = 0; i < n; i++) {
		struct process_row *row = users[i].pid > 0 ? process_table_find(processes, users[i].pid) : NULL;
		if (row == NULL)
			continue;
		use_device(&row->now, &users[i]);
		double part = keys->of != NULL ? keys->of(&users[i]) / keys->whole : (double)NAN;
		if (isnan(part) || !domain->in_total)
			continue;
		row->now.gpu_w = add_known(row->now.gpu_w, part * domain->power_w);
		row->now.energy_j = add_known(row->now.energy_j, part * (double)meter->added_uj * 1e-6);
		row->added_j[NOW_GPU] += part * (double)meter->added_uj * 1e-6;
		target += row->now.is_target ? part : 0;
	}
	return target;
}

/* ---- a GPU ---- */

void divide_gpu_begin(struct process_table *processes)
{
	for (size_t i = 0; i < processes->n; i++) {
		struct now_process *process = &processes->rows[i].now;
		process->gpu_percent = process->gpu_w = (double)NAN;
		process->gpu_memory_bytes = VALUE_MISSING;
		processes->rows[i].added_j[NOW_GPU] = 0;
	}
}

struct split divide_gpu(struct domain_table *domains, size_t i, struct process_table *processes)
{
	const size_t device = domains->device_of[i];
	const int64_t *row = domains->rows[device];
	size_t n = 0;
	const struct device_user *users = sensor_set_users(&domains->sensors, device, &n);
	bool idle = is_idle(row); // an empty list is no proof: a user may see no process but his own
	struct keys keys = idle ? (struct keys){by_nothing, 1} : choose_keys(row, users, n);
	double target = users != NULL ? give(users, n, &keys, &domains->domains[i], &domains->meters[device], processes)
				      : 0;
	struct split split;
	if (idle)
		return (struct split){.idle = 1};
	if (split_by_sums(row, &split))
		return split;
	if (keys.of != NULL)
		return (struct split){.target = target};
	return (struct split){.unattributed = 1};
}
