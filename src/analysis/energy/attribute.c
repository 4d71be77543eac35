#include "analysis/energy/attribute.h"

#include "base/buf.h"
#include "base/util.h"

#include <errno.h>

/* Relative error of each method: half of a 95 % interval of the target's energy while other programs use the same
 * amount. It is 2.5 times the mean absolute error of a model where a study reports one (normal errors): METRION,
 * 4.2 % for CPU and 16.1 % for DRAM energy; AREA's process models, 9.7 % for GPUs. The rest are
 * judgements; docs/accuracy.md. */
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

static bool is_of_gpu(const struct attribution *a)
{
	return a->device->kind == DOMAIN_GPU || a->device->kind == DOMAIN_GPU_MEMORY;
}

bool attribution_by_cpu(const struct attribution *a)
{
	return a->device->kind != DOMAIN_DRAM && !is_of_gpu(a);
}

static struct shares divide(const struct attribution *a, const struct window *window, struct memory_walk *memory)
{
	if (a->device->kind == DOMAIN_DRAM)
		return shares_memory(a, window, memory);
	return is_of_gpu(a) ? shares_gpu(a, window) : shares_cpu(a, window);
}

// Idle power is subtracted first; the remainder is divided in the same proportions.
static void take_off_idle(const struct attribution *a, const struct window *window, struct shares *shares)
{
	double idle = baseline_share(a, window), busy = 1 - idle;
	shares->target *= busy;
	shares->wattle *= busy;
	shares->unattributed *= busy;
	shares->idle = idle + busy * shares->idle;
}

/* A target that runs alone has no attribution error. Idle MIG slices do not show that it is alone: their part of the
 * board's power is divided like that of the busy slices. */
static double uncertainty_of(const struct attribution *a, const struct window *window, const struct shares *s)
{
	double apart = s->unattributed + (s->method == METHOD_MIG_SLICES ? 0 : s->idle);
	double divided = 1 - apart, uncertainty = s->unattributed;
	if (!(divided > 0) || !(s->target > 0))
		return uncertainty;
	double alone = s->target < divided ? s->target / divided : 1;
	uncertainty += methods[s->method].relative_error * s->target * (1 - alone);
	if (a->idle_error_w > 0 && a->idle_w > 0)
		uncertainty += alone * baseline_share(a, window) * a->idle_error_w / a->idle_w;
	return uncertainty;
}

// The other programs get the remainder, so that the rows of a window add up to its energy.
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

// The method that divided most energy; idle and unattributed only if no other method divided any.
static enum method main_method(const double joules[METHODS])
{
	enum method best = METHOD_NONE;
	for (int m = 0; m < METHOD_IDLE; m++)
		if (joules[m] > 0 && (best == METHOD_NONE || joules[m] > joules[best]))
			best = (enum method)m;
	return best == METHOD_NONE && joules[METHOD_IDLE] > 0 ? METHOD_IDLE : best;
}

static void fill_shares(const struct attribution *a, const struct window *window, struct attribution_pass *pass,
	struct attribution_row *row)
{
	row->shares = divide(a, window, &pass->memory);
	take_off_idle(a, window, &row->shares);
	row->uncertainty = uncertainty_of(a, window, &row->shares);
}

// kept: NULL or the shares of this window, of which the row then has only the target's.
static struct attribution_row next_row(const struct attribution *a, const struct window *window,
	const struct kept_share *kept, struct attribution_pass *pass)
{
	struct attribution_row row = {.before_j = curve_walk_to(&pass->curve, window->segment, window->from_ns),
		.target_before_j = pass->target_j,
		.uncertainty_before_j = pass->uncertainty_j};
	if (kept == NULL) {
		fill_shares(a, window, pass, &row);
	} else {
		row.shares = (struct shares){.target = kept->target, .method = (enum method)kept->method};
		row.uncertainty = kept->uncertainty;
	}
	pass->energy_j = curve_walk_to(&pass->curve, window->segment, window->to_ns) - row.before_j;
	pass->target_j += row.shares.target * pass->energy_j;
	pass->uncertainty_j += row.uncertainty * pass->energy_j;
	return row;
}

