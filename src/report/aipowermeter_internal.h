/* Shared by the writers of AIPowerMeter's files. */
#pragma once

#include "base/jsonw.h"
#include "report/aipowermeter.h"

// A row of power_metrics.json: an instant of the time grid, and the window before it, which CPU times refer to.
struct aipm_row {
	size_t segment, instant;
	struct slice interval;
	int64_t from_ns, t_ns; // begin and end of the window
	struct window window;
	bool at_end; // first or last row of its segment, where each curve of the segment has a point
};

/* Processes sampled by --per-process: their shares of the target's use in the window of a row. */
struct aipm_pids {
	const struct run_process_samples *samples;
	size_t *before, *after; // by sample: adjacent samples of the same process; SIZE_MAX: none
};

struct aipm_track { // all domains of one kind
	bool known;
	struct timeline_track powers;
};

struct aipm_gpu {
	const struct run_device *device;
	struct timeline_track powers;
	bool is_divided; // false: the energy is not attributed
};

/* Memory is read at its own interval. For each sample, the index of the last reading of each metric in its segment at or
 * before it; for each segment, the first reading. SIZE_MAX: none. */
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
// pid of the target's root process; 0: the recorder ended before it was known.
int64_t aipm_root_pid(const struct aipowermeter *a, size_t segment);
void aipm_key_pid(struct jsonw *j, int64_t pid);

/* Writes {pid: part}: divides a value of the target by the CPU time of its processes in the row's window. Without
 * per-process samples, all of it belongs to the root process. NaN writes nothing. */
void aipm_by_pid(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row, const char *key,
	double value);
// Writes {pid: bytes}, and the shares of `used_bytes` (NaN: omitted). Without per-process samples, uses `target_bytes` for
// the whole target.
void aipm_memory_by_pid(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row, double target_bytes,
	double used_bytes);

void aipm_cpu(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row);
void aipm_gpu(struct jsonw *j, const struct aipowermeter *a, const struct aipm_row *row);

// Formats like Python's str(datetime): local time, microseconds, no offset.
void aipm_date(struct buf *out, int64_t wall_ns);
void aipm_key_date(struct jsonw *j, const char *key, int64_t wall_ns);
