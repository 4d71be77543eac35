#include "store/run.h"

#include "base/arena.h"
#include "base/num.h"
#include "base/units.h"
#include "base/util.h"

#include <string.h>

void run_finish(struct run *run)
{
	arena_free(run->arena);
	*run = (struct run){0};
}

const char *run_metadata(const struct run *run, const char *key)
{
	for (size_t i = 0; i < run->n_metadata; i++)
		if (strcmp(run->facts[i].key, key) == 0)
			return run->facts[i].value;
	return NULL;
}

double run_metadata_double(const struct run *run, const char *key)
{
	const char *text = run_metadata(run, key);
	double value = (double)NAN;
	if (text != NULL && num_parse_double(text, &value) < 0)
		return (double)NAN;
	return value;
}

int64_t run_metadata_i64(const struct run *run, const char *key)
{
	const char *text = run_metadata(run, key);
	int64_t value = VALUE_MISSING;
	if (text != NULL && num_parse_i64(text, &value) < 0)
		return VALUE_MISSING;
	return value;
}

const char *run_unit(const struct run *run, const char *fact)
{
	bool is_time = strcmp(fact, "time_unit") == 0;
	const char *name = run_metadata(run, fact);
	if (!isnan(unit_size(is_time ? UNIT_TIME : UNIT_MEMORY, name)))
		return name;
	return is_time ? "hours" : "gigabytes";
}

int64_t run_count_gpus(const struct run *run)
{
	int64_t n = 0;
	for (size_t i = 0; i < run->n_devices; i++)
		n += run->devices[i].kind == DOMAIN_GPU;
	return n;
}

// Run files of older versions record the memory of measured GPUs only. That suffices if all GPUs of the machine are measured.
double run_gpu_capacity_bytes(const struct run *run)
{
	if (run_metadata(run, "gpu_memory_total_bytes") != NULL)
		return run_metadata_double(run, "gpu_memory_total_bytes");
	int64_t in_system = run_metadata_i64(run, "n_gpus_system");
	if (!value_ok(in_system) || run_count_gpus(run) < in_system)
		return (double)NAN;
	double bytes = 0;
	for (size_t i = 0; i < run->n_devices; i++)
		if (run->devices[i].kind == DOMAIN_GPU)
			bytes += value_to_double(run->devices[i].memory_total_bytes, 1);
	return bytes;
}

int64_t run_slept_ns(const struct run *run, int64_t from_ns, int64_t to_ns)
{
	int64_t slept_ns = 0;
	for (size_t i = 0; i < run->n_sleeps && slept_ns <= RUN_SLEPT_MAX_NS; i++)
		if (run->sleeps[i].t_ns > from_ns && run->sleeps[i].t_ns <= to_ns)
			slept_ns += run->sleeps[i].slept_ns;
	return slept_ns <= RUN_SLEPT_MAX_NS ? slept_ns : VALUE_MISSING;
}

int64_t run_wall_ns(const struct run *run, int64_t t_ns)
{
	int64_t mono_ns = run->anchor_mono_ns, wall_ns = run->anchor_wall_ns;
	for (size_t i = 0; i < run->n_segments; i++) {
		const struct run_segment *segment = &run->segments[i];
		if ((i > 0 && segment->start_ns > t_ns) || !value_ok(segment->wall_start_ns))
			continue;
		mono_ns = segment->start_ns;
		wall_ns = segment->wall_start_ns;
	}
	int64_t since_ns, slept_ns = run_slept_ns(run, mono_ns, t_ns);
	if (!value_ok(mono_ns) || !value_ok(wall_ns) || !value_ok(slept_ns))
		return VALUE_MISSING;
	bool impossible = __builtin_sub_overflow(t_ns, mono_ns, &since_ns) ||
		__builtin_add_overflow(wall_ns, since_ns, &wall_ns) ||
		__builtin_add_overflow(wall_ns, slept_ns, &wall_ns); // a damaged file may overflow
	return impossible ? VALUE_MISSING : wall_ns;
}
