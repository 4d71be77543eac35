#include "monitor/internal.h"

#include "base/util.h"
#include "metric/ram.h"
#include "process/memory.h"

static const double budget_percent = 1; // CPU budget for memory readings, percent of one core

struct target_ram {
	struct tree tree;
	struct memory_reader reader;
	struct memory_estimate estimate;
	struct ram_tracker tracker;
};

struct target_ram *target_ram_open(const struct wattle_env *env, pid_t pid)
{
	struct target_ram *ram = calloc(1, sizeof(*ram));
	if (ram == NULL)
		return NULL;
	if (tree_open(&ram->tree, env, pid, 0) == 0 &&
		memory_reader_open(&ram->reader, budget_percent, env_now_ns(env)) == 0)
		return ram;
	target_ram_close(ram);
	return NULL;
}

void target_ram_close(struct target_ram *ram)
{
	if (ram == NULL)
		return;
	tree_close(&ram->tree);
	memory_reader_close(&ram->reader);
	free(ram);
}

double target_ram_sample(struct target_ram *ram, int64_t t_ns)
{
	if (ram == NULL)
		return (double)NAN;
	struct tree_totals totals;
	int64_t sample[RUN_COUNT];
	for (size_t m = 0; m < RUN_COUNT; m++)
		sample[m] = VALUE_MISSING;
	tree_update(&ram->tree, t_ns, &totals);
	tree_forget_ended(&ram->tree);
	sample[RUN_MAIN_RSS] = totals.main_rss_bytes;
	sample[RUN_DESCENDANTS_RSS] = totals.descendants_rss_bytes;
	memory_measure(&ram->reader, &ram->estimate, &ram->tree, t_ns, &totals, sample);
	struct ram_values values[RAM_GROUPS];
	ram_next(&ram->tracker, sample, values);
	return values[RAM_COMBINED].total_bytes;
}
