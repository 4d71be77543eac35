#include "energy/shares.h"

#include <math.h>

static const struct shares nothing_known = {.unattributed = 1, .method = METHOD_NONE};
static const struct shares idle = {.idle = 1, .method = METHOD_IDLE};

struct shares shares_of_use(double target, double wattle, double whole, enum method method)
{
	if (isnan(target) || isnan(wattle) || isnan(whole))
		return nothing_known;
	if (!(whole > 0))
		return idle;
	return (struct shares){.target = target / whole, .wattle = wattle / whole, .method = method};
}

// Returns false if either value is unknown or both are zero.
static bool share_of(double target, double others, enum method method, struct shares *ret_shares)
{
	if (!(target + others > 0))
		return false;
	*ret_shares = (struct shares){.target = target / (target + others), .method = method};
	return true;
}

static bool by_process_presence(double target_processes, double others_processes, struct shares *ret_shares)
{
	bool alone = target_processes > 0 && others_processes == 0,
	     absent = others_processes > 0 && target_processes == 0;
	if (!alone && !absent)
		return false;
	*ret_shares = (struct shares){.target = alone ? 1 : 0, .method = METHOD_EXCLUSIVE};
	return true;
}

/* A MIG parent has one meter for all of its instances; its energy is divided by their slices. Slices of unused instances, and
 * slices in no instance, are idle. Programs in one instance share its slices. */
static bool by_slices(double target, double others, struct shares *ret_shares)
{
	if (isnan(target) && isnan(others))
		return false;
	target = target > 0 ? target : 0;
	others = others > 0 ? others : 0;
	double whole = fmax(target + others, 1);
	*ret_shares = (struct shares){.target = target / whole,
		.idle = 1 - (target + others) / whole,
		.method = METHOD_MIG_SLICES};
	if (target + others == 0)
		ret_shares->method = METHOD_IDLE;
	return true;
}

struct shares shares_of_gpu(const struct gpu_use *use)
{
	const struct gpu_part *target = &use->target, *others = &use->others;
	struct shares shares;
	// A busy GPU without visible processes is not idle: the processes may be invisible, as in a container.
	bool nobody = target->processes + others->processes == 0 && !(use->busy_percent > 0);
	if (nobody || use->busy_percent == 0)
		return idle;
	if (by_slices(target->slices, others->slices, &shares) ||
		share_of(target->busy, others->busy, METHOD_SM_TIME, &shares) ||
		share_of(target->memory, others->memory, METHOD_GPU_MEMORY, &shares) ||
		by_process_presence(target->processes, others->processes, &shares))
		return shares;
	return nothing_known;
}
