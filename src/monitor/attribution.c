#include "monitor/internal.h"

#include "base/nan_sum.h"
#include "base/util.h"

/* A measure by which a resource is divided: the share of a process is its use divided by the whole. */
struct divisor {
	double whole; // NaN: unknown; 0: no use
	double (*use)(const struct process_row *);
};

static double cpu_use(const struct process_row *row)
{
	return value_ok(row->used_ns) ? (double)row->used_ns : 0;
}

static double memory_use(const struct process_row *row)
{
	return value_ok(row->now.rss_bytes) ? (double)row->now.rss_bytes : 0;
}

/* The whole is the machine's value, or the sum over processes if that is larger: CPU ticks are rounded, and the RSS of
 * each process includes shared pages. */
static struct divisor divisor_make(const struct process_table *processes, int64_t is_machine_known,
	double (*use)(const struct process_row *))
{
	double sum = 0;
	for (size_t i = 0; i < processes->n; i++)
		sum += use(&processes->rows[i]);
	return (struct divisor){value_ok(is_machine_known) ? fmax((double)is_machine_known, sum) : (double)NAN, use};
}

static double part_of(const struct divisor *divisor, const struct process_row *row)
{
	return divisor->whole > 0 ? divisor->use(row) / divisor->whole : 0;
}

static struct shares shares_by(const struct divisor *divisor, const struct process_table *processes, enum method method)
{
	double target = 0, own = 0;
	for (size_t i = 0; i < processes->n; i++) {
		const struct process_row *row = &processes->rows[i];
		if (row->now.is_own)
			own += divisor->use(row);
		else if (row->now.is_target)
			target += divisor->use(row);
	}
	return shares_of_use(target, own, divisor->whole, method);
}

/* ---- processes ---- */

// Resources divided by shares; GPUs are divided one by one (attribute_gpu).
enum { SHARED = MONITOR_GPU };

// Total supply of a resource over its domains, as far as known.
struct supply {
	bool exists;
	double power_w; // NaN: unknown
	double added_j; // added by this sample
};

static void supply_add(struct supply *supply, const struct monitor_domain *domain, const struct energy_track *track)
{
	supply->exists = true;
	supply->power_w = nan_sum(supply->power_w, domain->power_w);
	supply->added_j += (double)track->added_uj * 1e-6;
}

static void give(struct process_row *row, const struct supply *supplies, const struct divisor *divisors)
{
	double watts[SHARED];
	for (int r = 0; r < SHARED; r++) {
		bool known = !isnan(divisors[r].whole) && (r != MONITOR_CPU || value_ok(row->used_ns));
		double part = known ? part_of(&divisors[r], row) : (double)NAN;
		watts[r] = part * supplies[r].power_w;
		row->added_j[r] = supplies[r].exists && known ? part * supplies[r].added_j : 0;
		if (supplies[r].exists)
			row->now.energy_j = nan_sum(row->now.energy_j, row->added_j[r]);
	}
	row->now.cpu_w = watts[MONITOR_CPU];
	row->now.dram_w = watts[MONITOR_DRAM];
	row->now.power_w = nan_sum(nan_sum(row->now.cpu_w, row->now.dram_w), row->now.gpu_w);
}

/* ---- machine ---- */

enum monitor_resource attribution_resource(enum domain_kind kind)
{
	if (kind == DOMAIN_GPU)
		return MONITOR_GPU;
	return kind == DOMAIN_DRAM ? MONITOR_DRAM : MONITOR_CPU;
}

static struct shares shares_for(struct domain_table *domains, size_t i, struct process_table *processes,
	const struct shares *shared)
{
	enum monitor_resource resource = attribution_resource(domains->domains[i].domain->kind);
	return resource == MONITOR_GPU ? attribute_gpu(domains, i, processes) : shared[resource];
}

// Ignores rounding residue: shares that add up to 1 can leave a difference of an ulp or two.
static double others_of(const struct shares *shares)
{
	double rest = 1 - shares->target - shares->wattle - shares->idle - shares->unattributed;
	return rest > 1e-12 ? rest : 0;
}

static void sum_add(struct monitor_sum *sum, const struct shares *shares, double power_w)
{
	if (isnan(power_w))
		return;
	sum->target_w = nan_sum(sum->target_w, shares->target * power_w);
	sum->own_w = nan_sum(sum->own_w, shares->wattle * power_w);
	if (shares->idle > 0) // else idle power is unknown here and attributed to the computing processes
		sum->idle_w = nan_sum(sum->idle_w, shares->idle * power_w);
	sum->unattributed_w = nan_sum(sum->unattributed_w, shares->unattributed * power_w);
	sum->others_w = nan_sum(sum->others_w, others_of(shares) * power_w);
}

static void energy_add(struct monitor_added *added, const struct shares *shares, double energy_j)
{
	added->total_j += energy_j;
	added->target_j += shares->target * energy_j;
	added->others_j += others_of(shares) * energy_j;
	added->own_j += shares->wattle * energy_j;
	added->idle_j += shares->idle * energy_j;
	added->unattributed_j += shares->unattributed * energy_j;
}

void attribute_power(struct domain_table *domains, struct process_table *processes,
	const struct attribution_machine *machine, struct attributed_energy *ret_divided)
{
	const struct divisor divisors[SHARED] = {
		[MONITOR_CPU] = divisor_make(processes, machine->busy_ns, cpu_use),
		[MONITOR_DRAM] = divisor_make(processes, machine->memory_used_bytes, memory_use),
	};
	const struct shares shared[SHARED] = {
		shares_by(&divisors[MONITOR_CPU], processes, METHOD_CPU_TIME),
		shares_by(&divisors[MONITOR_DRAM], processes, METHOD_RSS),
	};
	const double none = (double)NAN;
	struct supply supplies[SHARED] = {{.power_w = none}, {.power_w = none}};
	struct attributed_energy divided = {.sum = {none, none, none, none, none}};
	attribute_gpu_begin(processes);
	for (size_t i = 0; i < domains->n; i++) {
		struct monitor_domain *domain = &domains->domains[i];
		const size_t device = domains->device_of[i];
		struct shares shares = shares_for(domains, i, processes, shared);
		bool is_divided = processes->target_pid != 0 && domain->domain->kind != DOMAIN_GPU_MEMORY;
		domain->target_w = is_divided ? shares.target * domain->power_w : (double)NAN;
		if (!domain->in_total)
			continue;
		const enum monitor_resource resource = attribution_resource(domain->domain->kind);
		sum_add(&divided.sum, &shares, domain->power_w);
		energy_add(&divided.added[resource], &shares, (double)domains->tracks[device].added_uj * 1e-6);
		divided.exists[resource] = true;
		if (domain->domain->kind == DOMAIN_PACKAGE)
			supply_add(&supplies[MONITOR_CPU], domain, &domains->tracks[device]);
		else if (domain->domain->kind == DOMAIN_DRAM)
			supply_add(&supplies[MONITOR_DRAM], domain, &domains->tracks[device]);
	}
	for (size_t i = 0; i < processes->n; i++)
		give(&processes->rows[i], supplies, divisors);
	*ret_divided = divided;
}
