#include "analysis/energy/attribute.h"

#include "base/buf.h"
#include "base/util.h"

#include <errno.h>

/* What a method may be off by, as half of a 95 % interval of the target's joules while others use as much again. Where a
 * study gives the mean absolute error of a model, that is 2.5 times it (normal errors): METRION, 4.2 % for CPU and 16.1 %
 * for DRAM energy; AREA's process models, 9.7 % for GPUs. The rest are judgements; docs/accuracy.md. */
static const struct {
	const char *name;
	double relative_error;
} methods[METHODS] = {
	[METHOD_CPU_TIME] = {"cpu time", 0.11},
	[METHOD_SM_TIME] = {"sm time", 0.25},
	[METHOD_PSS] = {"pss", 0.4},
	[METHOD_RSS] = {"rss", 0.6},
	[METHOD_MIG_SLICES] = {"mig slices", 0.5},
	[METHOD_GPU_MEMORY] = {"gpu memory", 1},
	[METHOD_EXCLUSIVE] = {"exclusive", 0},
	[METHOD_IDLE] = {"idle", 0},
	[METHOD_NONE] = {"none", 0},
};

static const double tick_s = 0.01;       // of the kernel's account of CPU time
static const double bound_margin = 1.05; // windows and energy are cut at instants that are known to a millisecond or so

typedef struct shares (*divide)(const struct attribution *, const struct window *);

static divide divide_for(enum domain_kind kind)
{
	if (kind == DOMAIN_DRAM)
		return shares_memory;
	return kind == DOMAIN_GPU || kind == DOMAIN_GPU_MEMORY ? shares_gpu : shares_cpu;
}

bool attribution_by_cpu(const struct attribution *a)
{
	return divide_for(a->device->kind) == shares_cpu;
}

// Idle power goes first; what is left is divided as before.
static void take_off_idle(const struct attribution *a, const struct window *window, struct shares *shares)
{
	double idle = baseline_share(a, window), busy = 1 - idle;
	shares->target *= busy;
	shares->wattle *= busy;
	shares->unattributed *= busy;
	shares->idle = idle + busy * shares->idle;
}

/* Nobody can take anything from a target that is alone. MIG's idle slices are no proof of that: their part of the board's
 * power goes where the busy slices send it. */
static double doubt_of(const struct attribution *a, const struct window *window, const struct shares *s)
{
	double apart = s->unattributed + (s->method == METHOD_MIG_SLICES ? 0 : s->idle);
	double divided = 1 - apart, doubt = s->unattributed;
	if (!(divided > 0) || !(s->target > 0))
		return doubt;
	double alone = s->target < divided ? s->target / divided : 1;
	doubt += methods[s->method].relative_error * s->target * (1 - alone);
	if (a->idle_error_w > 0 && a->idle_w > 0)
		doubt += alone * baseline_share(a, window) * a->idle_error_w / a->idle_w;
	return doubt;
}

