#include "report/aipowermeter_internal.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "report/format_helpers.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static const char segment_end[] = "\"END OF RECORDING SEGMENT\"\n";

/* ---- sources of the rows ---- */

// True for a domain inside another of its kind, such as a die in a measured package; counting both would double the energy.
static bool lies_in_its_kind(const struct findings *findings, const struct run_device *device)
{
	for (size_t i = 0; device->inside[0] != '\0' && i < findings->n_domains; i++) {
		const struct run_device *other = findings->domains[i].device;
		if (other->kind == device->kind && strcmp(other->name, device->inside) == 0)
			return true;
	}
	return false;
}

static int make_kind(struct aipowermeter *a, enum domain_kind kind, struct arena *arena)
{
	const struct findings *findings = &a->timeline.findings;
	size_t *domains = arena_alloc(arena, findings->n_domains, sizeof(*domains)), n = 0;
	if (domains == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < findings->n_domains; i++) {
		const struct run_device *device = findings->domains[i].device;
		if (device->kind == kind && !lies_in_its_kind(findings, device))
			domains[n++] = i;
		a->kinds[kind].known |= device->kind == kind && !isnan(findings->domains[i].energy_j);
	}
	return timeline_track_make(&a->timeline, domains, n, arena, &a->kinds[kind].powers);
}

// GPUs of all vendors: the layout has keys for NVIDIA GPUs only.
static int make_gpus(struct aipowermeter *a, struct arena *arena)
{
	const struct findings *findings = &a->timeline.findings;
	a->gpus = arena_alloc(arena, findings->n_domains, sizeof(*a->gpus));
	if (a->gpus == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < findings->n_domains; i++) {
		if (findings->domains[i].device->kind != DOMAIN_GPU)
			continue;
		struct aipm_gpu *gpu = &a->gpus[a->n_gpus++];
		gpu->device = findings->domains[i].device;
		gpu->is_divided = strcmp(findings->domains[i].attribution, "none") != 0;
		if (timeline_track_make(&a->timeline, &i, 1, arena, &gpu->powers) < 0)
			return -ENOMEM;
	}
	return 0;
}

struct aipowermeter *aipowermeter_new(const struct run *run, struct arena *arena)
{
	struct aipowermeter *a = arena_alloc(arena, 1, sizeof(*a));
	if (a == NULL || timeline_make(run, arena, &a->timeline) < 0)
		return NULL;
	a->run = run;
	a->per_process = run->process_samples.n > 0;
	for (int kind = 0; kind < DOMAIN_KINDS; kind++)
		if (make_kind(a, kind, arena) < 0)
			return NULL;
	if (make_gpus(a, arena) < 0 || aipm_pids_make(run, arena, &a->pids) < 0 ||
		aipm_memory_make(run, arena, &a->memory) < 0)
		return NULL;
	return a;
}

bool aipowermeter_has_rows(const struct aipowermeter *a)
{
	for (size_t s = 0; s < a->run->n_segments; s++) {
		struct slice interval = a->timeline.intervals[s];
		if (interval.end > interval.begin)
			return value_ok(run_wall_ns(a->run, a->timeline.t_ns[interval.begin]));
	}
	return false;
}

bool aipowermeter_has_results(const struct aipowermeter *a)
{
	return a->run->n_user_metrics > 0;
}

bool aipowermeter_has_wall(const struct aipowermeter *a)
{
	return a->kinds[DOMAIN_WALL].known;
}

const char *aipowermeter_model(const struct aipowermeter *a)
{
	return run_metadata(a->run, META_KEY_META_PREFIX "model_summary");
}

/* ---- dates ---- */

void aipm_date(struct buf *out, int64_t wall_ns)
{
	int64_t us = wall_ns / 1000 - (wall_ns % 1000 < 0);
	time_t s = (time_t)(us / 1000000 - (us % 1000000 < 0));
	struct tm tm;
	char date[40] = "";
	if (localtime_r(&s, &tm) != NULL)
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	buf_printf(out, "%s.%06d", date, (int)(us - (int64_t)s * 1000000));
}

void aipm_key_date(struct jsonw *j, const char *key, int64_t wall_ns)
{
	struct buf date;
	buf_init(&date, 64);
	aipm_date(&date, wall_ns);
	jsonw_key_string(j, key, date.data);
	buf_finish(&date);
}

/* ---- metadata.json ---- */

static void describe(struct jsonw *j, const struct run *run)
{
	const char *label = run_metadata(run, META_KEY_LABEL);
	struct buf words;
	buf_init(&words, 1 << 20);
	if (label != NULL)
		buf_str(&words, label);
	else if (run->n_segments > 0)
		command_text(&words, &run->segments[0]);
	jsonw_key_string(j, "description", words.data != NULL ? words.data : "");
	buf_finish(&words);
}

