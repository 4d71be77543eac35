#include "report/parts.h"

#include "base/util.h"

static void four_stats(struct json *j, const struct value_stats *stats, double factor)
{
	json_key_double(j, "min", stats->min * factor);
	json_key_double(j, "max", stats->max * factor);
	json_key_double(j, "mean", stats->mean * factor);
	json_key_double(j, "std", stats->std * factor);
}

static void compute_time(struct json *j, const struct value_stats *stats)
{
	json_key(j, "compute_time");
	json_begin_object(j);
	four_stats(j, stats, 1);
	json_key_double(j, "total", stats->total);
	json_end_object(j);
}

static void resource_usage(struct json *j, const struct run *run, const struct block_finding *block)
{
	json_key(j, "resource_usage");
	json_begin_object(j);
	for (enum column c = 0; c < COLUMN_COUNT; c++) {
		json_key(j, column_name(c));
		json_begin_object(j);
		four_stats(j, &block->columns[c], column_factor(run, c));
		json_end_object(j);
	}
	json_end_object(j);
}

static void energy(struct json *j, const struct findings *findings, const struct block_finding *block)
{
	json_key(j, "energy");
	json_begin_object(j);
	json_key_double(j, "total_j", block->total_j);
	json_key_double(j, "error_j", block->error_j);
	json_key_double(j, "mean_j", block->calls > 0 ? block->total_j / (double)block->calls : (double)NAN);
	json_key(j, "domains");
	json_begin_object(j);
	for (size_t d = 0; d < findings->n_domains; d++)
		json_key_double(j, findings->domains[d].device->name, block->domain_j[d]);
	json_end_object(j);
	json_end_object(j);
}

void blocks_json(struct json *j, const struct findings *findings)
{
	json_begin_array(j);
	for (size_t i = 0; i < findings->n_blocks; i++) {
		const struct block_finding *block = &findings->blocks[i];
		json_begin_object(j);
		json_key_string(j, "name", block->name);
		json_key_i64(j, "num_timepoints", block->timepoints);
		json_key_i64(j, "num_calls", block->calls);
		json_key_i64(j, "num_non_empty_calls", block->non_empty_calls);
		compute_time(j, &block->compute_time_s);
		resource_usage(j, findings->run, block);
		energy(j, findings, block);
		json_end_object(j);
	}
	json_end_array(j);
}
