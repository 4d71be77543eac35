#include "metric/metric.h"

#include <assert.h>
#include <errno.h>

#define FAMILY(name_, scale_, help_) .family = {.name = (name_), .scale = (scale_), .help = (help_)}
#define ROW(name_, kind_, unit_, source_, meaning_, ...)                                                               \
	{.name = name_, .kind = METRIC_##kind_, .unit = unit_, .source = source_, .meaning = meaning_, ##__VA_ARGS__},
#define IN_RUN(...)
#define IN_DEVICE(...)
#define IN_PROCESS(...)

#undef IN_RUN
#define IN_RUN(...) ROW(__VA_ARGS__)
static const struct metric run_metrics[] = {
#define METRIC(id, scope, ...) IN_##scope(__VA_ARGS__)
#include "metric/metrics.def"
};
#undef IN_RUN
#define IN_RUN(...)

#undef IN_DEVICE
#define IN_DEVICE(...) ROW(__VA_ARGS__)
static const struct metric device_metrics[] = {
#define METRIC(id, scope, ...) IN_##scope(__VA_ARGS__)
#include "metric/metrics.def"
};
#undef IN_DEVICE
#define IN_DEVICE(...)

#undef IN_PROCESS
#define IN_PROCESS(...) ROW(__VA_ARGS__)
static const struct metric process_metrics[] = {
#define METRIC(id, scope, ...) IN_##scope(__VA_ARGS__)
#include "metric/metrics.def"
};

#undef IN_RUN
#undef IN_DEVICE
#undef IN_PROCESS
#undef ROW
#undef FAMILY

static_assert(ARRAY_SIZE(run_metrics) == RUN_COUNT, "enum run_metric and its table are made from the same rows");
static_assert(ARRAY_SIZE(device_metrics) == DEVICE_COUNT,
	"enum device_metric and its table are made from the same rows");
static_assert(ARRAY_SIZE(process_metrics) == PROCESS_COUNT,
	"enum process_metric and its table are made from the same rows");

static const struct {
	const char *name;
	const struct metric *table;
	size_t count;
} scopes[] = {
	[METRIC_RUN] = {"run", run_metrics, RUN_COUNT},
	[METRIC_DEVICE] = {"device", device_metrics, DEVICE_COUNT},
	[METRIC_PROCESS] = {"process", process_metrics, PROCESS_COUNT},
};

const struct metric *metric_table(enum metric_scope scope, size_t *ret_count)
{
	*ret_count = scopes[scope].count;
	return scopes[scope].table;
}

const char *metric_scope_name(enum metric_scope scope)
{
	return scopes[scope].name;
}

const char *metric_kind_name(enum metric_kind kind)
{
	return kind == METRIC_COUNTER ? "counter" : "gauge";
}

int batch_init(struct batch *batch, size_t capacity)
{
	*batch = (struct batch){.bytes = malloc(capacity), .capacity = capacity};
	return batch->bytes != NULL ? 0 : -ENOMEM;
}

void batch_finish(struct batch *batch)
{
	free(batch->bytes);
	*batch = (struct batch){0};
}

void batch_clear(struct batch *batch)
{
	batch->size = 0;
	batch->n_samples = 0;
	batch->n_lost = 0;
}

static size_t record_size(size_t n_values)
{
	return sizeof(struct record) + n_values * sizeof(int64_t);
}

struct record *batch_add(struct batch *batch, enum metric_scope scope, int64_t t_ns, int64_t id, int64_t start_ns)
{
	size_t n_values = scopes[scope].count;
	size_t size = record_size(n_values);
	if (batch->capacity - batch->size < size) {
		if (scope == METRIC_RUN)
			batch->n_lost++;
		return NULL;
	}
	struct record *record = (struct record *)(void *)(batch->bytes + batch->size);
	batch->size += size;
	if (scope == METRIC_RUN)
		batch->n_samples++;
	*record = (struct record){.t_ns = t_ns,
		.id = id,
		.start_ns = start_ns,
		.scope = scope,
		.n_values = (uint32_t)n_values};
	for (size_t i = 0; i < n_values; i++)
		record->values[i] = VALUE_MISSING;
	return record;
}

const struct record *batch_first(const struct batch *batch)
{
	return batch->size > 0 ? (const struct record *)(const void *)batch->bytes : NULL;
}

const struct record *batch_next(const struct batch *batch, const struct record *record)
{
	const unsigned char *next = (const unsigned char *)record + record_size(record->n_values);
	return next < batch->bytes + batch->size ? (const struct record *)(const void *)next : NULL;
}
