#include "analysis/attribute.h"

#include "base/util.h"

#include <errno.h>

static const char *const method_names[METHODS] = {
	[METHOD_CPU_TIME] = "cpu time",
	[METHOD_CPU_TIME_ACTIVE] = "cpu time above idle power seen in this run",
	[METHOD_CPU_TIME_NO_BASELINE] = "cpu time, idle power unknown",
	[METHOD_SM_TIME] = "sm time",
	[METHOD_PSS] = "pss",
	[METHOD_RSS] = "rss",
	[METHOD_GPU_MEMORY] = "gpu memory",
	[METHOD_EXCLUSIVE] = "exclusive",
	[METHOD_IDLE] = "idle",
	[METHOD_NONE] = "none",
};

const char *method_name(enum method method)
{
	return method_names[method];
}

typedef struct shares (*divide)(const struct attribution *, const struct window *);

static const divide divide_by_kind[DOMAIN_KINDS] = {
	[DOMAIN_DRAM] = shares_memory,
	[DOMAIN_GPU] = shares_gpu,
};

// The other programs' part is what is left, so that the rows of a window add up to its energy.
static void divide_window(struct ledger *ledger, struct shares shares, double energy_j)
{
	double target_j = shares.target * energy_j, wattle_j = shares.wattle * energy_j;
	double idle_j = shares.idle * energy_j, unattributed_j = shares.unattributed * energy_j;
	double others_j = energy_j - target_j - wattle_j - idle_j - unattributed_j;
	ledger->target_j += target_j;
	ledger->wattle_j += wattle_j;
	ledger->idle_j += idle_j;
	ledger->unattributed_j += unattributed_j;
	ledger->others_j += others_j > 0 ? others_j : 0;
}

// Most joules; idle and unattributed ones only if nothing else was divided.
static enum method main_method(const double joules[METHODS])
{
	enum method best = METHOD_NONE;
	for (int m = 0; m < METHOD_IDLE; m++)
		if (joules[m] > 0 && (best == METHOD_NONE || joules[m] > joules[best]))
			best = (enum method)m;
	return best == METHOD_NONE && joules[METHOD_IDLE] > 0 ? METHOD_IDLE : best;
}

int attribute(struct attribution *a, struct arena *arena, struct ledger *ret_ledger, enum method *ret_method)
{
	a->target_share = arena_alloc(arena, a->windows->n, sizeof(double));
	a->target_before_j = arena_alloc(arena, a->windows->n, sizeof(double));
	a->before_j = arena_alloc(arena, a->windows->n, sizeof(double));
	if (a->target_share == NULL || a->target_before_j == NULL || a->before_j == NULL)
		return -ENOMEM;
	divide divide_by = divide_by_kind[a->device->kind] != NULL ? divide_by_kind[a->device->kind] : shares_cpu;
	a->idle_w = a->active ? idle_power_w(a) : (double)NAN;
	struct ledger ledger = {0};
	double joules[METHODS] = {0};
	for (size_t i = 0; i < a->windows->n; i++) {
		const struct window *window = &a->windows->at[i];
		struct shares shares = divide_by(a, window);
		a->before_j[i] = curve_at(a->curve, window->segment, window->from_ns);
		double energy_j = curve_at(a->curve, window->segment, window->to_ns) - a->before_j[i];
		a->target_share[i] = shares.target;
		a->target_before_j[i] = ledger.target_j;
		joules[shares.method] += energy_j;
		divide_window(&ledger, shares, energy_j);
	}
	*ret_ledger = ledger;
	*ret_method = main_method(joules);
	return 0;
}

double attribution_target_at(const struct attribution *a, int64_t t_ns)
{
	const struct window *window = windows_find(a->windows, t_ns);
	size_t i = (size_t)(window - a->windows->at);
	double now_j = curve_at(a->curve, window->segment, t_ns < window->to_ns ? t_ns : window->to_ns);
	return a->target_before_j[i] + a->target_share[i] * (now_j - a->before_j[i]);
}