void attribute(struct attribution *a, struct kept_share *keep, struct ledger *ret_ledger, enum method *ret_method)
{
	struct ledger ledger = {0};
	struct attribution_pass pass = {.curve.curve = a->curve};
	double joules[METHODS] = {0};
	baseline_make(a);
	for (size_t i = 0; i < a->windows->n; i++) {
		struct window window = windows_at(a->windows, i);
		struct attribution_row row = next_row(a, &window, NULL, &pass);
		joules[row.shares.method] += pass.energy_j;
		divide_window(&ledger, &row.shares, pass.energy_j);
		if (keep != NULL)
			keep[i] = (struct kept_share){row.shares.target, row.uncertainty, (uint8_t)row.shares.method};
	}
	a->kept = keep;
	a->uncertainty_j = pass.uncertainty_j;
	a->target_j = pass.target_j;
	// Unknown idle power is included in the rows of the programs that computed at the time.
	if (isnan(a->idle_w) && !(ledger.idle_j > 0))
		ledger.idle_j = (double)NAN;
	*ret_ledger = ledger;
	*ret_method = main_method(joules);
}

int attribution_store_rows(struct attribution *a, struct arena *arena)
{
	struct attribution_pass pass = {.curve.curve = a->curve};
	struct attribution_row *rows = arena_alloc(arena, a->windows->n, sizeof(*rows));
	if (rows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < a->windows->n; i++) {
		struct window window = windows_at(a->windows, i);
		rows[i] = next_row(a, &window, NULL, &pass);
	}
	a->rows = rows;
	return 0;
}

static struct part part_at(const struct attribution_row *row, double now_j)
{
	double since_j = now_j - row->before_j;
	return (struct part){
		.target_j = row->target_before_j + row->shares.target * since_j,
		.uncertainty_j = row->uncertainty_before_j + row->uncertainty * since_j,
	};
}

static double energy_at(const struct attribution *a, const struct window *window, int64_t t_ns)
{
	return curve_at(a->curve, window->segment, t_ns < window->to_ns ? t_ns : window->to_ns);
}

struct part attribution_at(const struct attribution *a, int64_t t_ns)
{
	size_t i = windows_find(a->windows, t_ns);
	struct window window = windows_at(a->windows, i);
	return part_at(&a->rows[i], energy_at(a, &window, t_ns));
}

int attribution_used_make(const struct attribution *a, struct arena *arena, struct attribution_used *ret_used)
{
	struct curve_walk walk = {.curve = a->curve};
	struct attribution_used used = {*a, arena_alloc(arena, a->windows->n, sizeof(double))};
	double used_j = 0;
	if (used.before_j == NULL || attribution_store_rows(&used.attribution, arena) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < a->windows->n; i++) {
		struct window window = windows_at(a->windows, i);
		const struct attribution_row *row = &used.attribution.rows[i];
		used.before_j[i] = used_j;
		used_j += (1 - row->shares.idle) * (curve_walk_to(&walk, window.segment, window.to_ns) - row->before_j);
	}
	*ret_used = used;
	return 0;
}

double attribution_used_j(const struct attribution_used *used, int64_t t_ns)
{
	const struct attribution *a = &used->attribution;
	size_t i = windows_find(a->windows, t_ns);
	struct window window = windows_at(a->windows, i);
	return used->before_j[i] + (1 - a->rows[i].shares.idle) * (energy_at(a, &window, t_ns) - a->rows[i].before_j);
}

static const double tick_s = 0.01;       // resolution of the kernel's CPU time accounting
static const double bound_margin = 1.05; // bounds of windows and energies are known to about 1 ms only

/* A window gives the target's CPU time to about one tick, but not when it was used. In a part of the window the target
 * used at least the CPU time that does not fit into the rest, and at most the part's own length times its cores. With
 * no other program running, all energy is the target's, whenever it computed. */
