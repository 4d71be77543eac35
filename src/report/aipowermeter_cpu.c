#include "report/aipowermeter_internal.h"

#include "base/util.h"

#include <errno.h>

static const struct power_key {
	enum domain_kind kind;
	const char *all, *target; // NULL: the layout has no such key
} power_keys[] = {
	{DOMAIN_PACKAGE, "intel_power", "rel_intel_power"},
	{DOMAIN_PSYS, "psys_power", NULL},
	{DOMAIN_UNCORE, "uncore_power", NULL},
	{DOMAIN_CORE, "total_cpu_power", "per_process_cpu_power"},
	{DOMAIN_DRAM, "total_dram_power", "per_process_dram_power"},
	// Extensions of the layout; its reader accepts any key.
	{DOMAIN_MODULE, "module_power", NULL},
	{DOMAIN_NODE, "node_power", NULL},
	{DOMAIN_BATTERY, "battery_power", NULL},
	{DOMAIN_WALL, "wall_power", NULL},
};

/* Written first: AIPowerMeter takes the duration from the first key in the file, and all rows have power values. A kind
 * that the machine lacks is omitted, and so is a value that is unknown at that row. */
static void powers(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(power_keys); i++) {
		const struct power_key *key = &power_keys[i];
		const struct timeline_track *track = &a->kinds[key->kind].powers;
		if (isnan(track->all_w[row->instant]))
			continue;
		jsonw_key_double(j, key->all, track->all_w[row->instant]);
		if (key->target != NULL)
			aipm_by_pid(j, a, row, key->target, track->target_w[row->instant]);
	}
}

/* ---- CPU time ---- */

struct cpu_use {
	double target_ns, busy_ns, seconds;
};

static void add_window(const struct aipowermeter *a, int64_t from_ns, int64_t to_ns, struct cpu_use *use)
{
	const struct windows *windows = &a->timeline.windows;
	struct window window = windows_at(windows, windows_find(windows, from_ns + (to_ns - from_ns) / 2));
	double length_ns = (double)(window.end_ns - window.begin_ns), part = (double)(to_ns - from_ns) / length_ns;
	use->target_ns += part * window.target_ns; // NaN: unknown
	use->busy_ns += part * window.busy_ns;
	use->seconds += (double)(to_ns - from_ns) / 1e9;
}

// CPU use over the interval that the instant represents, as for power: trapezoidal integration gives the total.
static struct cpu_use cpu_use(const struct aipowermeter *a, const struct aipm_row *row)
{
	struct cpu_use use = {0};
	int64_t at_ns = a->timeline.t_ns[row->instant];
	int64_t before_ns = timeline_before_ns(&a->timeline, row->interval, row->instant);
	int64_t after_ns = timeline_after_ns(&a->timeline, row->interval, row->instant);
	if (before_ns < at_ns)
		add_window(a, before_ns, at_ns, &use);
	if (after_ns > at_ns)
		add_window(a, at_ns, after_ns, &use);
	return use;
}

static void cpu_time(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row)
{
	struct cpu_use use = cpu_use(a, row);
	aipm_by_pid(j, a, row, "per_process_cpu_uses",
		use.busy_ns > 0 ? use.target_ns / use.busy_ns : 0 * use.target_ns);
	aipm_by_pid(j, a, row, "absolute_cpu_time_per_pid", use.target_ns / 1e9 / use.seconds);
}

/* ---- memory ---- */

static const struct memory_metric {
	enum run_metric main, descendants; // equal to main: one metric only
} memory_metrics[AIPM_MEMORY_METRICS] = {
	[AIPM_RSS] = {RUN_MAIN_RSS, RUN_DESCENDANTS_RSS},
	[AIPM_PSS] = {RUN_MAIN_PSS, RUN_DESCENDANTS_PSS},
	[AIPM_USS] = {RUN_MAIN_USS, RUN_DESCENDANTS_USS},
	[AIPM_USED] = {RUN_SYSTEM_MEMORY, RUN_SYSTEM_MEMORY},
};

static void find_samples(const struct run *run, size_t segment, struct run_values values, size_t *latest,
	size_t *ret_first)
{
	struct slice samples = slice_samples(run, segment);
	size_t known = SIZE_MAX;
	*ret_first = SIZE_MAX;
	for (size_t i = samples.begin; i < samples.end; i++) {
		if (value_ok(values_at(values, i)))
			known = i;
		if (*ret_first == SIZE_MAX)
			*ret_first = known;
		latest[i] = known;
	}
}

int aipm_memory_make(const struct run *run, struct arena *arena, struct aipm_memory *ret_memory)
{
	for (size_t m = 0; m < AIPM_MEMORY_METRICS; m++) {
		size_t *latest = arena_alloc(arena, run->n, sizeof(*latest));
		size_t *first = arena_alloc(arena, run->n_segments, sizeof(*first));
		if (latest == NULL || first == NULL)
			return -ENOMEM;
		for (size_t s = 0; s < run->n_segments; s++)
			find_samples(run, s, run_column(run, memory_metrics[m].main), latest, &first[s]);
		ret_memory->latest[m] = latest;
		ret_memory->first[m] = first;
	}
	return 0;
}

// The last reading at or before the row; for earlier rows, the first reading. NaN: none in this segment.
static double memory_at(const struct aipowermeter *a, const struct aipm_row *row, enum aipm_memory_metric metric)
{
	const struct memory_metric *m = &memory_metrics[metric];
	struct slice samples = slice_samples(a->run, row->segment);
	size_t after = slice_lower_bound(a->run->t_ns, a->run->n, a->timeline.t_ns[row->instant] + 1);
	size_t sample = after > samples.begin ? a->memory.latest[metric][after - 1] : SIZE_MAX;
	if (sample == SIZE_MAX)
		sample = a->memory.first[metric][row->segment];
	if (sample == SIZE_MAX)
		return (double)NAN;
	int64_t descendants = m->descendants != m->main ? run_value(a->run, m->descendants, sample) : 0;
	return (double)run_value(a->run, m->main, sample) + (value_ok(descendants) ? (double)descendants : 0);
}

static void memory(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row)
{
	double used_bytes = memory_at(a, row, AIPM_USED), uss_bytes = memory_at(a, row, AIPM_USS);
	double pss_bytes = memory_at(a, row, AIPM_PSS), rss_bytes = memory_at(a, row, AIPM_RSS);
	aipm_memory_by_pid(j, a, row, isnan(pss_bytes) ? rss_bytes : pss_bytes, used_bytes);
	if (!isnan(uss_bytes)) {
		jsonw_key(j, "per_process_mem_use_uss");
		jsonw_begin_object(j);
		aipm_key_pid(j, aipm_root_pid(a, row->segment));
		jsonw_double(j, uss_bytes);
		jsonw_end_object(j);
	}
	if (!isnan(used_bytes))
		jsonw_key_double(j, "total_mem_use", used_bytes);
}

void aipm_cpu(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row)
{
	jsonw_key(j, "cpu");
	jsonw_begin_object(j);
	powers(j, a, row);
	cpu_time(j, a, row);
	memory(j, a, row);
	jsonw_end_object(j);
}
