// CPU, memory and processes of the program and the machine, and the program's custom metrics.
#include "analysis/chart/builder.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"

#include <errno.h>

/* ---- CPU: the windows of the attribution, so that both agree ---- */

static double window_s(const struct window *window)
{
	return (double)(window->end_ns - window->begin_ns) / 1e9;
}

// The machine's counters have no timestamp of their own: busy plus idle ticks are the elapsed time.
static double machine_cores(const struct window *window, double cores)
{
	double all_ns = window->busy_ns + window->idle_ns;
	if (all_ns > 0 && cores > 0)
		return window->busy_ns / all_ns * cores;
	return window->busy_ns / 1e9 / window_s(window);
}

enum cpu_series { CPU_MACHINE, CPU_TARGET, CPU_WATTLE, CPU_SERIES };

static double cores_of(const struct window *window, enum cpu_series which, double cores)
{
	if (!(window_s(window) > 0))
		return (double)NAN;
	if (which == CPU_MACHINE)
		return machine_cores(window, cores);
	return (which == CPU_TARGET ? window->target_ns : window->wattle_ns) / 1e9 / window_s(window);
}

static void fill_cpu(struct chart_work *work, struct chart_resampler resamplers[CPU_SERIES], double cores)
{
	const struct windows *windows = work->findings->windows;
	for (size_t i = 0; i < windows->n; i++) {
		struct window window = windows_at(windows, i);
		for (enum cpu_series k = 0; k < CPU_SERIES; k++)
			resampler_hold(&resamplers[k], window.from_ns, window.to_ns, cores_of(&window, k, cores));
	}
	for (enum cpu_series k = 0; k < CPU_SERIES; k++)
		resampler_end(&resamplers[k]);
}

int chart_cpu(struct chart_work *work)
{
	static const struct chart_series rows[CPU_SERIES] = {
		[CPU_MACHINE] = {.name = "machine", .label = "whole machine", .line = CHART_PART},
		[CPU_TARGET] = {.name = "target", .label = "this program", .line = CHART_TARGET},
		[CPU_WATTLE] = {.name = "wattle", .label = "wattle itself", .line = CHART_BESIDE},
	};
	double cores = run_metadata_double(work->run, META_KEY_CORES);
	struct chart chart = {.id = "cpu", .title = "CPU", .unit = "cores", .style = CHART_LINES, .ceiling = cores};
	struct chart_resampler resamplers[CPU_SERIES];
	if (!chart_begin(work, &chart, CPU_SERIES))
		return -ENOMEM;
	for (enum cpu_series i = 0; i < CPU_SERIES; i++) {
		struct chart_series *series = chart_add(work, &chart, &rows[i]);
		if (series == NULL || resampler_begin(&resamplers[i], work, series) < 0)
			return -ENOMEM;
	}
	fill_cpu(work, resamplers, cores);
	return chart_end(work, &chart);
}

/* ---- gauges of the run ---- */

// Main process plus descendants, at each sample. NULL: no memory.
static int64_t *both(const struct chart_work *work, enum run_metric main, enum run_metric descendants)
{
	const struct run *run = work->run;
	int64_t *sum = arena_alloc(work->scratch, run->n, sizeof(*sum));
	for (size_t i = 0; sum != NULL && i < run->n; i++)
		sum[i] = run_sum(run, main, descendants, i);
	return sum;
}

/* PSS is read rarely. A value stays valid until resident memory, which every sample has, has changed by more than a
 * tenth: the same rule as for the attribution. */
static int64_t *fresh_pss(const struct chart_work *work)
{
	int64_t *pss = both(work, RUN_MAIN_PSS, RUN_DESCENDANTS_PSS);
	const int64_t *rss = both(work, RUN_MAIN_RSS, RUN_DESCENDANTS_RSS);
	if (pss == NULL || rss == NULL)
		return NULL;
	int64_t last = VALUE_MISSING, rss_at_pss = VALUE_MISSING;
	for (size_t i = 0, segment = 0; i < work->run->n; i++) {
		for (; segment < work->run->n_segments && slice_samples(work->run, segment).begin <= i; segment++)
			last = VALUE_MISSING; // other processes from here on
		if (value_ok(pss[i])) {
			last = pss[i];
			rss_at_pss = rss[i];
		} else if (value_ok(last) && value_ok(rss_at_pss) && value_ok(rss[i]) &&
			fabs((double)rss[i] - (double)rss_at_pss) <= 0.1 * (double)rss[i]) {
			pss[i] = last;
		}
	}
	return pss;
}

static int add_gauge(struct chart_work *work, struct chart *chart, const struct chart_series *like,
	struct run_values values)
{
	const struct run *run = work->run;
	struct chart_series *series = chart_add(work, chart, like);
	if (series == NULL)
		return -ENOMEM;
	return resampler_gauge(work, series,
		&(struct chart_gauge){.t_ns = run->t_ns, .values = values, .n = run->n, .scale = 1});
}

