/* What the writers of AIPowerMeter's files share; between room-mates. */
#pragma once

#include "base/jsonw.h"
#include "report/aipowermeter.h"

// A row of power_metrics.json: an instant of the grid, and the window before it, which CPU times are of.
struct aipm_row {
	size_t segment, instant;
	struct slice stretch;
	int64_t from_ns, t_ns; // the window
	struct window window;
	bool at_end; // first or last of its segment: every curve of the segment has a point there
};

/* Processes of --per-process. Which of them used what of the target's, in a row's window. */
struct aipm_pids {
	const struct run_process_samples *samples;
	size_t *before, *after; // of a sample: the same process's neighbours; SIZE_MAX: none
};

struct aipm_track { // domains of one kind
	bool known;
	struct timeline_track powers;
};

struct aipm_gpu {
	const struct run_device *device;
	struct timeline_track powers;
	bool is_divided; // false: whose its energy is nobody knows
};

/* Memory is read on a cadence of its own: which sample a row takes it from. Of each sample the last one of its segment up to
 * it that knows the metric, and of each segment the first one. SIZE_MAX: none. */
enum aipm_memory_metric { AIPM_RSS, AIPM_PSS, AIPM_USS, AIPM_USED, AIPM_MEMORY_METRICS };
struct aipm_memory {
	size_t *latest[AIPM_MEMORY_METRICS], *first[AIPM_MEMORY_METRICS];
};

struct aipowermeter {
	const struct run *run;
	struct timeline timeline;
	struct aipm_track kinds[DOMAIN_KINDS];
	struct aipm_gpu *gpus;
	size_t n_gpus;
	bool per_process;
	struct aipm_pids pids;
	struct aipm_memory memory;
};

int aipm_pids_make(const struct run *run, struct arena *arena, struct aipm_pids *ret_pids);       // -ENOMEM
int aipm_memory_make(const struct run *run, struct arena *arena, struct aipm_memory *ret_memory); // -ENOMEM
// The target's first process; 0: of a recorder that died before it knew.
int64_t aipm_root_pid(const struct aipowermeter *a, size_t segment);
void aipm_key_pid(struct jsonw *j, int64_t pid);

/* {pid: part}: a figure of the target's by the CPU time that its processes used in the row's window; all of it is the root's
 * where they were not sampled each for itself. NaN writes nothing. */
void aipm_by_pid(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row, const char *key,
	double value);
// {pid: bytes}, and their parts of `used_bytes` (NaN: left out). Resident memory, or the whole target's by `target_bytes`.
void aipm_memory_by_pid(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row, double target_bytes,
	double used_bytes);

void aipm_cpu(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row);
void aipm_gpu(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row);

// As Python's str(datetime): local time, microseconds, no offset.
void aipm_date(struct buf *out, int64_t wall_ns);
void aipm_key_date(struct jsonw *j, const char *key, int64_t wall_ns);