static struct window_imbalance imbalance_of(const struct attribution_walk *walk)
{
	const struct window window = windows_at(walk->attribution->windows, walk->index);
	double length_s = (double)(window.end_ns - window.begin_ns) / 1e9, cpu_s = window.target_ns / 1e9;
	double others = (window.busy_ns - window.target_ns) / 1e9 / length_s;
	struct window_imbalance imbalance = {.length_s = length_s};
	if (walk->row.shares.method != METHOD_CPU_TIME || !(cpu_s > 0) || !(others > 0))
		return imbalance; // no division among programs
	double most = walk->attribution->windows->max_cores, cores = fmin(cpu_s / length_s, most);
	double slack = fmin(0.3 + 2 * (1 - cores / most), 1) * tick_s / length_s; // a target that uses all cores uses
										  // them during the whole window
	double target_j = walk->pass.target_j - walk->row.target_before_j;
	imbalance.fits = most / fmax(cores - slack, slack);
	imbalance.concurrent_j = target_j * fmin(others / (2 * share_negligible_cores), 1);
	imbalance.tick = tick_s / cpu_s;
	return imbalance;
}

// fmax and fmin of numbers, without a function call: this runs at both ends of each span.
static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static void add_imbalance(const struct window_imbalance *u, double part_s, struct edge_uncertainty *uncertainty)
{
	double part = part_s / u->length_s;
	if (!(u->fits > 0) || !(part > 0 && part < 1))
		return; // no division among programs
	double min_part = larger(0, 1 - (1 - part) * u->fits), max_part = smaller(1, part * u->fits);
	double tick_j = smaller(u->tick, smaller(part, 1 - part)) * u->concurrent_j;
	uncertainty->linear_j += bound_margin * larger(max_part - part, part - min_part) * u->concurrent_j;
	uncertainty->variance_j2 += tick_j * tick_j / 3;
}

struct edge_uncertainty attribution_imbalance(const struct attribution_point *from, const struct attribution_point *to)
{
	struct edge_uncertainty uncertainty = {0};
	if (from->window == to->window) {
		add_imbalance(&from->imbalance, to->since_s - from->since_s, &uncertainty);
		return uncertainty;
	}
	add_imbalance(&from->imbalance, from->imbalance.length_s - from->since_s, &uncertainty);
	add_imbalance(&to->imbalance, to->since_s, &uncertainty);
	return uncertainty;
}

static void take_window(struct attribution_walk *walk, size_t index)
{
	const struct windows *windows = walk->attribution->windows;
	const struct kept_share *kept = walk->attribution->kept;
	walk->index = index;
	walk->window = kept != NULL ? windows_times_at(windows, index) : windows_at(windows, index);
	walk->row = next_row(walk->attribution, &walk->window, kept != NULL ? &kept[index] : NULL, &walk->pass);
	if (walk->target_shares != NULL)
		walk->target_shares[index] = walk->row.shares.target;
}

struct attribution_walk attribution_walk_begin(const struct attribution *a, double *target_shares)
{
	struct attribution_walk walk = {.attribution = a,
		.target_shares = target_shares,
		.imbalance_window = SIZE_MAX,
		.pass.curve.curve = a->curve,
		.curve.curve = a->curve,
		.edge.curve = a->curve};
	if (a->windows->n > 0)
		take_window(&walk, 0);
	return walk;
}

void attribution_walk_to(struct attribution_walk *walk, int64_t t_ns, struct attribution_point *ret_point)
{
	const struct window *window = &walk->window;
	while (walk->index + 1 < walk->attribution->windows->n && window->to_ns <= t_ns)
		take_window(walk, walk->index + 1);
	double now_j = curve_walk_to(&walk->curve, window->segment, t_ns < window->to_ns ? t_ns : window->to_ns);
	ret_point->part = part_at(&walk->row, now_j);
	ret_point->share = walk->row.shares.target;
	ret_point->window = walk->index;
	int64_t within_ns = t_ns < window->end_ns ? t_ns
						  : window->end_ns; // the outer windows also cover the time before and after them
	ret_point->since_s = within_ns > window->begin_ns ? (double)(within_ns - window->begin_ns) / 1e9 : 0;
}

void attribution_walk_edge(struct attribution_walk *walk, struct attribution_point *ret_point)
{
	if (walk->imbalance_window != walk->index)
		walk->imbalance = imbalance_of(walk);
	walk->imbalance_window = walk->index;
	ret_point->imbalance = walk->imbalance;
	edge_walk_to(&walk->edge, &walk->curve, &ret_point->edge);
}

const char *attribution_text(const struct attribution *a, enum method method, struct arena *arena)
{
	enum { DATE_LENGTH = 10 }; // of RFC 3339, without the time of day
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
