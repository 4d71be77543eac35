#include "now/target_ram.h"

#include "base/util.h"
#include "process/memory_sample.h"

static const double budget_percent = 1; // of a core

struct target_ram {
	struct tree tree;
	struct memory_reader reader;
	struct memory_estimate estimate;
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

double target_ram_look(struct target_ram *ram, int64_t t_ns)
{
	if (ram == NULL)
		return (double)NAN;
	struct tree_totals totals;
	struct memory_reading reading;
	tree_update(&ram->tree, t_ns, &totals);
	tree_forget_ended(&ram->tree);
	memory_estimate_update(&ram->estimate, &ram->tree);
	int64_t bytes = ram->estimate.carried.combined_bytes;
	if (memory_read_if_due(&ram->reader, &ram->estimate, &ram->tree, t_ns, &totals, &reading) &&
		value_ok(reading.main.private_bytes) && value_ok(reading.descendants.private_bytes))
		bytes = reading.main.private_bytes + reading.descendants.private_bytes + reading.combined_shared_bytes;
	return value_to_double(bytes, 1);
}