int chart_memory(struct chart_work *work)
{
	static const struct chart_series machine = {.name = "machine", .label = "whole machine", .line = CHART_PART};
	static const struct chart_series target = {.name = "target",
		.label = "this program, resident",
		.line = CHART_TARGET};
	// Resident memory counts shared pages once per process; PSS divides them, and is read rarely.
	static const struct chart_series pss = {.name = "target_pss",
		.label = "this program, shared pages divided (PSS)",
		.line = CHART_BESIDE};
	struct chart chart = {.id = "memory",
		.title = "Memory",
		.unit = "bytes",
		.style = CHART_LINES,
		.ceiling = run_metadata_double(work->run, META_KEY_MEMORY_TOTAL)};
	struct run_values rss = {.plain = both(work, RUN_MAIN_RSS, RUN_DESCENDANTS_RSS)},
			  fresh = {.plain = fresh_pss(work)};
	if (rss.plain == NULL || fresh.plain == NULL || !chart_begin(work, &chart, 3) ||
		add_gauge(work, &chart, &machine, run_column(work->run, RUN_SYSTEM_MEMORY)) < 0 ||
		add_gauge(work, &chart, &target, rss) < 0 || add_gauge(work, &chart, &pss, fresh) < 0)
		return -ENOMEM;
	return chart_end(work, &chart);
}

int chart_processes(struct chart_work *work)
{
	static const struct chart_series target = {.name = "target", .label = "this program", .line = CHART_TARGET};
	struct chart chart = {.id = "processes",
		.title = "Processes",
		.unit = "processes",
		.style = CHART_LINES,
		.ceiling = (double)NAN};
	if (!chart_begin(work, &chart, 1) || add_gauge(work, &chart, &target, run_column(work->run, RUN_PROCESSES)) < 0)
		return -ENOMEM;
	return chart_end(work, &chart);
}

/* ---- custom metrics ---- */

enum { METRIC_CHARTS_MAX = 24 };

struct metric_report {
	int64_t t_ns;
	const char *name;
	double value;
};

static int by_name_and_time(const void *a, const void *b)
{
	const struct metric_report *x = a, *y = b;
	int by_name = strcmp(x->name, y->name);
	return by_name != 0 ? by_name : (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

// "metric:NAME", in the arena; *ret_name is the name in it.
static const char *id_of(struct arena *arena, const char *name, const char **ret_name)
{
	static const char prefix[] = "metric:";
	size_t size = strlen(name) + 1;
	char *id = arena_alloc(arena, sizeof(prefix) - 1 + size, 1);
	if (id == NULL)
		return NULL;
	memcpy(id, prefix, sizeof(prefix) - 1);
	memcpy(id + sizeof(prefix) - 1, name, size);
	*ret_name = id + sizeof(prefix) - 1;
	return id;
}

// Reports are instants: the time between them has no value.
static int add_metric(struct chart_work *work, const struct metric_report *reports, size_t n)
{
	const char *name = NULL, *id = id_of(work->arena, reports[0].name, &name);
	struct chart chart = {.id = id, .title = name, .unit = "", .style = CHART_LINES, .ceiling = (double)NAN};
	const struct chart_series like = {.name = name, .label = name, .line = CHART_PART};
	struct chart_series *series = NULL;
	struct chart_resampler resampler;
	if (id == NULL || !chart_begin(work, &chart, 1) || (series = chart_add(work, &chart, &like)) == NULL ||
		resampler_begin(&resampler, work, series) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		resampler_dot(&resampler, reports[i].t_ns, isfinite(reports[i].value) ? reports[i].value : (double)NAN);
	resampler_end(&resampler);
	return chart_end(work, &chart);
}

static size_t end_of_group(const struct metric_report *reports, size_t n, size_t begin)
{
	size_t end = begin + 1;
	while (end < n && strcmp(reports[end].name, reports[begin].name) == 0)
		end++;
	return end;
}

// Limits the number of charts: the minimum number of reports of the metrics that are shown.
static size_t min_reports(const struct metric_report *reports, size_t n)
{
	size_t most[METRIC_CHARTS_MAX] = {0}; // descending
	for (size_t i = 0, end; i < n; i = end) {
		end = end_of_group(reports, n, i);
		size_t count = end - i, at = METRIC_CHARTS_MAX;
		for (; at > 0 && most[at - 1] < count; at--)
			if (at < METRIC_CHARTS_MAX)
				most[at] = most[at - 1];
		if (at < METRIC_CHARTS_MAX)
			most[at] = count;
	}
	return most[METRIC_CHARTS_MAX - 1];
}

int chart_metrics(struct chart_work *work)
{
	const struct run *run = work->run;
	size_t n = run->n_user_metrics;
	struct metric_report *reports = arena_alloc(work->scratch, n, sizeof(*reports));
	if (reports == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		reports[i] = (struct metric_report){run->user_metrics[i].t_ns, run->user_metrics[i].name,
			run->user_metrics[i].value};
	qsort(reports, n, sizeof(*reports), by_name_and_time);
	size_t least = min_reports(reports, n), n_above = 0;
	for (size_t i = 0, end; i < n; i = end) {
		end = end_of_group(reports, n, i);
		n_above += end - i > least;
	}
	size_t ties = METRIC_CHARTS_MAX - n_above; // of metrics with exactly that number, the first names
	for (size_t i = 0, end; i < n; i = end) {
		end = end_of_group(reports, n, i);
		bool is_tie = end - i == least;
		if (end - i < least || (is_tie && ties == 0))
			continue;
		ties -= is_tie;
		if (add_metric(work, reports + i, end - i) < 0)
			return -ENOMEM;
	}
	return 0;
}
