#include "sensor/gpu/nvml_users.h"

#include "base/util.h"

void nvml_users_forget(struct nvml_users *users)
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
	nvml_users_forget(users);
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
	for (size_t i = 0; i < users->n; i++) // the driver has no sample of those that did nothing
		users->users[i].busy_percent = 0;
	for (size_t i = 0; i < use->n_pids; i++) {
		struct device_user *user = find(users, use->pids[i].pid);
		if (user == NULL)
			user = add(users, use->pids[i].pid, match);
		if (user != NULL)
			user->busy_percent = use->pids[i].percent;
	}
}
