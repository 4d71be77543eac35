#include "task/task.h"

#include "analysis/metadata_keys.h"
#include "base/buf.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "store/output_file.h"
#include "store/sub_tracking.h"

#include <errno.h>
#include <string.h>

int load_run(const char *path, struct run *ret_run, struct wattle_error *reterr)
{
	return span_file_probe(path) ? span_file_load(path, ret_run, reterr) : run_load(path, ret_run, reterr);
}

// The name as valid UTF-8, as a saved document has it, so that names of a run and of a document compare equal.
static const char *valid_name(struct arena *arena, const char *name)
{
	struct buf valid;
	buf_init(&valid, 3 * strlen(name) + 1); // each byte becomes at most U+FFFD, 3 bytes
	buf_utf8(&valid, name);
	const char *copy = valid.failed == 0 ? arena_text(arena, valid.size > 0 ? valid.data : "") : NULL;
	buf_finish(&valid);
	return copy;
}

static double known(double value) // JSON has no infinities
{
	return isfinite(value) ? value : (double)NAN;
}

static double one_of(const struct value_stats *stats, const char *statistic)
{
	static const struct {
		const char *name;
		size_t offset;
	} members[] = {
		{"min", offsetof(struct value_stats, min)},
		{"max", offsetof(struct value_stats, max)},
		{"mean", offsetof(struct value_stats, mean)},
		{"std", offsetof(struct value_stats, std)},
	};
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (strcmp(members[i].name, statistic) == 0)
			return known(*(const double *)(const void *)((const char *)stats + members[i].offset));
	return (double)NAN;
}

// NULL: out of memory.
static double *usage_of(const struct run *run, const struct value_stats *columns, const char *statistic,
	struct arena *arena)
{
	double *values = arena_alloc(arena, TRACKING_METRICS, sizeof(*values));
	for (size_t c = 0; values != NULL && c < TRACKING_METRICS; c++)
		values[c] = known(one_of(&columns[c], statistic) * column_factor(run, (enum tracking_column_id)c));
	return values;
}

static bool take_blocks(const struct findings *f, const char *statistic, struct arena *arena,
	struct saved_blocks *saved)
{
	for (; saved->n_blocks < f->n_blocks; saved->n_blocks++) {
		const struct block_finding *from = &f->blocks[saved->n_blocks];
		struct saved_block block = {
			.name = valid_name(arena, from->name),
			.compute_time_s = one_of(&from->compute_time_s, statistic),
			.usage = usage_of(f->run, from->columns, statistic, arena),
			.total_j = known(from->total_j),
			.error_j = known(from->error_j),
		};
		if (block.name == NULL || block.usage == NULL)
			return false;
		saved->blocks[saved->n_blocks] = block;
	}
	return true;
}

int load_blocks_of(const struct findings *findings, const char *path, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_saved, struct wattle_error *reterr)
{
	*ret_saved = (struct saved_blocks){
		.metrics = arena_alloc(arena, TRACKING_METRICS, sizeof(*ret_saved->metrics)),
		.n_metrics = TRACKING_METRICS,
		.overall = usage_of(findings->run, findings->overall, statistic, arena),
		.blocks = arena_alloc(arena, findings->n_blocks, sizeof(*ret_saved->blocks)),
		.has_energy = true,
		.total_j = known(findings->total_j),
		.error_j = known(findings->error_j),
		.mean_w = known(findings_mean_power(findings).total_w),
		.duration_s = known(findings->duration_s),
		.ram_unit = arena_text(arena, run_unit(findings->run, META_KEY_RAM_UNIT)),
		.gpu_ram_unit = arena_text(arena, run_unit(findings->run, META_KEY_GPU_RAM_UNIT)),
	};
	for (size_t c = 0; ret_saved->metrics != NULL && c < TRACKING_METRICS; c++)
		ret_saved->metrics[c] = tracking_columns[c].name;
	if (ret_saved->metrics == NULL || ret_saved->overall == NULL || ret_saved->blocks == NULL ||
		ret_saved->ram_unit == NULL || ret_saved->gpu_ram_unit == NULL ||
		!take_blocks(findings, statistic, arena, ret_saved))
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	return 0;
}

int load_findings(const char *path, struct run *ret_run, struct findings *ret_findings, struct wattle_error *reterr)
{
	struct run run;
	int r = load_run(path, &run, reterr);
	if (r < 0)
		return r;
	*ret_run = run; // moved to its final address first: the findings point to it
	r = findings_make(ret_run, ret_findings);
	if (r < 0) {
		run_finish(ret_run);
		return error_set(reterr, r, "%s: %s", path, strerror(-r));
	}
	return 0;
}

// Loads all ranks of a job as one run.
static int of_job(const char *folder, const char *url, const char *job_id, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_saved, struct wattle_error *reterr)
{
	const struct job_choice choice = {.job_id = job_id, .remedy = "use a separate folder for each job"};
	struct loaded_job job;
	int r = load_job(folder, url, &choice, NULL, &job, reterr);
	if (r < 0)
		return r;
	r = load_blocks_of(&job.job.total, folder != NULL ? folder : job_id, statistic, arena, ret_saved, reterr);
	ret_saved->mean_w = job_mean_w(&job.job);
	load_job_finish(&job);
	return r;
}

int load_blocks_stored(const char *url, const char *job_id, const char *statistic, struct arena *arena,
	struct saved_blocks *ret_saved, struct wattle_error *reterr)
{
	return of_job(NULL, url, job_id, statistic, arena, ret_saved, reterr);
}

int load_blocks(const char *path, const char *statistic, struct arena *arena, struct saved_blocks *ret_saved,
	struct wattle_error *reterr)
{
	if (load_is_folder(path))
		return of_job(path, NULL, NULL, statistic, arena, ret_saved, reterr);
	if (!file_type_is_measurements(path))
		return saved_blocks_load(path, statistic, arena, ret_saved, reterr);
	struct run run;
	struct findings findings;
	int r = load_findings(path, &run, &findings, reterr);
	if (r < 0)
		return r;
	r = load_blocks_of(&findings, path, statistic, arena, ret_saved, reterr);
	findings_finish(&findings);
	run_finish(&run);
	return r;
}
