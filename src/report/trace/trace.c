#include "report/trace/trace.h"

#include "analysis/metadata_keys.h"
#include "base/fnv.h"
#include "base/util.h"
#include "energy/curve.h"
#include "report/trace/internal.h"

#include <errno.h>

/* Gives different runs different track ids where possible, for traces opened together. Each of millions of events contains
 * an id, and small numbers need few bytes. */
static uint64_t uuid_base_of(const struct run *run)
{
	const char *id = run_metadata(run, "id");
	uint32_t h = id != NULL ? fnv_u32(FNV_START_U32, id, strlen(id)) : FNV_START_U32;
	return (uint64_t)((h ^ h >> 16) & 0xffff) << 18;
}

static int show(struct trace *trace)
{
	static int (*const parts[])(struct trace *) = {trace_user_metrics, trace_process_samples, trace_spans};
	if (timeline_of(trace->findings, trace->arena, &trace->timeline) < 0 || trace_processes_find(trace) < 0)
		return -ENOMEM;
	trace_begin(trace);
	trace_instants(trace);
	trace_power(trace);
	trace_cpu(trace);
	trace_memory(trace);
	trace_devices(trace);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i](trace) < 0)
			return -ENOMEM;
	return 0;
}

int trace_perfetto(const struct findings *findings, struct buf *out, void (*more)(void *data), void *data)
{
	struct trace trace = {
		.findings = findings,
		.run = findings->run,
		.arena = arena_new(),
		.out = out,
		.more = more,
		.data = data,
		.hole_ns = curve_hole_ns(run_metadata_i64(findings->run, META_KEY_INTERVAL)),
		.uuid_base = uuid_base_of(findings->run),
	};
	if (trace.arena == NULL)
		return -ENOMEM;
	int r = show(&trace);
	arena_free(trace.arena);
	return r < 0 ? r : out->failed;
}