// An addition to the layout, whose readers otherwise take estimates for measurements.
static void provenances(struct jsonw *j, const struct findings *findings)
{
	jsonw_key(j, "provenance");
	jsonw_begin_object(j);
	for (size_t i = 0; i < findings->n_domains; i++)
		if (!isnan(findings->domains[i].energy_j))
			jsonw_key_string(j, findings->domains[i].device->name,
				provenance_name(findings->domains[i].provenance));
	jsonw_end_object(j);
}

void aipowermeter_metadata(const struct aipowermeter *a, struct buf *out)
{
	const struct run *run = a->run;
	struct jsonw j;
	jsonw_init(&j, out, false);
	jsonw_begin_object(&j);
	describe(&j, run);
	if (run->n_segments > 0)
		aipm_key_date(&j, "date", run_wall_ns(run, run->segments[0].start_ns));
	jsonw_key_string(&j, "host", run_metadata(run, META_KEY_HOST));
	jsonw_key_string(&j, "wattle_run", run_metadata(run, META_KEY_RUN_ID));
	provenances(&j, &a->timeline.findings);
	jsonw_end_object(&j);
	buf_char(out, '\n');
}

/* ---- power_metrics.json ---- */

static struct aipm_row row_at(const struct aipowermeter *a, size_t segment, size_t instant)
{
	const struct timeline *timeline = &a->timeline;
	struct slice interval = timeline->intervals[segment];
	size_t to = instant > interval.begin ? instant : instant + 1; // the first row uses the first window too
	struct aipm_row row = {
		.segment = segment,
		.instant = instant,
		.interval = interval,
		.from_ns = timeline->t_ns[to - 1],
		.t_ns = timeline->t_ns[to],
		.at_end = instant == interval.begin || instant + 1 == interval.end,
	};
	row.window = windows_at(&timeline->windows,
		windows_find(&timeline->windows, row.from_ns + (row.t_ns - row.from_ns) / 2));
	return row;
}

static void write_row(struct buf *out, const struct aipowermeter *a, const struct aipm_row *row)
{
	struct jsonw j;
	jsonw_init(&j, out, false);
	jsonw_begin_object(&j);
	aipm_key_date(&j, "date", run_wall_ns(a->run, a->timeline.t_ns[row->instant]));
	jsonw_key(&j, "metrics");
	jsonw_begin_object(&j);
	aipm_cpu(&j, a, row);
	aipm_gpu(&j, a, row);
	jsonw_end_object(&j);
	jsonw_end_object(&j);
	buf_char(out, '\n');
}

void aipowermeter_power(const struct aipowermeter *a, struct buf *out, void (*more)(void *data), void *data)
{
	for (size_t s = 0; s < a->run->n_segments; s++) {
		struct slice interval = a->timeline.intervals[s];
		for (size_t i = interval.begin; i < interval.end; i++) {
			struct aipm_row row = row_at(a, s, i);
			write_row(out, a, &row);
			more(data);
		}
		if (interval.end > interval.begin)
			buf_str(out, segment_end);
	}
}

/* ---- results_exp.json ---- */

void aipowermeter_results(const struct aipowermeter *a, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, false);
	jsonw_begin_array(&j);
	for (size_t i = 0; i < a->run->n_user_metrics; i++) {
		const struct run_user_metric *metric = &a->run->user_metrics[i];
		jsonw_begin_object(&j);
		aipm_key_date(&j, "end_training_epoch", run_wall_ns(a->run, metric->t_ns));
		jsonw_key_double(&j, metric->name, metric->value);
		jsonw_end_object(&j);
	}
	jsonw_end_array(&j);
	buf_char(out, '\n');
}

/* ---- omegawatt.csv ---- */

static void wall_line(const struct aipowermeter *a, size_t instant, struct buf *out)
{
	int64_t wall_us = run_wall_ns(a->run, a->timeline.t_ns[instant]) / 1000;
	buf_printf(out, "%lld.%06lld,true,", (long long)(wall_us / 1000000), (long long)(wall_us % 1000000));
	buf_fixed(out, a->kinds[DOMAIN_WALL].powers.all_w[instant], 6);
	buf_char(out, '\n');
}

// AIPowerMeter skips one line above the header, and drops the last line, because it may be incomplete.
void aipowermeter_wall(const struct aipowermeter *a, struct buf *out, void (*more)(void *data), void *data)
{
	size_t last = SIZE_MAX;
	buf_str(out, "# power at the wall, written by wattle\n#timestamp,#frame_is_ok,#activepow1\n");
	for (size_t s = 0; s < a->run->n_segments; s++)
		for (size_t i = a->timeline.intervals[s].begin; i < a->timeline.intervals[s].end; i++) {
			if (isnan(a->kinds[DOMAIN_WALL].powers.all_w[i]))
				continue;
			wall_line(a, i, out);
			last = i;
			more(data);
		}
	if (last != SIZE_MAX)
		wall_line(a, last, out);
}