// The other programs' part is what is left, so that the rows of a window add up to its energy.
static void divide_window(struct ledger *ledger, const struct shares *shares, double energy_j)
{
	double target_j = shares->target * energy_j, wattle_j = shares->wattle * energy_j;
	double idle_j = shares->idle * energy_j, unattributed_j = shares->unattributed * energy_j;
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

static int allocate(struct attribution *a, struct arena *arena)
{
	size_t n = a->windows->n;
	a->shares = arena_alloc(arena, n, sizeof(*a->shares));
	a->target_before_j = arena_alloc(arena, n, sizeof(double));
	a->doubt_before_j = arena_alloc(arena, n, sizeof(double));
	a->before_j = arena_alloc(arena, n, sizeof(double));
	bool all = a->shares != NULL && a->target_before_j != NULL && a->doubt_before_j != NULL && a->before_j != NULL;
	return all ? 0 : -ENOMEM;
}

int attribute(struct attribution *a, struct arena *arena, struct ledger *ret_ledger, enum method *ret_method)
{
	divide divide_by = divide_for(a->device->kind);
	struct ledger ledger = {0};
	struct curve_walk walk = {.curve = a->curve};
	double joules[METHODS] = {0}, doubt_j = 0;
	if (allocate(a, arena) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < a->windows->n; i++)
		a->shares[i] = divide_by(a, &a->windows->at[i]);
	baseline_make(a);
	for (size_t i = 0; i < a->windows->n; i++) {
		const struct window *window = &a->windows->at[i];
		take_off_idle(a, window, &a->shares[i]);
		a->before_j[i] = curve_walk_to(&walk, window->segment, window->from_ns);
		a->target_before_j[i] = ledger.target_j;
		a->doubt_before_j[i] = doubt_j;
		double energy_j = curve_walk_to(&walk, window->segment, window->to_ns) - a->before_j[i];
		joules[a->shares[i].method] += energy_j;
		doubt_j += doubt_of(a, window, &a->shares[i]) * energy_j;
		divide_window(&ledger, &a->shares[i], energy_j);
	}
	a->doubt_j = doubt_j;
	a->target_j = ledger.target_j;
	// Idle power that is not known lies in the rows of those who computed meanwhile.
	if (isnan(a->idle_w) && !(ledger.idle_j > 0))
		ledger.idle_j = (double)NAN;
	*ret_ledger = ledger;
	*ret_method = main_method(joules);
	return 0;
}

static struct part part_at(const struct attribution *a, size_t window, double now_j)
{
	double since_j = now_j - a->before_j[window];
	return (struct part){
		.target_j = a->target_before_j[window] + a->shares[window].target * since_j,
		.doubt_j = a->doubt_before_j[window] +
			doubt_of(a, &a->windows->at[window], &a->shares[window]) * since_j,
	};
}

static double energy_at(const struct attribution *a, const struct window *window, int64_t t_ns)
{
	return curve_at(a->curve, window->segment, t_ns < window->to_ns ? t_ns : window->to_ns);
}

struct part attribution_at(const struct attribution *a, int64_t t_ns)
{
	const struct window *window = windows_find(a->windows, t_ns);
	return part_at(a, (size_t)(window - a->windows->at), energy_at(a, window, t_ns));
}

int attribution_used_make(const struct attribution *a, struct arena *arena, struct attribution_used *ret_used)
{
	struct curve_walk walk = {.curve = a->curve};
	double *before_j = arena_alloc(arena, a->windows->n, sizeof(*before_j)), used_j = 0;
	if (before_j == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->windows->n; i++) {
		const struct window *window = &a->windows->at[i];
		before_j[i] = used_j;
		used_j += (1 - a->shares[i].idle) *
			(curve_walk_to(&walk, window->segment, window->to_ns) - a->before_j[i]);
	}
	*ret_used = (struct attribution_used){a, before_j};
	return 0;
}

double attribution_used_j(const struct attribution_used *used, int64_t t_ns)
{
	const struct attribution *a = used->attribution;
	const struct window *window = windows_find(a->windows, t_ns);
	size_t i = (size_t)(window - a->windows->at);
	return used->before_j[i] + (1 - a->shares[i].idle) * (energy_at(a, window, t_ns) - a->before_j[i]);
}

struct attribution_walk attribution_walk_begin(const struct attribution *a)
{
	return (struct attribution_walk){.attribution = a, .curve = {.curve = a->curve}, .edge = {.curve = a->curve}};
}

void attribution_walk_to(struct attribution_walk *walk, int64_t t_ns, struct attribution_point *ret_point)
{
	const struct attribution *a = walk->attribution;
	const struct windows *windows = a->windows;
	while (walk->window + 1 < windows->n && windows->at[walk->window + 1].from_ns <= t_ns)
		walk->window++;
	const struct window *window = &windows->at[walk->window];
	double now_j = curve_walk_to(&walk->curve, window->segment, t_ns < window->to_ns ? t_ns : window->to_ns);
	ret_point->part = part_at(a, walk->window, now_j);
	ret_point->share = a->shares[walk->window].target;
	ret_point->window = walk->window;
	int64_t within_ns = t_ns < window->end_ns ? t_ns : window->end_ns; // the outer ones speak for all before and after
	ret_point->since_s = within_ns > window->begin_ns ? (double)(within_ns - window->begin_ns) / 1e9 : 0;
}

static double window_s(const struct window *window)
{
	return (double)(window->end_ns - window->begin_ns) / 1e9;
}

/* A window tells how long the target computed in it, to about a tick, not when. In a part of it that was at least what does not fit into
 * the rest, and at most what fits into the part. With nobody beside it the energy is the target's whenever it computed. */
static void add_uneven(const struct attribution *a, size_t index, double part_s, struct edge_doubt *doubt)
{
	const struct window *window = &a->windows->at[index];
	double length_s = window_s(window), cpu_s = window->target_ns / 1e9, part = part_s / length_s;
	double others = (window->busy_ns - window->target_ns) / 1e9 / length_s;
	if (a->shares[index].method != METHOD_CPU_TIME || !(cpu_s > 0) || !(others > 0) || !(part > 0 && part < 1))
		return; // nothing to divide, or nothing divided
	double most = a->windows->most_cores, cores = fmin(cpu_s / length_s, most);
	double slack = fmin(0.3 + 2 * (1 - cores / most), 1) * tick_s / length_s; // who has all there is has it always
	double fits = most / fmax(cores - slack, slack);
	double least_part = fmax(0, 1 - (1 - part) * fits), most_part = fmin(1, part * fits);
	double end_j = index + 1 < a->windows->n ? a->target_before_j[index + 1] : a->target_j;
	double beside_j = (end_j - a->target_before_j[index]) * fmin(others / (2 * share_hardly), 1);
	double tick_j = fmin(tick_s / cpu_s, fmin(part, 1 - part)) * beside_j;
	doubt->linear_j += bound_margin * fmax(most_part - part, part - least_part) * beside_j;
	doubt->variance_j2 += tick_j * tick_j / 3;
}

struct edge_doubt attribution_uneven(const struct attribution *a, const struct attribution_point *from,
	const struct attribution_point *to)
{
	struct edge_doubt doubt = {0};
	if (from->window == to->window) {
		add_uneven(a, from->window, to->since_s - from->since_s, &doubt);
		return doubt;
	}
	add_uneven(a, from->window, window_s(&a->windows->at[from->window]) - from->since_s, &doubt);
	add_uneven(a, to->window, to->since_s, &doubt);
	return doubt;
}

void attribution_walk_edge(struct attribution_walk *walk, struct attribution_point *ret_point)
{
	ret_point->edge = edge_walk_to(&walk->edge, &walk->curve);
}

const char *attribution_text(const struct attribution *a, enum method method, struct arena *arena)
{
	enum { DATE_LENGTH = 10 }; // of RFC 3339: the time of day helps nobody
	struct buf text;
	buf_init(&text, 256);
	buf_str(&text, methods[method].name);
	if (method < METHOD_IDLE && a->baseline == BASELINE_STORED)
		buf_printf(&text, " above idle power measured%s%.*s", a->device->idle_date[0] != '\0' ? " " : "",
			DATE_LENGTH, a->device->idle_date);
	else if (method < METHOD_IDLE && a->baseline == BASELINE_SEEN)
		buf_str(&text, " above idle power seen in this run");
	else if (method < METHOD_IDLE && a->baseline == BASELINE_UNKNOWN)
		buf_str(&text, ", idle power unknown");
	const char *kept = text.failed == 0 ? arena_text(arena, text.data) : NULL;
	buf_finish(&text);
	return kept;
}
