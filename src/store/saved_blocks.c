#include "store/saved_blocks.h"

#include "base/util.h"

#include <errno.h>
#include <jansson.h>

struct reading {
	const char *path, *statistic;
	struct arena *arena;
	struct saved_blocks *saved;
	struct wattle_error *reterr;
};

static int refuse(const struct reading *reading, const char *what)
{
	return error_set(reading->reterr, -EINVAL, "%s: not JSON of `wattle blocks --format json`: %s",
		reading->path, what);
}

static int out_of_memory(const struct reading *reading)
{
	return error_set(reading->reterr, -ENOMEM, "%s: out of memory", reading->path);
}

// null, a missing key and a non-number are unknown.
static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static double *usage_of(const struct reading *reading, const json_t *metrics)
{
	const struct saved_blocks *saved = reading->saved;
	double *values = arena_alloc(reading->arena, saved->n_metrics, sizeof(*values));
	for (size_t m = 0; values != NULL && m < saved->n_metrics; m++)
		values[m] = number(json_object_get(metrics, saved->metrics[m]), reading->statistic);
	return values;
}

static int read_overall(const struct reading *reading, json_t *overall)
{
	struct saved_blocks *saved = reading->saved;
	if (!json_is_object(overall))
		return refuse(reading, "it has no object \"overall\"");
	saved->metrics = arena_alloc(reading->arena, json_object_size(overall), sizeof(*saved->metrics));
	if (saved->metrics == NULL)
		return out_of_memory(reading);
	const char *name;
	json_t *value;
	json_object_foreach(overall, name, value)
	{
		saved->metrics[saved->n_metrics] = arena_text(reading->arena, name);
		if (saved->metrics[saved->n_metrics++] == NULL)
			return out_of_memory(reading);
	}
	saved->overall = usage_of(reading, overall);
	return saved->overall != NULL ? 0 : out_of_memory(reading);
}

static int read_block(const struct reading *reading, const json_t *object, struct saved_block *block)
{
	const char *name = json_string_value(json_object_get(object, "name"));
	if (name == NULL)
		return refuse(reading, "a code block has no name");
	const json_t *energy = json_object_get(object, "energy");
	*block = (struct saved_block){
		.name = arena_text(reading->arena, name),
		.compute_time_s = number(json_object_get(object, "compute_time"), reading->statistic),
		.usage = usage_of(reading, json_object_get(object, "resource_usage")),
		.total_j = number(energy, "total_j"),
		.error_j = number(energy, "error_j"),
	};
	return block->name != NULL && block->usage != NULL ? 0 : out_of_memory(reading);
}

static int read_blocks(const struct reading *reading, const json_t *array)
{
	struct saved_blocks *saved = reading->saved;
	if (!json_is_array(array))
		return refuse(reading, "it has no list \"code_block_results\"");
	saved->blocks = arena_alloc(reading->arena, json_array_size(array), sizeof(*saved->blocks));
	if (saved->blocks == NULL)
		return out_of_memory(reading);
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(array); i++)
		r = read_block(reading, json_array_get(array, i), &saved->blocks[saved->n_blocks++]);
	return r;
}

static int read_document(const struct reading *reading, json_t *document)
{
	struct saved_blocks *saved = reading->saved;
	if (!json_is_object(document))
		return refuse(reading, "it is not an object");
	int r = read_overall(reading, json_object_get(document, "overall"));
	if (r == 0)
		r = read_blocks(reading, json_object_get(document, "code_block_results"));
	const json_t *energy = json_object_get(document, "energy"), *statics = json_object_get(document, "static_data");
	saved->has_energy = json_is_object(energy);
	saved->total_j = number(energy, "total_j");
	saved->error_j = number(energy, "error_j");
	saved->mean_w = number(energy, "mean_w");
	saved->duration_s = number(energy, "duration_s");
	saved->ram_unit = arena_text(reading->arena, json_string_value(json_object_get(statics, "ram_unit")));
	saved->gpu_ram_unit = arena_text(reading->arena, json_string_value(json_object_get(statics, "gpu_ram_unit")));
	return r;
}

int saved_blocks_load(const char *path, const char *statistic, struct arena *arena, struct saved_blocks *ret_saved,
	struct wattle_error *reterr)
{
	*ret_saved = (struct saved_blocks){0};
	FILE *file = fopen(path, "re");
	if (file == NULL) {
		int code = -errno;
		return error_set(reterr, code, "%s: %s", path, strerror(-code));
	}
	const struct reading reading = {path, statistic, arena, ret_saved, reterr};
	json_error_t error;
	json_t *document = json_loadf(file, 0, &error);
	fclose(file);
	if (document == NULL)
		return error_set(reterr, -EINVAL, "%s: neither a run file nor JSON of `wattle blocks`: line %d: %s",
			path, error.line, error.text);
	int r = read_document(&reading, document);
	json_decref(document);
	return r;
}
